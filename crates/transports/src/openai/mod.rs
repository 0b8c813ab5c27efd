//! OpenAI's chat completions, and every server that speaks the same: Ollama, vLLM, llama.cpp, Gemini's compatible
//! endpoint. [`images`] and [`realtime`] are OpenAI's own; [`speech`] is spoken by many servers again.

mod calls;
pub mod images;
pub mod realtime;
mod refused_schema;
mod request;
pub mod speech;
mod stream;

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::once;
use quarterdeck_contracts::{ChatError, ChatModel, ChatRequest, ChatStream, Provider};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};

use self::refused_schema::{Learnt, Removal};
use crate::endpoint::{Endpoint, Settings, secret_header};
use crate::{ConfigError, Limits, Secret};

pub use refused_schema::declarations_after;
pub use request::body;
pub use stream::OpenAiReply;

const PROVIDER: &str = "openai";

/// The role of the system instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemRole {
    /// For newer models of OpenAI.
    Developer,
    /// For every compatible server.
    System,
}

/// The field that limits the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLimit {
    MaxCompletionTokens(u32),
    /// For older servers.
    MaxTokens(u32),
    /// The server's own limit.
    Unsaid,
}

/// What a server takes of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// All of it, as OpenAI does.
    OpenAi,
    /// What every server of another maker takes, such as llama.cpp, Ollama, LM Studio and vLLM.
    Compatible,
}

/// Settings of a client of chat completions.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAiConfig {
    /// Usually ends in `/v1`.
    pub base_url: String,
    /// Without one, no header is sent.
    pub api_key: Option<Secret>,
    pub model: String,
    /// Tokens of a request and its answer together.
    pub window: usize,
    pub output_limit: OutputLimit,
    /// The role of the system instruction.
    pub system_role: SystemRole,
    /// Whether usage is requested. Some servers refuse the option.
    pub include_usage: bool,
    /// Whether declarations are the strict ones; the tools that are handed in must then be of that form.
    pub strict: bool,
    /// In which form other declarations are.
    pub dialect: Dialect,
    /// Further members of the request, such as `temperature` or what only this server knows. They override ours.
    pub extra: Map<String, Value>,
    /// Timeouts, sizes and retries.
    pub limits: Limits,
}

impl OpenAiConfig {
    pub const DEFAULT_BASE_URL: &'static str = "https://api.openai.com/v1";
    /// Used unless another model is configured. It calls tools without an option that only some models know.
    pub const DEFAULT_MODEL: &'static str = "gpt-5.4-mini";

    /// A model at OpenAI.
    pub fn new(api_key: impl Into<Secret>, model: impl Into<String>) -> Self {
        Self {
            base_url: Self::DEFAULT_BASE_URL.to_owned(),
            api_key: Some(api_key.into()),
            model: model.into(),
            window: 128_000,
            output_limit: OutputLimit::Unsaid,
            system_role: SystemRole::Developer,
            include_usage: true,
            strict: false,
            dialect: Dialect::OpenAi,
            extra: Map::new(),
            limits: Limits::default(),
        }
    }

    /// A model at a compatible server, without a key and with what the oldest of them understand. Local servers
    /// usually run with small windows, and truncate what does not fit without a warning.
    pub fn compatible(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            api_key: None,
            window: 8_192,
            system_role: SystemRole::System,
            dialect: Dialect::Compatible,
            ..Self::new("", model)
        }
    }
}

/// A server that speaks chat completions, as a chat model.
#[derive(Debug, Clone)]
pub struct OpenAi {
    config: Arc<OpenAiConfig>,
    endpoint: Arc<Endpoint>,
    /// What the server has refused of our declarations.
    learnt: Arc<Learnt>,
}

impl OpenAi {
    /// Checks the settings. Nothing is sent before the first request.
    pub fn new(config: OpenAiConfig) -> Result<Self, ConfigError> {
        let key = config.api_key.as_ref().filter(|key| !key.is_empty());
        let headers = bearer_headers(key)?;
        let endpoint = Endpoint::new(Settings {
            provider: PROVIDER,
            model: &config.model,
            base_url: &config.base_url,
            path: "chat/completions".to_owned(),
            key,
            headers,
            limits: &config.limits,
        })?;
        Ok(Self { config: Arc::new(config), endpoint, learnt: Arc::default() })
    }

    fn send(&self, request: &ChatRequest) -> ChatStream {
        let tools = self.learnt.apply(&request.tools);
        let mut body =
            body(&self.config, self.name(), &ChatRequest { tools: tools.into(), ..request.clone() });
        if self.learnt.has(&Removal::Reasoning) {
            body["reasoning_effort"] = "none".into();
        }
        let name = self.endpoint.name.clone();
        self.endpoint.ask(&body, request.span, move || OpenAiReply::new(&name))
    }

    /// Whether a refused request can be sent again, without what the server named.
    fn learn(&self, error: &ChatError, request: &ChatRequest) -> bool {
        let removals = self.learnt.learn(error, &request.tools);
        for removal in &removals {
            let keyword = match removal {
                Removal::Keyword { keyword, .. } => keyword,
                Removal::Tool(_) => "all",
                Removal::Reasoning => "reasoning_effort",
            };
            tracing::warn!(
                model = self.name(),
                tool = removal.tools(&request.tools).join(", "),
                keyword,
                refusal = %error.detail,
                "the server refuses a declaration; it is asked again without this, until the next start"
            );
        }
        !removals.is_empty()
    }
}

/// JSON is wanted back; without a key, no credential is sent.
fn bearer_headers(key: Option<&Secret>) -> Result<HeaderMap, ConfigError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(key) = key {
        headers.insert(AUTHORIZATION, secret_header(PROVIDER, &format!("Bearer {}", key.expose()))?);
    }
    Ok(headers)
}

impl ChatModel for OpenAi {
    fn declarations(&self) -> Provider {
        match self.config.dialect {
            _ if self.config.strict => Provider::OpenaiStrict,
            Dialect::OpenAi => Provider::Openai,
            Dialect::Compatible => Provider::OpenaiCompatible,
        }
    }

    fn declare(&self, name: &str, description: &str, parameters: &Value) -> Value {
        declare(name, description, parameters)
    }

    fn name(&self) -> &str {
        &self.endpoint.name
    }

    fn window(&self) -> usize {
        self.config.window
    }

    fn may_be_loading(&self) -> bool {
        self.endpoint.is_local()
    }

    fn ask(&self, request: ChatRequest) -> ChatStream {
        let (model, mut first) = (self.clone(), self.send(&request));
        let answered = async move {
            match first.next().await {
                // It was refused as a whole, so nothing has been passed on.
                Some(Err(error)) if model.learn(&error, &request) => model.send(&request),
                Some(item) => once(async move { item }).chain(first).boxed(),
                None => first,
            }
        };
        once(answered).flatten().boxed()
    }
}

fn declare(name: &str, description: &str, parameters: &Value) -> Value {
    let function = json!({ "name": name, "description": description, "parameters": parameters });
    json!({ "type": "function", "function": function })
}
