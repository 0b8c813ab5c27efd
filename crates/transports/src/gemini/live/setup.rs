//! The first message of a connection.

use quarterdeck_contracts::LiveSetup;
use serde_json::{Map, Value, json};

use super::GeminiLiveConfig;
use super::config::{Detection, Thinking};
use super::profile::{Content, Profile};

/// The setup of a conversation. Empty objects are sent, because they switch something on.
pub fn setup(config: &GeminiLiveConfig, profile: &Profile, opening: &LiveSetup) -> Value {
    let mut setup = Map::new();
    setup.insert("model".to_owned(), config.full_model().into());
    setup.insert("generationConfig".to_owned(), generation_config(config).into());
    if !opening.system.is_empty() {
        let instruction = json!({ "parts": [{ "text": *opening.system }], "role": "user" });
        setup.insert("systemInstruction".to_owned(), instruction);
    }
    if !opening.tools.is_empty() {
        let declarations: Vec<_> = opening.tools.iter().map(|tool| declaration(tool, profile)).collect();
        setup.insert("tools".to_owned(), json!([{ "functionDeclarations": declarations }]));
    }
    if let Some(handle) = &opening.resume {
        setup.insert("sessionResumption".to_owned(), json!({ "handle": handle }));
    } else if config.resumption {
        setup.insert("sessionResumption".to_owned(), json!({}));
    }
    for (name, languages) in [
        ("inputAudioTranscription", &config.input_languages),
        ("outputAudioTranscription", &config.output_languages),
    ] {
        match languages.as_deref() {
            None => continue,
            Some([]) => setup.insert(name.to_owned(), json!({})),
            Some(languages) => setup.insert(name.to_owned(), json!({ "languageCodes": languages })),
        };
    }
    let input = realtime_input(config);
    if !input.is_empty() {
        setup.insert("realtimeInputConfig".to_owned(), input.into());
    }
    if let Some(compression) = &config.compression {
        setup.insert("contextWindowCompression".to_owned(), compression.to_json());
    }
    if profile.content == Content::InitialHistory && !opening.history.is_empty() {
        setup.insert("historyConfig".to_owned(), json!({ "initialHistoryInClientContent": true }));
    }
    setup.extend(config.extra.clone());
    json!({ "setup": setup })
}

fn generation_config(config: &GeminiLiveConfig) -> Map<String, Value> {
    let mut generation = Map::new();
    generation.insert("responseModalities".to_owned(), json!(["AUDIO"]));
    if let Some(temperature) = config.temperature {
        generation.insert("temperature".to_owned(), temperature.into());
    }
    let mut speech = Map::new();
    if !config.voice.is_empty() {
        let voice = json!({ "prebuiltVoiceConfig": { "voiceName": config.voice } });
        speech.insert("voiceConfig".to_owned(), voice);
    }
    if let Some(language) = &config.language {
        speech.insert("languageCode".to_owned(), language.as_str().into());
    }
    if !speech.is_empty() {
        generation.insert("speechConfig".to_owned(), speech.into());
    }
    let thinking = thinking(&config.thinking);
    if !thinking.is_empty() {
        generation.insert("thinkingConfig".to_owned(), thinking.into());
    }
    generation.extend(config.generation.clone());
    generation
}

fn thinking(thinking: &Thinking) -> Map<String, Value> {
    let Thinking { budget, level, include_thoughts } = thinking;
    members([
        ("thinkingBudget", budget.map(Value::from)),
        ("thinkingLevel", level.as_deref().map(Value::from)),
        ("includeThoughts", include_thoughts.map(Value::from)),
    ])
}

fn realtime_input(config: &GeminiLiveConfig) -> Map<String, Value> {
    let Detection { disabled, start, end, prefix_padding_ms, silence_ms } = &config.detection;
    let detection = members([
        ("disabled", disabled.map(Value::from)),
        ("startOfSpeechSensitivity", start.as_deref().map(Value::from)),
        ("endOfSpeechSensitivity", end.as_deref().map(Value::from)),
        ("prefixPaddingMs", prefix_padding_ms.map(Value::from)),
        ("silenceDurationMs", silence_ms.map(Value::from)),
    ]);
    members([
        ("automaticActivityDetection", (!detection.is_empty()).then_some(Value::Object(detection))),
        ("activityHandling", config.activity_handling.as_deref().map(Value::from)),
        ("turnCoverage", config.turn_coverage.as_deref().map(Value::from)),
    ])
}

/// A declaration with the behaviour that the family wants, or without one if it takes none.
fn declaration(tool: &Value, profile: &Profile) -> Value {
    let mut tool = tool.clone();
    if let Some(members) = tool.as_object_mut() {
        match profile.behavior {
            Some(behavior) => {
                members.insert("behavior".to_owned(), behavior.into());
            }
            None => {
                members.shift_remove("behavior");
            }
        }
    }
    tool
}

fn members<const N: usize>(all: [(&str, Option<Value>); N]) -> Map<String, Value> {
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
