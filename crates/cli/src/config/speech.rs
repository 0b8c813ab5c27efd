//! `[speech]`: the engines that hear and speak for models that do neither.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use quarterdeck_contracts::SPOKEN_RATE;
use quarterdeck_local_speech::{
    Component, MoonshineSettings, SynthesiserSettings, Voice as LocalVoice, cache_directory, installed,
};
use quarterdeck_transports::{
    AudioFormat, OpenAiSpeechToTextConfig, OpenAiTextToSpeechConfig, Secret, is_loopback_url,
};

use super::endpoint::{Defaults, Endpoint, OPENAI_KEYS, endpoint};
use super::kinds::{Choices, base_url, boolean, choice, choices, line, seconds, secret_file, whole};
use super::origin::Origin;
use super::reader::{Reader, settings};

/// The engines of the pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Speech {
    pub(crate) hearing: HearingEngine,
    pub(crate) speaking: SpeakingEngine,
    /// The language of users whose own is not known.
    pub(crate) language: Option<String>,
    /// What chose an engine, if the operator did.
    pub(super) chosen_by: Option<Origin>,
}

/// What turns speech into words, ready to be built.
#[derive(Debug, Clone)]
pub(crate) enum HearingEngine {
    /// The folder of a model on this machine.
    Local(PathBuf, MoonshineSettings),
    OpenAi(Box<OpenAiSpeechToTextConfig>),
    /// Why there is none.
    Missing(String),
}

/// What turns words into speech, ready to be built.
#[derive(Debug, Clone)]
pub(crate) enum SpeakingEngine {
    /// A program on this machine.
    Local(LocalVoice, SynthesiserSettings),
    OpenAi(Box<OpenAiTextToSpeechConfig>),
    /// Why there is none.
    Missing(String),
}

impl Speech {
    /// Whether both engines can be had: configured, or installed on this machine.
    pub(super) fn is_ready(&self) -> bool {
        !matches!(self.hearing, HearingEngine::Missing(_))
            && !matches!(self.speaking, SpeakingEngine::Missing(_))
    }
}

choices! {
    enum EngineProvider {
        Local = "local",
        OpenAi = "openai",
    }
}

choices! {
    enum Format {
        Pcm = "pcm",
        Wav = "wav",
    }
}

pub(super) fn speech(from: &mut Reader) -> Speech {
    let (hearing, language) = hearing(from);
    let speaking = speaking(from);
    let chosen_by = ["speech.stt.provider", "speech.tts.provider"].into_iter().find(|key| from.is_set(key));
    let chosen_by = chosen_by.map(|key| from.origin(key));
    Speech { hearing, speaking, language, chosen_by }
}

/// The engine, and the language of users.
fn hearing(from: &mut Reader) -> (HearingEngine, Option<String>) {
    let before = from.mark();
    from.table(
        "speech.stt",
        "What turns speech into words for `voice.provider = \"pipeline\"`. Other voice models hear by themselves.",
    );
    let asked = ask(
        from,
        "Which model; local: moonshine-base or moonshine-tiny [default: openai gpt-4o-mini-transcribe; local the best that is installed]",
    );
    let about = "The language of users, such as en or de-AT, where the conversation does not say it [default: the engine \
                 finds out]";
    let language = from.optional("language", line(), about);
    let about = "Ask openai for the probabilities of words, without which it is not known how sure a transcript is \
                 [default: true at OpenAI unless the model is whisper-1, else false]";
    let logprobs = from.optional("logprobs", boolean(), about);
    let defaults = OpenAiSpeechToTextConfig::new(None);
    let (mut limits, mut streams) = (defaults.limits, defaults.streams);
    settings! { from;
        "timeout_seconds": seconds(1, 600) => limits.total, "How long one utterance may take";
        "stream": boolean() => streams, "Ask openai for words as they are understood, for servers that have nothing else";
    }
    limits.first_byte = limits.total;
    let mut local = MoonshineSettings { timeout: limits.total, ..MoonshineSettings::default() };
    let about = "Utterances that are transcribed at a time [default: openai 32, local 2]";
    let max_requests = from.optional("max_requests", whole(1, 10_000), about);
    local.max_transcriptions = max_requests.unwrap_or(local.max_transcriptions);
    let max_requests = max_requests.unwrap_or(defaults.max_requests);
    let engine = asked.resolve(from, "speech.stt", OpenAiSpeechToTextConfig::DEFAULT_MODEL);
    let is_openai = engine.base_url == OpenAiSpeechToTextConfig::DEFAULT_BASE_URL;
    let logprobs = logprobs.unwrap_or(is_openai && engine.model != "whisper-1");
    from.set_effective("speech.stt.logprobs", logprobs, None);
    let Resolved { provider, base_url, model, api_key } = engine;
    if from.take_voice_problems(before) {
        return (HearingEngine::Missing("the engine of `speech.stt` cannot be used".into()), language);
    }
    let engine = match provider {
        EngineProvider::Local => match find_model(from, &model) {
            Some(folder) => HearingEngine::Local(folder, local),
            None if model.is_empty() => HearingEngine::Missing("no engine that hears is installed".into()),
            None => HearingEngine::Missing(format!("`speech.stt.model` {model:?} is not installed")),
        },
        EngineProvider::OpenAi => HearingEngine::OpenAi(Box::new(OpenAiSpeechToTextConfig {
            base_url,
            model,
            api_key,
            language: language.clone(),
            logprobs,
            streams,
            max_requests,
            limits,
        })),
    };
    (engine, language)
}

fn speaking(from: &mut Reader) -> SpeakingEngine {
    let before = from.mark();
    from.table(
        "speech.tts",
        "What turns words into speech for `voice.provider = \"pipeline\"`. Other voice models speak by themselves.",
    );
    let asked = ask(from, "Which model; local has voices instead [default: openai gpt-4o-mini-tts]");
    let about =
        "Which voice; local: piper, espeak-ng or say [default: openai alloy; local the best that is there]";
    let voice = from.optional("voice", line(), about);
    let (mut format, mut rate) = (Format::Pcm, SPOKEN_RATE);
    let defaults = OpenAiTextToSpeechConfig::new(None);
    let (mut limits, mut local) = (defaults.limits, SynthesiserSettings::default());
    settings! { from;
        "format": choice() => format, "What openai is asked for; \"wav\" for servers that have no \"pcm\"";
        "sample_rate": whole(8_000, 48_000) => rate, "Samples each second of \"pcm\", which does not say it";
        "first_byte_seconds": seconds(1, 600) => limits.first_byte, "How long openai may take to begin a sentence";
        "idle_seconds": seconds(1, 600) => limits.idle, "How long openai may pause within a sentence";
    }
    let about = "Sentences that are spoken at a time [default: openai 32, local 2]";
    let max_requests = from.optional("max_requests", whole(1, 10_000), about);
    local.max_sentences = max_requests.unwrap_or(local.max_sentences);
    let max_requests = max_requests.unwrap_or(defaults.max_requests);
    let Resolved { provider, base_url, model, api_key } =
        asked.resolve(from, "speech.tts", OpenAiTextToSpeechConfig::DEFAULT_MODEL);
    let voice = match provider {
        EngineProvider::Local => voice,
        EngineProvider::OpenAi => {
            Some(voice.unwrap_or_else(|| OpenAiTextToSpeechConfig::DEFAULT_VOICE.into()))
        }
    };
    from.set_effective("speech.tts.voice", voice.clone(), None);
    if from.take_voice_problems(before) {
        return SpeakingEngine::Missing("the engine of `speech.tts` cannot be used".into());
    }
    match provider {
        EngineProvider::Local => match (find_voice(from, voice.as_deref()), voice) {
            (Some(found), _) => SpeakingEngine::Local(found, local),
            (None, None) => SpeakingEngine::Missing("no engine that speaks is installed".into()),
            (None, Some(voice)) => {
                SpeakingEngine::Missing(format!("`speech.tts.voice` {voice:?} is not installed"))
            }
        },
        EngineProvider::OpenAi => SpeakingEngine::OpenAi(Box::new(OpenAiTextToSpeechConfig {
            base_url,
            model,
            api_key,
            voice: voice.unwrap_or_default(),
            format: match format {
                Format::Pcm => AudioFormat::Pcm { rate },
                Format::Wav => AudioFormat::Wav,
            },
            max_requests,
            limits,
        })),
    }
}

/// Where engines of this machine are kept.
fn cache(from: &Reader) -> Option<PathBuf> {
    let variable = |name| from.variables.get(name).map(OsStr::new);
    cache_directory(variable("XDG_CACHE_HOME"), variable("HOME"))
}

/// A model that is installed: the named one, or the best.
fn find_model(from: &Reader, name: &str) -> Option<PathBuf> {
    let cache = cache(from)?;
    match name {
        "" => installed(&cache, None).hears,
        "moonshine-base" | "moonshine-tiny" => Component::by_name(name)?.find(&cache),
        _ => None,
    }
}

/// A voice that is installed: the named one, or the best.
fn find_voice(from: &Reader, name: Option<&str>) -> Option<LocalVoice> {
    let path = from.variables.get("PATH").map(OsStr::new);
    let mut voices = installed(&cache(from)?, path).speaks.into_iter();
    voices.find(|voice| match voice {
        LocalVoice::Piper(_) => name.is_none_or(|name| name == "piper"),
        LocalVoice::Say(_) => name.is_none_or(|name| name == "say"),
        LocalVoice::Espeak(_) => name.is_none_or(|name| name == "espeak-ng"),
    })
}

/// What both engines are asked for, as given.
struct Asked {
    provider: EngineProvider,
    model: Option<String>,
    base_url: Option<String>,
    key_file: Option<PathBuf>,
}

/// The same with the provider's defaults.
struct Resolved {
    provider: EngineProvider,
    base_url: String,
    /// Empty where a local engine chooses.
    model: String,
    api_key: Option<Secret>,
}

fn ask(from: &mut Reader, about_model: &str) -> Asked {
    let mut provider = EngineProvider::Local;
    settings! { from;
        "provider": choice() => provider,
            "Who runs it: this machine, after `quarterdeck speech install`, or any server that speaks OpenAI's protocol";
    }
    let model = from.optional("model", line(), about_model);
    let about = "Where openai is: OpenAI, or any server that speaks its protocol [default: by provider]";
    let base_url = from.optional("base_url", base_url(&["http", "https"]), about);
    let about =
        "A file that holds the provider's key; it wins over OPENAI_API_KEY, which may be that of [text]";
    let key_file = from.optional("api_key_file", secret_file(), about);
    Asked { provider, model, base_url, key_file }
}

impl Asked {
    fn resolve(self, from: &mut Reader, table: &str, default_model: &str) -> Resolved {
        let Self { provider, model, base_url, key_file } = self;
        if provider == EngineProvider::Local {
            refuse_without_provider(from, table);
        }
        let defaults = provider.defaults(base_url.as_deref(), key_file.as_deref(), default_model);
        let Endpoint { base_url, model, api_key } =
            endpoint(from, table, &defaults, model, base_url, key_file.as_deref());
        Resolved { provider, base_url, model, api_key }
    }
}

impl EngineProvider {
    fn defaults(self, base_url: Option<&str>, key_file: Option<&Path>, model: &str) -> Defaults {
        let (keys, url, model): (&[&str], _, _) = match self {
            Self::Local => (&[], None, ""),
            // A key of OpenAI's is not for a server on this machine, and a file was named for this engine.
            Self::OpenAi if key_file.is_some() || base_url.is_some_and(is_loopback_url) => {
                (&[], Some(OpenAiSpeechToTextConfig::DEFAULT_BASE_URL), model)
            }
            Self::OpenAi => (&OPENAI_KEYS, Some(OpenAiSpeechToTextConfig::DEFAULT_BASE_URL), model),
        };
        let (base_url, model) = (url.map(String::from), Some(model.to_owned()));
        Defaults { name: self.as_str(), keys, base_url, base_url_variable: None, model }
    }
}

/// An address or a key without the provider is a mistake, not a wish to have the engine of this machine.
fn refuse_without_provider(from: &mut Reader, table: &str) {
    for name in ["base_url", "api_key_file"] {
        let key = format!("{table}.{name}");
        if from.is_set(&key) {
            let message = format!("`{key}` needs `{table}.provider = \"openai\"`");
            from.add_serve_problem(&key, message, Some("set it, or leave the key out".into()));
        }
    }
}
