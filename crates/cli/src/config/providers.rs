//! Which provider is used, and what is known of each.

use std::path::Path;

use super::choices::{Choices, choices};
use super::origin::Origin;
use super::problem::Problem;
use super::reader::Reader;
use super::secret::Secret;

choices! {
    /// Who answers in writing.
    enum TextProvider {
        Gemini = "gemini",
        OpenAi = "openai",
        Anthropic = "anthropic",
        Rehearsal = "rehearsal",
    }
}

choices! {
    /// Who answers by voice.
    enum VoiceProvider {
        Gemini = "gemini",
        OpenAi = "openai",
        Simulator = "simulator",
    }
}

/// How to reach a provider.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    /// Without a slash at the end.
    pub(crate) base_url: String,
    pub(crate) model: String,
    /// There always is one where the provider itself is asked; other servers may do without.
    pub(crate) api_key: Option<Secret>,
}

/// What is known of a provider.
pub(super) struct Facts {
    pub(super) name: &'static str,
    /// Variables that may hold its key.
    pub(super) keys: &'static [&'static str],
    /// Where it is; `None` where nothing is asked over a network.
    pub(super) base_url: Option<&'static str>,
    pub(super) model: Option<&'static str>,
    pub(super) window: usize,
    pub(super) max_output_tokens: Option<u32>,
}

const GEMINI: [&str; 2] = ["GEMINI_API_KEY", "GOOGLE_API_KEY"];
const OPENAI: [&str; 1] = ["OPENAI_API_KEY"];
pub(super) const OPENAI_BASE: &str = "https://api.openai.com/v1";
const OPENAI_URL: &str = "OPENAI_BASE_URL";
const ANTHROPIC: [&str; 1] = ["ANTHROPIC_API_KEY"];

impl TextProvider {
    /// The one that was named, or the first that the environment has a key for.
    pub(super) fn choose(from: &mut Reader, named: Option<Self>) -> Self {
        if let Some(named) = named {
            let script = from.raw_origin("text.rehearsal.script");
            if let Some(origin @ Origin::Flag(_)) = script.filter(|_| named != Self::Rehearsal) {
                let message =
                    format!("this is for rehearsal alone, and `text.provider` is {:?}", named.as_str());
                let help = Some("set QUARTERDECK_TEXT__PROVIDER=rehearsal, or leave the flag out".into());
                from.serve_problems.push(Problem { origin, message, help });
            }
            return named;
        }
        if let Some(origin) = from.raw_origin("text.rehearsal.script") {
            from.set_effective("text.provider", Self::Rehearsal.as_str(), Some(origin));
            return Self::Rehearsal;
        }
        // A provider that was misspelt is one problem, not two.
        let is_silent = !from.is_set("text.provider");
        for key in ["text.base_url", "text.api_key_file"] {
            if is_silent && from.is_set(key) {
                from.block_serve(
                    key,
                    format!(
                        "`{key}` needs `text.provider`: which protocol is spoken there cannot be guessed"
                    ),
                    Some("set `text.provider`; most servers of other vendors speak \"openai\"".into()),
                );
            }
        }
        let by_environment = [
            (Self::Gemini, &GEMINI[..]),
            (Self::OpenAi, &[OPENAI[0], OPENAI_URL]),
            (Self::Anthropic, &ANTHROPIC),
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

    pub(super) fn facts(self) -> Facts {
        let name = self.as_str();
        match self {
            Self::Gemini => Facts {
                name,
                keys: &GEMINI,
                base_url: Some("https://generativelanguage.googleapis.com"),
                model: Some("gemini-3.8-flash"),
                window: 1_048_576,
                max_output_tokens: None,
            },
            Self::OpenAi => Facts {
                name,
                keys: &OPENAI,
                base_url: Some(OPENAI_BASE),
                model: None,
                window: 128_000,
                max_output_tokens: None,
            },
            // The protocol wants every request to say how long the answer may be.
            Self::Anthropic => Facts {
                name,
                keys: &ANTHROPIC,
                base_url: Some("https://api.anthropic.com"),
                model: Some("claude-sonnet-5-5"),
                window: 200_000,
                max_output_tokens: Some(8_192),
            },
            Self::Rehearsal => Facts {
                name,
                keys: &[],
                base_url: None,
                model: Some("rehearsal"),
                window: 32_000,
                max_output_tokens: None,
            },
        }
    }
}

impl VoiceProvider {
    /// The one that was named. A server that was named speaks Gemini's protocol, as the simulator does.
    pub(super) fn choose(from: &mut Reader, named: Option<Self>) -> Self {
        if let Some(named) = named {
            return named;
        }
        let key = from.variables.first(&GEMINI).map(|(name, _)| Origin::Variable(name.into()));
        let given = ["voice.base_url", "voice.api_key_file"].into_iter().find(|key| from.is_set(key));
        let origin = given.map(|given| from.origin(given)).or(key);
        let chosen = if origin.is_some() { Self::Gemini } else { Self::Simulator };
        from.set_effective("voice.provider", chosen.as_str(), origin);
        chosen
    }

    pub(super) fn facts(self) -> Facts {
        let (name, window, max_output_tokens) = (self.as_str(), 0, None);
        let (keys, base_url, model): (&[&str], _, _) = match self {
            Self::Gemini => (&GEMINI, Some("wss://generativelanguage.googleapis.com"), "gemini-3.8-live"),
            Self::OpenAi => (&OPENAI, Some("wss://api.openai.com/v1"), "gpt-realtime-2.1"),
            Self::Simulator => (&[], None, "simulator"),
        };
        Facts { name, keys, base_url, model: Some(model), window, max_output_tokens }
    }

    /// The voice that is heard unless somebody chose another.
    pub(super) fn voice(self) -> &'static str {
        match self {
            Self::Gemini | Self::Simulator => "Algenib",
            Self::OpenAi => "marin",
        }
    }
}

/// What an agent's keys come to with what is known of its provider. `table` is `text` or `voice`.
pub(super) fn endpoint(
    from: &mut Reader,
    table: &str,
    facts: &Facts,
    model: Option<String>,
    base_url: Option<String>,
    key_file: Option<&Path>,
) -> Endpoint {
    let key_of = |name: &str| format!("{table}.{name}");
    let model = model.or_else(|| facts.model.map(String::from)).unwrap_or_else(|| {
        from.block_serve(
            &key_of("provider"),
            format!(
                "`{}` is needed: {} runs many models, and none is the usual one",
                key_of("model"),
                facts.name
            ),
            Some(format!("set {}, or `{}`", super::origin::variable_of(&key_of("model")), key_of("model"))),
        );
        String::new()
    });
    from.set_effective(&key_of("model"), model.clone(), None);

    let of_variable = || from.variables.get(OPENAI_URL).filter(|_| facts.name == "openai" && table == "text");
    let (base_url, origin) = match (base_url, of_variable()) {
        (Some(url), _) => (url, None),
        (None, Some(url)) => {
            (url.trim_end_matches('/').to_owned(), Some(Origin::Variable(OPENAI_URL.into())))
        }
        (None, None) => (facts.base_url.unwrap_or_default().to_owned(), None),
    };
    from.set_effective(
        &key_of("base_url"),
        Some(base_url.clone()).filter(|url| !url.is_empty()),
        origin.clone(),
    );
    if let Some(origin) = origin {
        from.check_url(&base_url, origin);
    }

    let file_key = key_of("api_key_file");
    let way_out = |variables: &str| format!("set {variables}, or name a file that holds it in `{file_key}`");
    let about = way_out("the provider's variable, such as GEMINI_API_KEY");
    // What is built in needs no key, and a file that somebody else would need may be missing.
    if let (None, Some(path)) = (facts.base_url, key_file) {
        from.skip_secret_file(&file_key, path);
    }
    let file = key_file.filter(|_| facts.base_url.is_some());
    let api_key = from.secret(&key_of("api_key"), facts.keys, (&file_key, file), &about);
    from.check_strength(&key_of("api_key"), api_key.as_ref(), 1);
    if api_key.is_none() && key_file.is_none() && facts.base_url.is_some_and(|usual| usual == base_url) {
        let help = way_out(&facts.keys.join(" or "));
        from.block_serve(&key_of("provider"), format!("{} needs a key", facts.name), Some(help));
    }
    Endpoint { base_url, model, api_key }
}
