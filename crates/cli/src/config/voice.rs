//! `[voice]`: the live model, and the voice agent.

use quarterdeck_agents::voice::Settings;
use quarterdeck_transports::{GeminiLiveConfig, OpenAiRealtimeConfig, Secret};

use super::kinds::{base_url, choice, line, secret_file, whole};
use super::providers::{Endpoint, VoiceProvider, endpoint};
use super::reader::{Reader, settings};

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
    /// Built in, offline.
    Simulator,
}

/// `max_calls` is `limits.calls`, which holds for the server's connections too.
pub(super) fn voice(from: &mut Reader, max_calls: usize) -> Voice {
    from.table("voice", "The live model.");
    let about = "Who runs the model [default: \"gemini\" when GEMINI_API_KEY, GOOGLE_API_KEY or `voice.base_url` is set; \
                 else \"simulator\"]";
    let configured = from.optional("provider", choice(), about);
    let model = from.optional("model", line(), "Which model [default: by provider]");
    let about = "Where the provider is, or a simulator [default: by provider]";
    let url = from.optional("base_url", base_url(&["ws", "wss", "http", "https"]), about);
    let about = "A file that holds the provider's key; the provider's variable wins over it";
    let key_file = from.optional("api_key_file", secret_file(), about);
    let provider = VoiceProvider::choose(from, configured);
    let endpoint = endpoint(from, "voice", &provider.defaults(), model, url, key_file.as_deref());

    let voice = from.optional("voice", line(), "The model's voice [default: by provider]");
    let voice = voice.unwrap_or_else(|| provider.default_voice().into());
    from.set_effective("voice.voice", voice.clone(), None);
    let mut settings = Settings { calls: max_calls, ..Settings::default() };
    settings! { from;
        "guide_tokens": whole(0, 1_000_000) => settings.guide_tokens,
            "Tokens that the tools' full guides may take; beyond it each tool gets one line";
        "declare": choice() => settings.declare, "Tools that the model is told about: all, or those of its mode";
    }
    Voice { provider: live_provider(provider, endpoint, voice), settings }
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
        VoiceProvider::Simulator => LiveProvider::Simulator,
    }
}
