//! Gemini: `streamGenerateContent` over server-sent events, [`images`], and [`live`] over a WebSocket.

pub mod images;
pub mod live;
mod request;
mod stream;

use std::sync::Arc;

use quarterdeck_contracts::{ChatModel, ChatRequest, ChatStream, Provider};
use reqwest::header::{HeaderMap, HeaderName};
use serde_json::{Value, json};

use crate::endpoint::{Endpoint, Settings, secret_header};
use crate::{ConfigError, Limits, Secret};

pub use request::body;
pub use stream::GeminiReply;

const PROVIDER: &str = "gemini";

/// Settings of the Gemini client.
#[derive(Debug, Clone, PartialEq)]
pub struct GeminiConfig {
    /// Without the version.
    pub base_url: String,
    /// The version of the API, which is part of the path.
    pub api_version: String,
    pub api_key: Secret,
    /// The model, with or without `models/`.
    pub model: String,
    /// Tokens of a request and its answer together.
    pub window: usize,
    /// Longest answer in tokens, thoughts included; without one, the model's own limit.
    pub max_output_tokens: Option<u32>,
    /// Without one, the model's default.
    pub temperature: Option<f64>,
    /// `LOW`, `HIGH` and whatever else the model knows; without one, the model's default.
    pub thinking_level: Option<String>,
    /// Whether summaries of thoughts are sent.
    pub include_thoughts: bool,
    /// Timeouts, sizes and retries.
    pub limits: Limits,
}

impl GeminiConfig {
    /// Used unless another model is configured.
    pub const DEFAULT_MODEL: &'static str = "gemini-3.8-flash";
    pub const DEFAULT_BASE_URL: &'static str = "https://generativelanguage.googleapis.com";

    /// The default model at Google.
    pub fn new(api_key: impl Into<Secret>) -> Self {
        Self {
            base_url: Self::DEFAULT_BASE_URL.to_owned(),
            api_version: "v1beta".to_owned(),
            api_key: api_key.into(),
            model: Self::DEFAULT_MODEL.to_owned(),
            window: 1 << 20,
            max_output_tokens: None,
            temperature: None,
            thinking_level: None,
            include_thoughts: false,
            limits: Limits::default(),
        }
    }

    fn plain_model(&self) -> &str {
        self.model.strip_prefix("models/").unwrap_or(&self.model)
    }
}

/// Gemini as a chat model.
#[derive(Debug)]
pub struct Gemini {
    config: GeminiConfig,
    endpoint: Arc<Endpoint>,
}

impl Gemini {
    /// Checks the settings. Nothing is sent before the first request.
    pub fn new(config: GeminiConfig) -> Result<Self, ConfigError> {
        let endpoint = model_endpoint(&config, "streamGenerateContent?alt=sse")?;
        Ok(Self { config, endpoint })
    }
}

/// The address of a method of a model.
fn model_endpoint(config: &GeminiConfig, method: &str) -> Result<Arc<Endpoint>, ConfigError> {
    let provider = PROVIDER;
    if config.api_key.is_empty() {
        return Err(ConfigError::NoKey { provider });
    }
    let model = config.plain_model();
    // The name stands in the path, where these would mean something else.
    if model.contains(['?', '#', '%', '\\', ':'])
        || model.split('/').any(|part| matches!(part, "" | "." | ".."))
    {
        return Err(ConfigError::Model { provider });
    }
    let mut headers = HeaderMap::new();
    let key = secret_header(provider, config.api_key.expose())?;
    headers.insert(HeaderName::from_static("x-goog-api-key"), key);
    // `tunedModels/x` names its own collection.
    let collection = if model.contains('/') { "" } else { "models/" };
    let version = config.api_version.trim_matches('/');
    Endpoint::new(Settings {
        provider,
        model,
        base_url: &config.base_url,
        path: format!("{version}/{collection}{model}:{method}"),
        key: Some(&config.api_key),
        headers,
        limits: &config.limits,
    })
}

impl ChatModel for Gemini {
    fn declarations(&self) -> Provider {
        Provider::GeminiJsonSchema
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

    fn ask(&self, request: ChatRequest) -> ChatStream {
        let body = body(&self.config, self.name(), &request);
        let name = self.endpoint.name.clone();
        self.endpoint.ask(&body, request.span, move || GeminiReply::new(&name))
    }
}

fn declare(name: &str, description: &str, parameters: &Value) -> Value {
    json!({ "name": name, "description": description, "parametersJsonSchema": parameters })
}
