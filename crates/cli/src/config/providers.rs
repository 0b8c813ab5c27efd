//! Which provider is used, and the defaults of each.

use std::path::Path;

use quarterdeck_transports::{
    AnthropicConfig, GeminiConfig, GeminiLiveConfig, OpenAiConfig, OpenAiRealtimeConfig, Secret,
};

use super::kinds::{Choices, choices};
use super::origin::{Origin, variable_of};
use super::problem::Problem;
use super::reader::Reader;

choices! {
    enum TextProvider {
        Gemini = "gemini",
        OpenAi = "openai",
        Anthropic = "anthropic",
        Rehearsal = "rehearsal",
    }
}

choices! {
    enum VoiceProvider {
        Gemini = "gemini",
        OpenAi = "openai",
        Simulator = "simulator",
    }
}

/// How to reach a provider.
pub(super) struct Endpoint {
    /// Without a slash at the end.
    pub(super) base_url: String,
    pub(super) model: String,
    /// Always set for the provider itself; other servers of its protocol may need none.
    pub(super) api_key: Option<Secret>,
}

/// What is known of a provider without any configuration.
pub(super) struct Defaults {
    pub(super) name: &'static str,
    /// Variables that may hold its key.
    pub(super) keys: &'static [&'static str],
    /// `None` for those that are built in.
    pub(super) base_url: Option<String>,
    pub(super) model: Option<String>,
}

const GEMINI_KEYS: [&str; 2] = ["GEMINI_API_KEY", "GOOGLE_API_KEY"];
const OPENAI_KEYS: [&str; 1] = ["OPENAI_API_KEY"];
const OPENAI_URL: &str = "OPENAI_BASE_URL";
const ANTHROPIC_KEYS: [&str; 1] = ["ANTHROPIC_API_KEY"];

impl TextProvider {
    /// The configured one, or the first that the environment has a key for.
    pub(super) fn choose(from: &mut Reader, configured: Option<Self>) -> Self {
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

    pub(super) fn defaults(self) -> Defaults {
        let (keys, base_url, model): (&[&str], _, _) = match self {
            Self::Gemini => {
                (&GEMINI_KEYS, Some(GeminiConfig::DEFAULT_BASE_URL), Some(GeminiConfig::DEFAULT_MODEL))
            }
            // It runs many models, and none is the usual one.
            Self::OpenAi => (&OPENAI_KEYS, Some(OpenAiConfig::DEFAULT_BASE_URL), None),
            Self::Anthropic => (
                &ANTHROPIC_KEYS,
                Some(AnthropicConfig::DEFAULT_BASE_URL),
                Some(AnthropicConfig::DEFAULT_MODEL),
            ),
            Self::Rehearsal => (&[], None, Some("rehearsal")),
        };
        let (base_url, model) = (base_url.map(String::from), model.map(String::from));
        Defaults { name: self.as_str(), keys, base_url, model }
    }
}

impl VoiceProvider {
    /// The configured one. A server that is named without its provider speaks Gemini's protocol, as the simulator does.
    pub(super) fn choose(from: &mut Reader, configured: Option<Self>) -> Self {
        if let Some(configured) = configured {
            return configured;
        }
        let key = from.variables.first(&GEMINI_KEYS).map(|(name, _)| Origin::Variable(name.into()));
        let set = ["voice.base_url", "voice.api_key_file"].into_iter().find(|key| from.is_set(key));
        let origin = set.map(|set| from.origin(set)).or(key);
        let chosen = if origin.is_some() { Self::Gemini } else { Self::Simulator };
        from.set_effective("voice.provider", chosen.as_str(), origin);
        chosen
    }

    pub(super) fn defaults(self) -> Defaults {
        let (keys, base_url, model): (&[&str], _, _) = match self {
            Self::Gemini => {
                (&GEMINI_KEYS, Some(GeminiLiveConfig::DEFAULT_BASE_URL), GeminiLiveConfig::DEFAULT_MODEL)
            }
            Self::OpenAi => (
                &OPENAI_KEYS,
                Some(OpenAiRealtimeConfig::DEFAULT_BASE_URL),
                OpenAiRealtimeConfig::DEFAULT_MODEL,
            ),
            Self::Simulator => (&[], None, "simulator"),
        };
        // The libraries name the HTTP address, which the WebSocket is opened on.
        let base_url = base_url.map(|url| url.replacen("https", "wss", 1));
        Defaults { name: self.as_str(), keys, base_url, model: Some(model.into()) }
    }

    pub(super) fn default_voice(self) -> &'static str {
        match self {
            Self::Gemini | Self::Simulator => GeminiLiveConfig::DEFAULT_VOICE,
            Self::OpenAi => OpenAiRealtimeConfig::DEFAULT_VOICE,
        }
    }
}

/// What an agent's keys mean with the defaults of its provider. `table` is `text` or `voice`.
pub(super) fn endpoint(
    from: &mut Reader,
    table: &str,
    defaults: &Defaults,
    model: Option<String>,
    base_url: Option<String>,
    key_file: Option<&Path>,
) -> Endpoint {
    let key_of = |name: &str| format!("{table}.{name}");
    let model = model.or_else(|| defaults.model.clone()).unwrap_or_else(|| {
        let key = key_of("model");
        from.add_serve_problem(
            &key_of("provider"),
            format!("`{key}` is needed: {} runs many models, and none is the usual one", defaults.name),
            Some(format!("set {}, or `{key}`", variable_of(&key))),
        );
        String::new()
    });
    from.set_effective(&key_of("model"), model.clone(), None);

    let variable = from.variables.get(OPENAI_URL).filter(|_| defaults.name == "openai" && table == "text");
    let (base_url, origin) = match (base_url, variable) {
        (Some(url), _) => (url, None),
        (None, Some(url)) => {
            (url.trim_end_matches('/').to_owned(), Some(Origin::Variable(OPENAI_URL.into())))
        }
        (None, None) => (defaults.base_url.clone().unwrap_or_default(), None),
    };
    let shown = Some(base_url.clone()).filter(|url| !url.is_empty());
    from.set_effective(&key_of("base_url"), shown, origin.clone());
    if let Some(origin) = origin {
        from.check_url(&base_url, origin);
    }

    let file_key = key_of("api_key_file");
    let way_out = |variables: &str| format!("set {variables}, or name a file that holds it in `{file_key}`");
    let about = way_out("the provider's variable, such as GEMINI_API_KEY");
    // A built-in provider needs no key, and the file of another one may be missing.
    if let (None, Some(path)) = (&defaults.base_url, key_file) {
        from.skip_secret_file(&file_key, path);
    }
    let file = key_file.filter(|_| defaults.base_url.is_some());
    let api_key = from.take_secret(&key_of("api_key"), defaults.keys, (&file_key, file), &about);
    from.check_strength(&key_of("api_key"), api_key.as_ref(), 1);
    if api_key.is_none() && key_file.is_none() && defaults.base_url.as_ref() == Some(&base_url) {
        let help = way_out(&defaults.keys.join(" or "));
        from.add_serve_problem(&key_of("provider"), format!("{} needs a key", defaults.name), Some(help));
    }
    Endpoint { base_url, model, api_key }
}
