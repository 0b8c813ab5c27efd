//! `[fallback]`: the chat model that is asked when the one of `[text]` fails.

use std::time::Duration;

use quarterdeck_transports::openai::{OutputLimit, SystemRole};
use quarterdeck_transports::{AnthropicConfig, GeminiConfig, Limits, OpenAiConfig};

use super::endpoint::{Defaults, Endpoint, endpoint};
use super::kinds::{Choices, base_url, choice, choices, line, seconds, secret_file, whole};
use super::reader::{Reader, settings};
use super::text::{ChatProvider, Text, TextProvider};

/// How long the first model's provider is waited for when it says when to come back: with a fallback, users need not wait.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);

choices! {
    enum FallbackProvider {
        /// What users write goes to one provider unless the operator names another.
        None = "none",
        Gemini = "gemini",
        OpenAi = "openai",
        Anthropic = "anthropic",
        Rehearsal = "rehearsal",
    }
}

/// Reads the fallback, and lets the first model give up earlier where there is one.
pub(super) fn fallback(from: &mut Reader, text: &mut Text) {
    let mut provider = FallbackProvider::None;
    from.table(
        "fallback",
        "The chat model that is asked once when the one of [text] fails before its first word. Calls have none.",
    );
    settings! { from;
        "provider": choice() => provider, "Who runs it; what users write goes there as well";
    }
    let model = from.optional("model", line(), "Which model [default: by provider]");
    let about = "Where the provider is; openai also takes OPENAI_BASE_URL [default: by provider]";
    let url = from.optional("base_url", base_url(&["http", "https"]), about);
    let about = "A file that holds the provider's key; it wins over the provider's variable, which may be that of [text]";
    let key_file = from.optional("api_key_file", secret_file(), about);
    let mut defaults = provider.defaults();
    if key_file.is_some() {
        defaults.keys = &[];
    }
    let endpoint = endpoint(from, "fallback", &defaults, model, url, key_file.as_deref());
    let about = "Tokens that a request and its answer may have together [default: by provider]";
    let window = from.optional("window", whole(1_000, 100_000_000), about);
    let about = "Tokens that an answer may have [default: the provider's own limit; anthropic 8192]";
    let max_output_tokens = from.optional("max_output_tokens", whole(16, 1_000_000), about);
    let mut limits = Limits::default();
    settings! { from;
        "first_byte_seconds": seconds(1, 3_600) => limits.first_byte, "How long it may take to begin";
        "idle_seconds": seconds(1, 3_600) => limits.idle, "How long it may pause";
        "retries": whole(0, 10) => limits.retries,
            "How often a request is made again that was refused or lost before any text came";
    }
    match provider.text_provider() {
        None => refuse_without_provider(from),
        Some(provider) => {
            let sizes = Sizes { window, max_output_tokens };
            text.fallback = Some(chat_provider(provider, endpoint, sizes, limits));
            shorten_waits(from, text);
        }
    }
}

impl FallbackProvider {
    fn text_provider(self) -> Option<TextProvider> {
        match self {
            Self::None => None,
            Self::Gemini => Some(TextProvider::Gemini),
            Self::OpenAi => Some(TextProvider::OpenAi),
            Self::Anthropic => Some(TextProvider::Anthropic),
            Self::Rehearsal => Some(TextProvider::Rehearsal),
        }
    }

    fn defaults(self) -> Defaults {
        match self.text_provider() {
            Some(provider) => provider.defaults(),
            None => Defaults {
                name: self.as_str(),
                keys: &[],
                base_url: None,
                base_url_variable: None,
                model: Some("none".into()),
            },
        }
    }
}

/// Tokens, where they are not the provider's usual ones.
struct Sizes {
    window: Option<usize>,
    max_output_tokens: Option<u32>,
}

fn chat_provider(provider: TextProvider, endpoint: Endpoint, sizes: Sizes, limits: Limits) -> ChatProvider {
    let Endpoint { base_url, model, api_key } = endpoint;
    let Sizes { window, max_output_tokens } = sizes;
    let key = api_key.clone().unwrap_or_else(|| "".into());
    match provider {
        TextProvider::Gemini => {
            let config = GeminiConfig::new(key);
            let window = window.unwrap_or(config.window);
            ChatProvider::Gemini(GeminiConfig {
                base_url,
                model,
                window,
                max_output_tokens,
                limits,
                ..config
            })
        }
        TextProvider::OpenAi => {
            let config = OpenAiConfig::new("", "");
            let is_openai = base_url == OpenAiConfig::DEFAULT_BASE_URL;
            let output_limit = match max_output_tokens {
                None => OutputLimit::Unsaid,
                Some(tokens) if is_openai => OutputLimit::MaxCompletionTokens(tokens),
                Some(tokens) => OutputLimit::MaxTokens(tokens),
            };
            // Other servers of the protocol know only this role, and OpenAI's know it too.
            let system_role = SystemRole::System;
            let window = window.unwrap_or(config.window);
            ChatProvider::OpenAi(OpenAiConfig {
                base_url,
                model,
                api_key,
                window,
                output_limit,
                system_role,
                limits,
                ..config
            })
        }
        TextProvider::Anthropic => {
            let config = AnthropicConfig::new(key);
            let window = window.unwrap_or(config.window);
            let max_output_tokens = max_output_tokens.unwrap_or(config.max_output_tokens);
            ChatProvider::Anthropic(AnthropicConfig {
                base_url,
                model,
                window,
                max_output_tokens,
                limits,
                ..config
            })
        }
        TextProvider::Rehearsal => ChatProvider::Rehearsal { script: None, pace: Duration::from_millis(20) },
    }
}

/// Unless the operator has said how long the first model's provider is waited for.
fn shorten_waits(from: &mut Reader, text: &mut Text) {
    let key = "text.retry_after_cap_seconds";
    if from.is_set(key) {
        return;
    }
    let limits = match &mut text.provider {
        ChatProvider::Gemini(config) => &mut config.limits,
        ChatProvider::OpenAi(config) => &mut config.limits,
        ChatProvider::Anthropic(config) => &mut config.limits,
        ChatProvider::Rehearsal { .. } => return,
    };
    limits.max_retry_delay = MAX_RETRY_DELAY;
    from.set_effective(key, MAX_RETRY_DELAY.as_secs(), None);
}

/// A model's address or key without its provider is a mistake, not a wish to have no fallback.
fn refuse_without_provider(from: &mut Reader) {
    for key in ["fallback.model", "fallback.base_url", "fallback.api_key_file"] {
        if from.is_set(key) {
            let help = "set `fallback.provider`; most servers of other vendors speak \"openai\"";
            from.add_serve_problem(key, format!("`{key}` needs `fallback.provider`"), Some(help.into()));
        }
    }
}
