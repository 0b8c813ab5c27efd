//! `[text]`: which model answers in writing, and how it is asked.

use std::path::PathBuf;
use std::time::Duration;

use super::choices::{Choices, choice, choices};
use super::kinds::{BaseUrl, Bool, FILE, Line, Optional, millis, seconds, whole};
use super::providers::{Endpoint, Facts, OPENAI_BASE, TextProvider, endpoint};
use super::reader::Reader;
use super::value::Value;

/// The text agent and its model.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) provider: ChatProvider,
    /// Tokens that a request and its answer may have together.
    pub(crate) window: usize,
    /// Tokens that an answer may have; `None` leaves it to the provider.
    pub(crate) max_output_tokens: Option<u32>,
    /// Model rounds in a turn.
    pub(crate) rounds: u32,
    /// Tokens that the tools' full guides may take in the system instruction.
    pub(crate) guide_tokens: usize,
    pub(crate) declare: Declare,
    /// How long the model may take to begin.
    pub(crate) first_byte: Duration,
    /// How long the model may pause.
    pub(crate) idle: Duration,
    pub(crate) retries: u32,
    /// The longest `Retry-After` that is waited for.
    pub(crate) retry_after_cap: Duration,
}

/// A provider with what only it needs.
#[derive(Debug, Clone)]
pub(crate) enum ChatProvider {
    Gemini(Endpoint),
    OpenAi(Endpoint, OpenAiDialect),
    Anthropic(Endpoint, AnthropicDialect),
    /// Built in, offline.
    Rehearsal {
        /// Exact calls to make, if there is such a file.
        script: Option<PathBuf>,
        /// How long it pauses between two pieces of text.
        pace: Duration,
    },
}

/// What differs between servers that speak OpenAI's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenAiDialect {
    pub(crate) system_role: SystemRole,
    pub(crate) max_tokens_field: MaxTokensField,
    /// Whether usage is asked for.
    pub(crate) include_usage: bool,
}

/// What differs between servers that speak Anthropic's protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnthropicDialect {
    /// The `anthropic-version` header.
    pub(crate) version: String,
    pub(crate) auth_header: AuthHeader,
}

choices! {
    /// Whose word the system instruction is.
    enum SystemRole {
        System = "system",
        Developer = "developer",
    }
}

choices! {
    /// The member that limits an answer.
    enum MaxTokensField {
        MaxTokens = "max_tokens",
        MaxCompletionTokens = "max_completion_tokens",
    }
}

choices! {
    /// How Anthropic gets its key.
    enum AuthHeader {
        Bearer = "bearer",
        XApiKey = "x-api-key",
    }
}

choices! {
    /// Which tools a model is told about.
    enum Declare {
        /// All of them, so that it can be told why one is refused.
        All = "all",
        /// Those of its mode.
        Mode = "mode",
    }
}

/// Reads `[text]` and what is below it.
pub(super) fn text(from: &mut Reader) -> Text {
    from.table("text", "The model that answers in writing.");
    let named = from.read(
        "text.provider",
        Optional(choice::<TextProvider>()),
        Value::Absent,
        "Who runs the model [default: the first whose variable is set: GEMINI_API_KEY or GOOGLE_API_KEY, \
         OPENAI_API_KEY or OPENAI_BASE_URL, ANTHROPIC_API_KEY; else \"rehearsal\"]",
    );
    let about = "Which model; openai has no usual one and needs this, or QUARTERDECK_TEXT__MODEL [default: by provider]";
    let model = from.read("text.model", Optional(Line), Value::Absent, about);
    let schemes = BaseUrl(&["http", "https"]);
    let about = "Where the provider is; openai also takes OPENAI_BASE_URL [default: by provider]";
    let base_url = from.read("text.base_url", Optional(schemes), Value::Absent, about);
    let about = "A file that holds the provider's key; the provider's variable wins over it";
    let key_file = from.read_secret_path("text.api_key_file", about);
    let provider = TextProvider::choose(from, named);
    let facts: Facts = provider.facts();
    let endpoint = endpoint(from, "text", &facts, model, base_url, key_file.as_deref());

    let about = "Tokens that a request and its answer may have together [default: by provider]";
    let window = from.read("text.window", Optional(whole(1_000, 100_000_000)), Value::Absent, about);
    let window = window.unwrap_or(facts.window);
    from.set_effective("text.window", window, None);
    let about = "Tokens that an answer may have [default: the provider's own limit; anthropic 8192]";
    let max_output =
        from.read("text.max_output_tokens", Optional(whole(16, 1_000_000)), Value::Absent, about);
    let max_output_tokens = max_output.or(facts.max_output_tokens);
    from.set_effective("text.max_output_tokens", max_output_tokens, None);

    let mut text = Text {
        provider: ChatProvider::Rehearsal { script: None, pace: Duration::ZERO },
        window,
        max_output_tokens,
        rounds: from.read(
            "text.rounds",
            whole(1, 100),
            8_u64,
            "Model rounds in a turn; the last has no tools",
        ),
        guide_tokens: from.read(
            "text.guide_tokens",
            whole(0, 1_000_000),
            16_000_u64,
            "Tokens that the tools' full guides may take; beyond it each tool gets one line",
        ),
        declare: from.read(
            "text.declare",
            choice(),
            "all",
            "Tools that the model is told about: all, or those of its mode",
        ),
        first_byte: from.read(
            "text.first_byte_seconds",
            seconds(1, 3_600),
            60_u64,
            "How long the model may take to begin",
        ),
        idle: from.read("text.idle_seconds", seconds(1, 3_600), 60_u64, "How long the model may pause"),
        retries: from.read(
            "text.retries",
            whole(0, 10),
            2_u64,
            "How often a request is made again that was refused or lost before any text came",
        ),
        retry_after_cap: from.read(
            "text.retry_after_cap_seconds",
            seconds(0, 600),
            20_u64,
            "The longest Retry-After of a provider that is waited for",
        ),
    };
    let is_openai = endpoint.base_url == OPENAI_BASE;
    let (openai, anthropic, rehearsal) = (openai(from, is_openai), anthropic(from), rehearsal(from));
    text.provider = match provider {
        TextProvider::Gemini => ChatProvider::Gemini(endpoint),
        TextProvider::OpenAi => ChatProvider::OpenAi(endpoint, openai),
        TextProvider::Anthropic => ChatProvider::Anthropic(endpoint, anthropic),
        TextProvider::Rehearsal => rehearsal,
    };
    text
}

fn openai(from: &mut Reader, is_openai: bool) -> OpenAiDialect {
    from.table(
        "text.openai",
        "What differs between servers that speak OpenAI's protocol. Others do not look at it.",
    );
    let about = "The role of the system instruction; newer models of OpenAI want \"developer\"";
    let system_role = from.read("text.openai.system_role", choice(), "system", about);
    let about = "The member that limits an answer [default: \"max_completion_tokens\" at OpenAI, else \"max_tokens\"]";
    let field = from.read("text.openai.max_tokens_field", Optional(choice()), Value::Absent, about);
    let max_tokens_field = field.unwrap_or(match is_openai {
        true => MaxTokensField::MaxCompletionTokens,
        false => MaxTokensField::MaxTokens,
    });
    from.set_effective("text.openai.max_tokens_field", max_tokens_field.as_str(), None);
    OpenAiDialect {
        system_role,
        max_tokens_field,
        include_usage: from.read(
            "text.openai.include_usage",
            Bool,
            true,
            "Ask for the usage at the end of a stream",
        ),
    }
}

fn anthropic(from: &mut Reader) -> AnthropicDialect {
    from.table(
        "text.anthropic",
        "What differs between servers that speak Anthropic's protocol. Others do not look at it.",
    );
    AnthropicDialect {
        version: from.read("text.anthropic.version", Line, "2026-10-21", "The anthropic-version header"),
        auth_header: from.read(
            "text.anthropic.auth_header",
            choice(),
            "bearer",
            "How the key is sent; proxies often know only \"x-api-key\"",
        ),
    }
}

fn rehearsal(from: &mut Reader) -> ChatProvider {
    from.table("text.rehearsal", "The model that is built in. Others do not look at it.");
    let about = "A file with the exact calls to make, for tests";
    let script = from.read("text.rehearsal.script", Optional(FILE), Value::Absent, about);
    let about = "How long it pauses between two pieces of text";
    ChatProvider::Rehearsal {
        script,
        pace: from.read("text.rehearsal.pace_ms", millis(0, 10_000), 20_u64, about),
    }
}
