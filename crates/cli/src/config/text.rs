//! `[text]`: the chat model, and the text agent.

use std::path::PathBuf;
use std::time::Duration;

use quarterdeck_agents::Declare;
use quarterdeck_agents::text::Settings;
use quarterdeck_transports::anthropic::KeyHeader;
use quarterdeck_transports::openai::{Dialect, OutputLimit, SystemRole};
use quarterdeck_transports::{
    AnthropicConfig, GeminiConfig, KnownServer, Limits, OpenAiConfig, is_loopback_url,
};

use super::endpoint::{Defaults, Endpoint, GEMINI_KEYS, OPENAI_KEYS, OPENAI_URL, endpoint};
use super::kinds::{
    Choices, base_url, boolean, choice, choices, file, line, millis, seconds, secret_file, whole,
};
use super::origin::Origin;
use super::problem::Problem;
use super::reader::{Reader, settings};

/// The text agent and its model.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) provider: ChatProvider,
    /// Asked when the first one fails; `[fallback]` sets it.
    pub(crate) fallback: Option<ChatProvider>,
    pub(crate) settings: Settings,
}

/// A chat provider, ready to be built.
#[derive(Debug, Clone)]
pub(crate) enum ChatProvider {
    Gemini(GeminiConfig),
    OpenAi(OpenAiConfig),
    Anthropic(AnthropicConfig),
    /// Built in, offline.
    Rehearsal {
        /// A file with the exact calls to make.
        script: Option<PathBuf>,
        /// Pause between two pieces of text.
        pace: Duration,
    },
}

choices! {
    enum TextProvider {
        Gemini = "gemini",
        OpenAi = "openai",
        Anthropic = "anthropic",
        Rehearsal = "rehearsal",
    }
}
choices! { for SystemRole { System = "system", Developer = "developer", } }
choices! { for Dialect { OpenAi = "openai", Compatible = "compatible", } }
choices! { for KeyHeader { Bearer = "bearer", XApiKey = "x-api-key", } }
choices! { for Declare { All = "all", Mode = "mode", } }
choices! {
    /// The member that limits an answer.
    enum MaxTokensField {
        MaxTokens = "max_tokens",
        MaxCompletionTokens = "max_completion_tokens",
    }
}

const ANTHROPIC_KEYS: [&str; 1] = ["ANTHROPIC_API_KEY"];

/// Window of the rehearsal model, in tokens.
const REHEARSAL_WINDOW: usize = 32_000;

/// How long one answer of a model on this machine may take: it may be loaded first, and then is slow.
const LOCAL_ROUND_DEADLINE: Duration = Duration::from_secs(15 * 60);

/// `own_port` is where the server listens, and so no model does.
pub(super) fn text(from: &mut Reader, own_port: u16) -> Text {
    from.table("text", "The chat model.");
    let about = "Who runs the model [default: the first whose variable is set: GEMINI_API_KEY or GOOGLE_API_KEY, \
                 OPENAI_API_KEY or OPENAI_BASE_URL, ANTHROPIC_API_KEY; else \"rehearsal\"]";
    let before = from.mark();
    let configured = from.optional("provider", choice(), about);
    let about = "Which model; ollama/NAME, lmstudio/NAME and llama.cpp/NAME are models on this machine, on those servers' \
                 usual ports [default: by provider]";
    let model = from.optional("model", line(), about);
    let about = "Where the provider is; openai also takes OPENAI_BASE_URL [default: by provider]";
    let url = from.optional("base_url", base_url(&["http", "https"]), about);
    let about = "A file that holds the provider's key; the provider's variable wins over it";
    let key_file = from.optional("api_key_file", secret_file(), about);
    let is_free = configured.is_none() && url.is_none();
    let local = model.as_deref().filter(|_| is_free).and_then(|model| KnownServer::of_model(model, own_port));
    let (mut provider, mut endpoint) = match local {
        Some((server, model)) => local_endpoint(from, server, model),
        None => {
            let provider = TextProvider::choose(from, configured);
            let defaults = provider.defaults_at(from, url.as_deref());
            (provider, endpoint(from, "text", &defaults, model.clone(), url, key_file.as_deref()))
        }
    };
    if from.take_model_problems(before) {
        (provider, endpoint) = rehearsal_instead(from);
    }

    let mut model = ModelSettings::new(provider);
    let mut settings = Settings::default();
    if is_loopback_url(&endpoint.base_url) {
        model.limits.first_byte = Limits::LOCAL_FIRST_BYTE;
        settings.round_deadline = LOCAL_ROUND_DEADLINE;
    }
    model.read(from);
    settings! { from;
        "rounds": whole(1, 100) => settings.rounds, "Model rounds in a turn; the last has no tools";
        "guide_tokens": whole(0, 1_000_000) => settings.guide_tokens,
            "Tokens that the tools' full guides may take; beyond it each tool gets one line";
        "declare": choice() => settings.declare, "Tools that the model is told about: all, or those of its mode";
        "first_byte_seconds": seconds(1, 3_600) => model.limits.first_byte, "How long the model may take to begin; \
            on this machine, where it may be loaded first, 300 unless it is set";
        "idle_seconds": seconds(1, 3_600) => model.limits.idle, "How long the model may pause";
        "retries": whole(0, 10) => model.limits.retries,
            "How often a request is made again that was refused or lost before any text came";
        "retry_after_cap_seconds": seconds(0, 600) => model.limits.max_retry_delay,
            "The longest Retry-After of a provider that is waited for";
    }
    Text { provider: chat_provider(from, provider, endpoint, model), fallback: None, settings }
}

/// A model on this machine, which wants no key: another provider's must not be sent to it.
fn local_endpoint(from: &mut Reader, server: KnownServer, model: &str) -> (TextProvider, Endpoint) {
    let origin = from.origin("text.model");
    let (provider, base_url) = (TextProvider::OpenAi, server.base_url());
    from.set_effective("text.provider", provider.as_str(), Some(origin.clone()));
    from.set_effective("text.base_url", base_url.clone(), Some(origin));
    (provider, Endpoint { base_url, model: model.to_owned(), api_key: None })
}

/// What answers in the place of a model that cannot be used.
fn rehearsal_instead(from: &mut Reader) -> (TextProvider, Endpoint) {
    let model = "rehearsal";
    for key in ["text.provider", "text.model"] {
        from.set_effective(key, model, Some(Origin::Default));
    }
    from.set_effective("text.base_url", None::<String>, Some(Origin::Default));
    (TextProvider::Rehearsal, Endpoint { base_url: String::new(), model: model.to_owned(), api_key: None })
}

impl TextProvider {
    /// The configured one, or the first that the environment has a key for.
    fn choose(from: &mut Reader, configured: Option<Self>) -> Self {
        let script = from.raw_origin("text.rehearsal.script");
        if let Some(configured) = configured {
            if let Some(origin @ Origin::Flag(_)) = script.filter(|_| configured != Self::Rehearsal) {
                let message =
                    format!("this is for rehearsal alone, and `text.provider` is {:?}", configured.as_str());
                let help = Some("set QUARTERDECK_TEXT__PROVIDER=rehearsal, or leave the flag out".into());
                from.serve_problems.push(Problem { origin, message, help });
            }
            return configured;
        }
        if script.is_some() {
            from.set_effective("text.provider", Self::Rehearsal.as_str(), script);
            return Self::Rehearsal;
        }
        // A provider that was misspelt is one problem, not two.
        let is_silent = !from.is_set("text.provider");
        for key in ["text.base_url", "text.api_key_file"] {
            if is_silent && from.is_set(key) {
                from.add_serve_problem(
                    key,
                    format!(
                        "`{key}` needs `text.provider`: which protocol is spoken there cannot be guessed"
                    ),
                    Some("set `text.provider`; most servers of other vendors speak \"openai\"".into()),
                );
            }
        }
        let by_environment = [
            (Self::Gemini, &GEMINI_KEYS[..]),
            (Self::OpenAi, &[OPENAI_KEYS[0], OPENAI_URL]),
            (Self::Anthropic, &ANTHROPIC_KEYS),
        ];
        let found = by_environment
            .iter()
            .find_map(|(provider, names)| Some((*provider, from.variables.first(names)?.0)));
        let (chosen, origin) = match found {
            Some((provider, name)) => (provider, Some(Origin::Variable(name.into()))),
            None => (Self::Rehearsal, None),
        };
        from.set_effective("text.provider", chosen.as_str(), origin);
        chosen
    }

    /// The defaults at an address. Which models another server of OpenAI's protocol has is not known.
    fn defaults_at(self, from: &Reader, url: Option<&str>) -> Defaults {
        let defaults = self.defaults();
        let variable = defaults.base_url_variable.and_then(|name| from.variables.get(name));
        let url = url.or(variable).map(|url| url.trim_end_matches('/'));
        let is_elsewhere = url.is_some_and(|url| defaults.base_url.as_deref() != Some(url));
        let model = defaults.model.filter(|_| self != Self::OpenAi || !is_elsewhere);
        Defaults { model, ..defaults }
    }

    pub(super) fn defaults(self) -> Defaults {
        let (keys, base_url, model): (&[&str], _, _) = match self {
            Self::Gemini => {
                (&GEMINI_KEYS, Some(GeminiConfig::DEFAULT_BASE_URL), Some(GeminiConfig::DEFAULT_MODEL))
            }
            Self::OpenAi => {
                (&OPENAI_KEYS, Some(OpenAiConfig::DEFAULT_BASE_URL), Some(OpenAiConfig::DEFAULT_MODEL))
            }
            Self::Anthropic => (
                &ANTHROPIC_KEYS,
                Some(AnthropicConfig::DEFAULT_BASE_URL),
                Some(AnthropicConfig::DEFAULT_MODEL),
            ),
            Self::Rehearsal => (&[], None, Some("rehearsal")),
        };
        let (base_url, model) = (base_url.map(String::from), model.map(String::from));
        let base_url_variable = matches!(self, Self::OpenAi).then_some(OPENAI_URL);
        Defaults { name: self.as_str(), keys, base_url, base_url_variable, model }
    }
}

/// What all chat models have.
struct ModelSettings {
    window: usize,
    max_output_tokens: Option<u32>,
    limits: Limits,
}

impl ModelSettings {
    fn new(provider: TextProvider) -> Self {
        let (window, max_output_tokens) = match provider {
            TextProvider::Gemini => (GeminiConfig::new("").window, None),
            TextProvider::OpenAi => (OpenAiConfig::new("", "").window, None),
            TextProvider::Anthropic => {
                let config = AnthropicConfig::new("");
                (config.window, Some(config.max_output_tokens))
            }
            TextProvider::Rehearsal => (REHEARSAL_WINDOW, None),
        };
        Self { window, max_output_tokens, limits: Limits::default() }
    }

    fn read(&mut self, from: &mut Reader) {
        let about = "Tokens that a request and its answer may have together [default: by provider]";
        let window = from.optional("window", whole(1_000, 100_000_000), about);
        self.window = window.unwrap_or(self.window);
        from.set_effective("text.window", self.window, None);
        let about = "Tokens that an answer may have [default: the provider's own limit; anthropic 8192]";
        let max_output_tokens = from.optional("max_output_tokens", whole(16, 1_000_000), about);
        self.max_output_tokens = max_output_tokens.or(self.max_output_tokens);
        from.set_effective("text.max_output_tokens", self.max_output_tokens, None);
    }
}

/// Reads the tables of all providers, and builds the configuration of the one that is used.
fn chat_provider(
    from: &mut Reader,
    provider: TextProvider,
    endpoint: Endpoint,
    model: ModelSettings,
) -> ChatProvider {
    let ModelSettings { window, max_output_tokens, limits } = model;
    let openai = openai(from, &endpoint, max_output_tokens);
    let anthropic = anthropic(from);
    let rehearsal = rehearsal(from);
    let Endpoint { base_url, model, api_key } = endpoint;
    let key = api_key.clone().unwrap_or_else(|| "".into());
    match provider {
        TextProvider::Gemini => ChatProvider::Gemini(GeminiConfig {
            base_url,
            model,
            window,
            max_output_tokens,
            limits,
            ..GeminiConfig::new(key)
        }),
        TextProvider::OpenAi => {
            ChatProvider::OpenAi(OpenAiConfig { base_url, model, api_key, window, limits, ..openai })
        }
        TextProvider::Anthropic => ChatProvider::Anthropic(AnthropicConfig {
            base_url,
            model,
            api_key: key,
            window,
            max_output_tokens: max_output_tokens.unwrap_or(anthropic.max_output_tokens),
            limits,
            ..anthropic
        }),
        TextProvider::Rehearsal => rehearsal,
    }
}

fn openai(from: &mut Reader, endpoint: &Endpoint, max_output_tokens: Option<u32>) -> OpenAiConfig {
    // Other servers of the protocol know only this role.
    let mut config = OpenAiConfig { system_role: SystemRole::System, ..OpenAiConfig::new("", "") };
    from.table(
        "text.openai",
        "What differs between servers that speak OpenAI's protocol. Others do not look at it.",
    );
    settings! { from;
        "system_role": choice() => config.system_role,
            "The role of the system instruction; newer models of OpenAI want \"developer\"";
    }
    let about = "The member that limits an answer [default: \"max_completion_tokens\" at OpenAI, else \"max_tokens\"]";
    let field = from.optional("max_tokens_field", choice(), about);
    let is_openai = endpoint.base_url == OpenAiConfig::DEFAULT_BASE_URL;
    let field = field.unwrap_or(match is_openai {
        true => MaxTokensField::MaxCompletionTokens,
        false => MaxTokensField::MaxTokens,
    });
    from.set_effective("text.openai.max_tokens_field", field.as_str(), None);
    let about = "How tools are declared: with all of JSON Schema, or with what llama.cpp, Ollama, LM Studio and vLLM take \
                 [default: \"openai\" at OpenAI, else \"compatible\"]";
    let dialect = from.optional("dialect", choice(), about);
    config.dialect = dialect.unwrap_or(if is_openai { Dialect::OpenAi } else { Dialect::Compatible });
    from.set_effective("text.openai.dialect", config.dialect.as_str(), None);
    settings! { from;
        "include_usage": boolean() => config.include_usage, "Ask for the usage at the end of a stream";
    }
    config.output_limit = match (max_output_tokens, field) {
        (None, _) => OutputLimit::Unsaid,
        (Some(tokens), MaxTokensField::MaxTokens) => OutputLimit::MaxTokens(tokens),
        (Some(tokens), MaxTokensField::MaxCompletionTokens) => OutputLimit::MaxCompletionTokens(tokens),
    };
    config
}

fn anthropic(from: &mut Reader) -> AnthropicConfig {
    let mut config = AnthropicConfig::new("");
    from.table(
        "text.anthropic",
        "What differs between servers that speak Anthropic's protocol. Others do not look at it.",
    );
    settings! { from;
        "version": line() => config.version, "The anthropic-version header";
        "auth_header": choice() => config.key_header, "How the key is sent; proxies often know only \"x-api-key\"";
        "prompt_cache": boolean() => config.prompt_cache,
            "Ask the provider to keep tools, instruction and conversation in its cache";
    }
    config
}

fn rehearsal(from: &mut Reader) -> ChatProvider {
    let mut pace = Duration::from_millis(20);
    from.table("text.rehearsal", "The model that is built in. Others do not look at it.");
    let script = from.optional("script", file(), "A file with the exact calls to make, for tests");
    settings! { from;
        "pace_ms": millis(0, 10_000) => pace, "How long it pauses between two pieces of text";
    }
    ChatProvider::Rehearsal { script, pace }
}
