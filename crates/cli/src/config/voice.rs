//! `[voice]`: the live model, and the voice agent.

use quarterdeck_agents::voice::Settings;
use quarterdeck_transports::{GeminiLiveConfig, OpenAiRealtimeConfig, Secret};

use super::endpoint::{Defaults, Endpoint, GEMINI_KEYS, OPENAI_KEYS, endpoint};
use super::kinds::{Choices, base_url, boolean, choice, choices, line, or_none, secret_file, whole};
use super::origin::Origin;
use super::reader::{Reader, settings};
use super::speech::Speech;

/// The voice agent and its model.
#[derive(Debug, Clone)]
pub(crate) struct Voice {
    pub(crate) provider: LiveProvider,
    pub(crate) settings: Settings,
}

/// A provider of live sessions, ready to be built.
#[derive(Debug, Clone)]
pub(crate) enum LiveProvider {
    Gemini(Box<GeminiLiveConfig>),
    OpenAi(Box<OpenAiRealtimeConfig>),
    /// The chat model of `[text]`, with the engines of `[speech]`.
    Pipeline,
    /// Built in, offline.
    Simulator,
}

choices! {
    enum VoiceProvider {
        Gemini = "gemini",
        OpenAi = "openai",
        Pipeline = "pipeline",
        Simulator = "simulator",
    }
}

/// `max_calls` is `limits.calls`, which holds for the server's connections too.
pub(super) fn voice(from: &mut Reader, max_calls: usize, speech: &Speech) -> Voice {
    from.table("voice", "The live model.");
    let about = "Who runs the model; \"pipeline\" is the model of [text] with the engines of [speech] [default: \"gemini\" when \
                 GEMINI_API_KEY, GOOGLE_API_KEY or `voice.base_url` is set; else \"pipeline\" when its engines are installed \
                 or configured; else \"simulator\"]";
    let configured = from.optional("provider", choice(), about);
    let model = from.optional("model", line(), "Which model [default: by provider]");
    let about = "Where the provider is, or a simulator [default: by provider]";
    let url = from.optional("base_url", base_url(&["ws", "wss", "http", "https"]), about);
    let about = "A file that holds the provider's key; the provider's variable wins over it";
    let key_file = from.optional("api_key_file", secret_file(), about);
    let provider = VoiceProvider::choose(from, configured, speech);
    let endpoint = endpoint(from, "voice", &provider.defaults(), model, url, key_file.as_deref());

    let voice = from.optional("voice", line(), "The model's voice [default: by provider]");
    let voice = voice.or_else(|| provider.default_voice().map(String::from));
    from.set_effective("voice.voice", voice.clone(), None);
    if provider == VoiceProvider::Pipeline {
        refuse_for_pipeline(from);
    }
    let mut settings = Settings { calls: max_calls, ..Settings::default() };
    settings! { from;
        "guide_tokens": whole(0, 1_000_000) => settings.guide_tokens,
            "Tokens that the tools' full guides may take; beyond it each tool gets one line";
        "declare": choice() => settings.declare, "Tools that the model is told about: all, or those of its mode";
        "filler": or_none(line()) => settings.filler,
            "What the model is asked to say while a tool takes long and there is silence; \"none\" for nothing";
        "ear": boolean() => settings.ear,
            "Whether the server listens for the user itself, so that an interruption does not wait for the provider to notice it; \
             the pipeline always does";
    }
    Voice { provider: live_provider(provider, endpoint, voice.unwrap_or_default()), settings }
}

fn live_provider(provider: VoiceProvider, endpoint: Endpoint, voice: String) -> LiveProvider {
    let Endpoint { base_url, model, api_key } = endpoint;
    // A simulator at another address takes any key, but the protocol needs one.
    let key = api_key.unwrap_or_else(|| Secret::from("simulator"));
    match provider {
        VoiceProvider::Gemini => {
            let config = GeminiLiveConfig { base_url, model, voice, ..GeminiLiveConfig::new(key) };
            LiveProvider::Gemini(Box::new(config))
        }
        VoiceProvider::OpenAi => {
            let config = OpenAiRealtimeConfig { base_url, model, voice, ..OpenAiRealtimeConfig::new(key) };
            LiveProvider::OpenAi(Box::new(config))
        }
        VoiceProvider::Pipeline => LiveProvider::Pipeline,
        VoiceProvider::Simulator => LiveProvider::Simulator,
    }
}

/// What the pipeline has in tables of its own.
fn refuse_for_pipeline(from: &mut Reader) {
    for (key, instead) in [
        ("voice.model", "`text.model`"),
        ("voice.base_url", "`text.base_url`"),
        ("voice.api_key_file", "`text.api_key_file`"),
        ("voice.voice", "`speech.tts.voice`"),
    ] {
        if from.is_set(key) {
            let message = format!(
                "`{key}` is not for the pipeline, which has the model of [text] and the voice of [speech.tts]"
            );
            from.add_serve_problem(key, message, Some(format!("leave it out, or set {instead}")));
        }
    }
}

impl VoiceProvider {
    /// The configured one. A server that is named without its provider speaks Gemini's protocol, as the simulator does.
    fn choose(from: &mut Reader, configured: Option<Self>, speech: &Speech) -> Self {
        if let Some(configured) = configured {
            return configured;
        }
        let key = from.variables.first(&GEMINI_KEYS).map(|(name, _)| Origin::Variable(name.into()));
        let set = ["voice.base_url", "voice.api_key_file"].into_iter().find(|key| from.is_set(key));
        let gemini = set.map(|set| from.origin(set)).or(key);
        let (chosen, origin) = match gemini {
            Some(origin) => (Self::Gemini, Some(origin)),
            None if speech.is_ready() => (Self::Pipeline, speech.chosen_by.clone()),
            None => (Self::Simulator, None),
        };
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
            Self::Pipeline => (&[], None, "pipeline"),
            Self::Simulator => (&[], None, "simulator"),
        };
        // The libraries name the HTTP address, which the WebSocket is opened on.
        let base_url = base_url.map(|url| url.replacen("https", "wss", 1));
        Defaults { name: self.as_str(), keys, base_url, base_url_variable: None, model: Some(model.into()) }
    }

    fn default_voice(self) -> Option<&'static str> {
        match self {
            Self::Gemini | Self::Simulator => Some(GeminiLiveConfig::DEFAULT_VOICE),
            Self::OpenAi => Some(OpenAiRealtimeConfig::DEFAULT_VOICE),
            // `speech.tts.voice` is its voice.
            Self::Pipeline => None,
        }
    }
}
