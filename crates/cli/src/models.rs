//! The chat model of the configuration.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use quarterdeck_contracts::ChatModel;
use quarterdeck_rehearsal::{Rehearsal, Script};
use quarterdeck_transports::anthropic::KeyHeader;
use quarterdeck_transports::openai::{OutputLimit, SystemRole};
use quarterdeck_transports::{
    Anthropic, AnthropicConfig, Gemini, GeminiConfig, Limits, OpenAi, OpenAiConfig, Secret,
};

use crate::config::{self, AuthHeader, ChatProvider, Endpoint, MaxTokensField, Text};

/// Anthropic's protocol needs a limit.
const DEFAULT_OUTPUT_TOKENS: u32 = 8_192;

pub(crate) fn chat_model(text: &Text) -> anyhow::Result<Arc<dyn ChatModel>> {
    let limits = limits(text);
    Ok(match &text.provider {
        ChatProvider::Gemini(endpoint) => Arc::new(Gemini::new(GeminiConfig {
            base_url: endpoint.base_url.clone(),
            window: text.window,
            max_output_tokens: text.max_output_tokens,
            limits,
            model: endpoint.model.clone(),
            ..GeminiConfig::new(key(endpoint))
        })?),
        ChatProvider::OpenAi(endpoint, dialect) => Arc::new(OpenAi::new(OpenAiConfig {
            base_url: endpoint.base_url.clone(),
            api_key: endpoint.api_key.as_ref().map(|_| key(endpoint)),
            window: text.window,
            output_limit: match (text.max_output_tokens, dialect.max_tokens_field) {
                (None, _) => OutputLimit::Unsaid,
                (Some(most), MaxTokensField::MaxTokens) => OutputLimit::MaxTokens(most),
                (Some(most), MaxTokensField::MaxCompletionTokens) => OutputLimit::MaxCompletionTokens(most),
            },
            system_role: match dialect.system_role {
                config::SystemRole::System => SystemRole::System,
                config::SystemRole::Developer => SystemRole::Developer,
            },
            include_usage: dialect.include_usage,
            limits,
            ..OpenAiConfig::new(key(endpoint), endpoint.model.clone())
        })?),
        ChatProvider::Anthropic(endpoint, dialect) => Arc::new(Anthropic::new(AnthropicConfig {
            base_url: endpoint.base_url.clone(),
            version: dialect.version.clone(),
            key_header: match dialect.auth_header {
                AuthHeader::Bearer => KeyHeader::Bearer,
                AuthHeader::XApiKey => KeyHeader::XApiKey,
            },
            window: text.window,
            max_output_tokens: text.max_output_tokens.unwrap_or(DEFAULT_OUTPUT_TOKENS),
            limits,
            model: endpoint.model.clone(),
            ..AnthropicConfig::new(key(endpoint))
        })?),
        ChatProvider::Rehearsal { script: None, pace } => Arc::new(Rehearsal::new().with_pace(*pace)),
        ChatProvider::Rehearsal { script: Some(path), pace } => {
            Arc::new(Rehearsal::scripted(script(path)?).with_pace(*pace))
        }
    })
}

fn script(path: &Path) -> anyhow::Result<Script> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the script {}", path.display()))?;
    Script::parse(&text).with_context(|| format!("the script {} cannot be used", path.display()))
}

pub(crate) fn key(endpoint: &Endpoint) -> Secret {
    Secret::new(endpoint.api_key.as_ref().map_or("", config::Secret::expose))
}

fn limits(text: &Text) -> Limits {
    Limits {
        first_byte: text.first_byte,
        idle: text.idle,
        retries: text.retries,
        max_retry_delay: text.retry_after_cap,
        ..Limits::default()
    }
}
