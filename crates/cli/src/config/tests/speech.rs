//! Which engines hear and speak, and when the pipeline takes calls.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use quarterdeck_transports::AudioFormat;

use super::super::*;
use super::{config, loaded, row, with};

const REMOTE: &str = "[speech.stt]\nprovider = 'openai'\n[speech.tts]\nprovider = 'openai'\n";
const KEY: (&str, &str) = ("OPENAI_API_KEY", "sk-a-key-of-openai");

/// A cache with Moonshine, and a folder of programs with espeak-ng.
fn install(folder: &Path, model: &str) {
    let model = folder.join("quarterdeck/speech").join(model);
    fs::create_dir_all(&model).unwrap();
    for file in ["encoder_model.onnx", "decoder_model_merged.onnx", "tokenizer.json"] {
        fs::write(model.join(file), "").unwrap();
    }
    fs::write(folder.join("espeak-ng"), "").unwrap();
    fs::set_permissions(folder.join("espeak-ng"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_pipeline_takes_calls_once_its_engines_are_there_unless_gemini_does() {
    let provider = |file: &str, variables: &[(&str, &str)]| row(&loaded(file, variables), "voice.provider");
    assert_eq!(provider("", &[]), r#""simulator" from default"#);
    assert_eq!(provider(REMOTE, &[KEY]), r#""pipeline" from quarterdeck.toml:2"#);
    assert_eq!(
        provider("", &[KEY]),
        r#""simulator" from default"#,
        "a key for chats does not send audio away"
    );
    let gemini = ("GEMINI_API_KEY", "a-key-of-gemini");
    assert_eq!(provider(REMOTE, &[KEY, gemini]), r#""gemini" from env GEMINI_API_KEY"#);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    let cache = [("XDG_CACHE_HOME", at), ("PATH", at)];
    assert_eq!(provider("", &cache), r#""simulator" from default"#, "nothing is installed");
    install(folder.path(), "moonshine-tiny");
    assert_eq!(provider("", &cache), r#""pipeline" from default"#);
    assert_eq!(provider("", &cache[..1]), r#""simulator" from default"#, "it has no voice");
    assert_eq!(provider("voice.provider = 'simulator'", &cache), r#""simulator" from quarterdeck.toml:1"#);
}

#[test]
fn a_local_engine_is_chosen_by_name_or_reported_as_missing() {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path(), "moonshine-tiny");
    let at = folder.path().to_str().unwrap();
    let engines = |file: &str| {
        let Speech { hearing, speaking, .. } = config(file, &[("XDG_CACHE_HOME", at), ("PATH", at)]).speech;
        let hears = match hearing {
            HearingEngine::Local(folder, _) => folder.file_name().unwrap().to_str().unwrap().to_owned(),
            HearingEngine::Missing(reason) => reason,
            HearingEngine::OpenAi(_) => panic!("not local"),
        };
        let speaks = match speaking {
            SpeakingEngine::Local(voice, _) => voice.name(),
            SpeakingEngine::Missing(reason) => reason,
            SpeakingEngine::OpenAi(_) => panic!("not local"),
        };
        (hears, speaks)
    };
    assert_eq!(engines(""), ("moonshine-tiny".into(), "local/espeak-ng".into()));
    let (hears, speaks) = engines("[speech.stt]\nmodel = 'moonshine-base'\n[speech.tts]\nvoice = 'piper'\n");
    assert_eq!(hears, "`speech.stt.model` \"moonshine-base\" is not installed");
    assert_eq!(speaks, "`speech.tts.voice` \"piper\" is not installed");
    assert_eq!(engines("speech.tts.voice = 'espeak-ng'").1, "local/espeak-ng");
}

#[test]
fn an_engine_without_its_key_is_reported_and_the_server_starts_all_the_same() {
    let loaded =
        with(&format!("voice.provider = 'pipeline'\n{REMOTE}"), &[], ServeOptions::default()).unwrap();
    let told: Vec<_> = loaded.voice_problems.texts().collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("quarterdeck.toml:3: openai needs a key"), "{told:?}");
    assert!(told[0].contains("OPENAI_API_KEY") && told[0].contains("speech.stt.api_key_file"), "{told:?}");
    assert!(matches!(loaded.config.speech.hearing, HearingEngine::Missing(_)));
    assert!(matches!(loaded.config.voice.provider, LiveProvider::Pipeline));
}

#[test]
fn a_server_of_the_protocol_is_reached_as_it_says() {
    let file = "[speech.stt]\nprovider = 'openai'\nbase_url = 'http://127.0.0.1:9/v1/'\nmodel = 'whisper'\n\
                language = 'de-AT'\ntimeout_seconds = 7\nmax_requests = 3\n\
                [speech.tts]\nprovider = 'openai'\nbase_url = 'http://127.0.0.1:9/v1'\nvoice = 'af_sky'\n\
                format = 'wav'\nfirst_byte_seconds = 4\nidle_seconds = 2\n";
    let speech = config(file, &[KEY]).speech;
    let (HearingEngine::OpenAi(hears), SpeakingEngine::OpenAi(speaks)) = (speech.hearing, speech.speaking)
    else {
        panic!("not over HTTP")
    };
    assert_eq!((&*hears.base_url, &*hears.model), ("http://127.0.0.1:9/v1", "whisper"));
    assert_eq!((hears.language.as_deref(), hears.logprobs, hears.max_requests), (Some("de-AT"), false, 3));
    assert_eq!(
        (hears.limits.total, hears.limits.first_byte),
        (Duration::from_secs(7), Duration::from_secs(7))
    );
    assert_eq!(hears.api_key, None, "a key of OpenAI's is not for a server on this machine");
    assert_eq!(
        (&*speaks.model, &*speaks.voice, speaks.format),
        ("gpt-4o-mini-tts", "af_sky", AudioFormat::Wav)
    );
    assert_eq!(
        (speaks.limits.first_byte, speaks.limits.idle),
        (Duration::from_secs(4), Duration::from_secs(2))
    );
    assert_eq!(speech.language.as_deref(), Some("de-AT"));
    let HearingEngine::OpenAi(openai) = config(REMOTE, &[KEY]).speech.hearing else { panic!("not OpenAI") };
    assert!(openai.logprobs && openai.api_key.is_some());
    assert_eq!((&*openai.model, openai.max_requests), ("gpt-4o-mini-transcribe", 32));
    let old = REMOTE.replacen("'openai'\n", "'openai'\nmodel = 'whisper-1'\n", 1);
    let HearingEngine::OpenAi(whisper) = config(&old, &[KEY]).speech.hearing else { panic!("not OpenAI") };
    assert!(!whisper.logprobs, "whisper-1 has none");
}

#[test]
fn settings_that_belong_elsewhere_are_refused_with_where() {
    let file = "[voice]\nprovider = 'pipeline'\nmodel = 'm'\nvoice = 'Kore'\n";
    let problems = with(file, &[], ServeOptions::default()).unwrap_err().to_string();
    assert!(problems.contains("quarterdeck.toml:3: `voice.model` is not for the pipeline"), "{problems}");
    assert!(
        problems.contains("set `text.model`") && problems.contains("set `speech.tts.voice`"),
        "{problems}"
    );
    let file = "speech.stt.base_url = 'http://127.0.0.1:9/v1'\n";
    let loaded = with(file, &[], ServeOptions::default()).unwrap();
    let told: Vec<_> = loaded.voice_problems.texts().collect();
    assert!(told[0].contains("`speech.stt.base_url` needs `speech.stt.provider = \"openai\"`"), "{told:?}");
}
