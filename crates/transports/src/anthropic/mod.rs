//! Anthropic's Messages API.

mod blocks;
mod cache;
mod request;
mod stream;

use std::sync::Arc;

use quarterdeck_contracts::{ChatModel, ChatRequest, ChatStream, Provider};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName};
use serde_json::{Value, json};

use crate::endpoint::{Endpoint, Settings, header, secret_header};
use crate::{ConfigError, Limits, Secret};

pub use request::body;
pub use stream::AnthropicReply;

const PROVIDER: &str = "anthropic";

/// The header that holds the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeader {
    /// `authorization: Bearer …`, since the version of October 2026.
    Bearer,
    /// `x-api-key`, for older versions and proxies.
    XApiKey,
}

/// Whether a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// The model's default.
    Unsaid,
    /// As much as the model decides.
    Adaptive,
    /// Up to so many tokens, which must be fewer than the longest answer.
    Budget(u32),
    Off,
}

/// Settings of the Anthropic client.
#[derive(Debug, Clone, PartialEq)]
pub struct AnthropicConfig {
    /// Without `/v1`.
    pub base_url: String,
    pub api_key: Secret,
    pub key_header: KeyHeader,
    /// The version of the API.
    pub version: String,
    pub model: String,
    /// Tokens of a request and its answer together.
    pub window: usize,
    /// Longest answer in tokens, thoughts included. The API insists on one.
    pub max_output_tokens: u32,
    pub thinking: Thinking,
    /// `low` to `max`; without one, the model's default.
    pub effort: Option<String>,
    /// Whether the provider is asked to keep what it has read in its cache. A proxy may not know how.
    pub prompt_cache: bool,
    /// Timeouts, sizes and retries.
    pub limits: Limits,
}

impl AnthropicConfig {
    /// Used unless another model is configured.
    pub const DEFAULT_MODEL: &'static str = "claude-sonnet-5-5";
    pub const DEFAULT_BASE_URL: &'static str = "https://api.anthropic.com";

    /// The default model at Anthropic.
    pub fn new(api_key: impl Into<Secret>) -> Self {
        Self {
            base_url: Self::DEFAULT_BASE_URL.to_owned(),
            api_key: api_key.into(),
            key_header: KeyHeader::Bearer,
            version: "2026-10-21".to_owned(),
            model: Self::DEFAULT_MODEL.to_owned(),
            window: 200_000,
            max_output_tokens: 8_192,
            thinking: Thinking::Unsaid,
            effort: None,
            prompt_cache: true,
            limits: Limits::default(),
        }
    }
}

/// Anthropic as a chat model.
#[derive(Debug)]
pub struct Anthropic {
    config: AnthropicConfig,
    endpoint: Arc<Endpoint>,
}

impl Anthropic {
    /// Checks the settings. Nothing is sent before the first request.
    pub fn new(config: AnthropicConfig) -> Result<Self, ConfigError> {
        let provider = PROVIDER;
        if config.api_key.is_empty() {
            return Err(ConfigError::NoKey { provider });
        }
        let mut headers = HeaderMap::new();
        let version = header(provider, "version", &config.version)?;
        headers.insert(HeaderName::from_static("anthropic-version"), version);
        let key = config.api_key.expose();
        match config.key_header {
            KeyHeader::Bearer => {
                headers.insert(AUTHORIZATION, secret_header(provider, &format!("Bearer {key}"))?)
            }
            KeyHeader::XApiKey => {
                headers.insert(HeaderName::from_static("x-api-key"), secret_header(provider, key)?)
            }
        };
        let endpoint = Endpoint::new(Settings {
            provider,
            model: &config.model,
            base_url: &config.base_url,
            path: "v1/messages".to_owned(),
            key: Some(&config.api_key),
            headers,
            limits: &config.limits,
        })?;
        Ok(Self { config, endpoint })
    }
}

impl ChatModel for Anthropic {
    fn declarations(&self) -> Provider {
        Provider::Anthropic
    }

    fn declare(&self, name: &str, description: &str, parameters: &Value) -> Value {
        json!({ "name": name, "description": description, "input_schema": parameters })
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
        self.endpoint.ask(&body, request.span, move || AnthropicReply::new(&name))
    }
}
