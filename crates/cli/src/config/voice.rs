//! `[voice]`: which model is spoken with.

use super::choices::choice;
use super::kinds::{BaseUrl, Line, Optional, whole};
use super::providers::{Endpoint, VoiceProvider, endpoint};
use super::reader::Reader;
use super::text::Declare;
use super::value::Value;

/// The voice agent and its model.
#[derive(Debug, Clone)]
pub(crate) struct Voice {
    pub(crate) provider: LiveProvider,
    /// The voice that is heard.
    pub(crate) voice: String,
    /// Tokens that the tools' full guides may take in the system instruction.
    pub(crate) guide_tokens: usize,
    pub(crate) declare: Declare,
}

/// A provider of live sessions.
#[derive(Debug, Clone)]
pub(crate) enum LiveProvider {
    Gemini(Endpoint),
    OpenAi(Endpoint),
    /// Built in, offline.
    Simulator,
}

/// Reads `[voice]`.
pub(super) fn voice(from: &mut Reader) -> Voice {
    from.table("voice", "The model that is spoken with.");
    let named = from.read(
        "voice.provider",
        Optional(choice::<VoiceProvider>()),
        Value::Absent,
        "Who runs the model [default: \"gemini\" when GEMINI_API_KEY, GOOGLE_API_KEY or `voice.base_url` is set; \
         else \"simulator\"]",
    );
    let model = from.read("voice.model", Optional(Line), Value::Absent, "Which model [default: by provider]");
    let schemes = BaseUrl(&["ws", "wss", "http", "https"]);
    let about = "Where the provider is, or a simulator [default: by provider]";
    let base_url = from.read("voice.base_url", Optional(schemes), Value::Absent, about);
    let about = "A file that holds the provider's key; the provider's variable wins over it";
    let key_file = from.read_secret_path("voice.api_key_file", about);
    let provider = VoiceProvider::choose(from, named);
    let endpoint = endpoint(from, "voice", &provider.facts(), model, base_url, key_file.as_deref());

    let voice = from.read(
        "voice.voice",
        Optional(Line),
        Value::Absent,
        "The voice that is heard [default: by provider]",
    );
    let voice = voice.unwrap_or_else(|| provider.voice().into());
    from.set_effective("voice.voice", voice.clone(), None);
    Voice {
        provider: match provider {
            VoiceProvider::Gemini => LiveProvider::Gemini(endpoint),
            VoiceProvider::OpenAi => LiveProvider::OpenAi(endpoint),
            VoiceProvider::Simulator => LiveProvider::Simulator,
        },
        voice,
        guide_tokens: from.read(
            "voice.guide_tokens",
            whole(0, 1_000_000),
            4_000_u64,
            "Tokens that the tools' full guides may take; beyond it each tool gets one line",
        ),
        declare: from.read(
            "voice.declare",
            choice(),
            "all",
            "Tools that the model is told about: all, or those of its mode",
        ),
    }
}
