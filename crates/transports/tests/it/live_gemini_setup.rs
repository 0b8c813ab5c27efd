//! The setup of a conversation with Gemini Live, beside what the official client sends.

use expect_test::expect;
use quarterdeck_contracts::{LiveModel, LiveSetup, Provider};
use quarterdeck_testkit::corpus;
use quarterdeck_transports::gemini::live::{
    Compression, Content, Declarations, Detection, Profile, Thinking, setup,
};
use quarterdeck_transports::{GeminiLive, GeminiLiveConfig};
use serde_json::{Map, Value, json};

use crate::live_provider::opening;

/// Nothing that the official client does not send unasked.
pub(crate) fn bare() -> GeminiLiveConfig {
    GeminiLiveConfig {
        model: "gemini-live-model".to_owned(),
        voice: String::new(),
        input_languages: None,
        output_languages: None,
        resumption: false,
        compression: None,
        ..GeminiLiveConfig::new("k")
    }
}

pub(crate) fn nothing() -> LiveSetup {
    LiveSetup { system: "".into(), ..opening() }
}

fn members(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Which behaviour is declared is our own choice, and stands in the profiles.
fn without_behavior(mut setup: Value) -> Value {
    for tool in setup.pointer_mut("/setup/tools").and_then(Value::as_array_mut).into_iter().flatten() {
        for declaration in tool["functionDeclarations"].as_array_mut().into_iter().flatten() {
            declaration.as_object_mut().unwrap().remove("behavior");
        }
    }
    setup
}

fn full() -> GeminiLiveConfig {
    GeminiLiveConfig {
        voice: "Kore".to_owned(),
        language: Some("en-US".to_owned()),
        temperature: Some(0.6),
        detection: Detection {
            disabled: Some(false),
            start: Some("START_SENSITIVITY_HIGH".to_owned()),
            end: Some("END_SENSITIVITY_LOW".to_owned()),
            prefix_padding_ms: Some(20),
            silence_ms: Some(100),
        },
        activity_handling: Some("START_OF_ACTIVITY_INTERRUPTS".to_owned()),
        turn_coverage: Some("TURN_INCLUDES_ONLY_ACTIVITY".to_owned()),
        input_languages: Some(Vec::new()),
        output_languages: Some(Vec::new()),
        resumption: true,
        compression: Some(Compression { trigger_tokens: Some(25_600), target_tokens: Some(12_800) }),
        ..bare()
    }
}

/// The settings that come to a recorded setup; `None` for one that we have no use for.
fn settings(name: &str, recorded: &Value) -> Option<(GeminiLiveConfig, LiveSetup)> {
    let tools = recorded.pointer("/setup/tools/0/functionDeclarations").and_then(Value::as_array);
    let tools = tools.cloned().unwrap_or_default().into();
    Some(match name {
        "compression-default-window" => {
            (GeminiLiveConfig { compression: Some(Compression::default()), ..bare() }, nothing())
        }
        "full" => (full(), LiveSetup { tools, ..opening() }),
        "manual-activity" => {
            let detection = Detection { disabled: Some(true), ..Detection::default() };
            let config = GeminiLiveConfig {
                detection,
                activity_handling: Some("NO_INTERRUPTION".to_owned()),
                turn_coverage: Some("TURN_INCLUDES_ALL_INPUT".to_owned()),
                ..bare()
            };
            (config, nothing())
        }
        "minimal" => (bare(), nothing()),
        "native-audio-options" => {
            let generation = json!({
                "topP": 0.9, "topK": 32, "maxOutputTokens": 512, "mediaResolution": "MEDIA_RESOLUTION_LOW",
                "seed": 7, "enableAffectiveDialog": true,
            });
            let config = GeminiLiveConfig {
                thinking: Thinking { budget: Some(0), level: None, include_thoughts: Some(true) },
                generation: members(generation),
                extra: members(json!({"proactivity": {"proactiveAudio": true}})),
                ..bare()
            };
            (config, nothing())
        }
        "resume-with-handle" => (bare(), LiveSetup { resume: Some("handle-abc123".to_owned()), ..nothing() }),
        "thinking-level" => {
            let thinking = Thinking { level: Some("MINIMAL".to_owned()), ..Thinking::default() };
            (GeminiLiveConfig { thinking, ..bare() }, nothing())
        }
        "transcription-options" => {
            let input_languages = Some(vec!["en-US".to_owned(), "hi-IN".to_owned()]);
            (GeminiLiveConfig { input_languages, output_languages: Some(Vec::new()), ..bare() }, nothing())
        }
        // A setup without a modality: what we open is always spoken.
        "empty-config" | "no-config" => return None,
        // A search of Google's beside ours, and an instruction in two parts: we have one of ours, in one.
        "tools-mixed" => return None,
        other => panic!("an unknown recorded setup: {other}"),
    })
}

#[test]
fn a_setup_is_what_the_official_client_sends() {
    let Some(folder) = corpus("wire/gemini-live") else { return };
    let mut compared = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = file.strip_prefix("client-setup-").and_then(|name| name.strip_suffix(".json"))
        else {
            continue;
        };
        let recorded: Value = serde_json::from_slice(&std::fs::read(folder.join(&file)).unwrap()).unwrap();
        let Some((config, opening)) = settings(name, &recorded) else { continue };
        let ours = setup(&config, &Profile::of("gemini-3.1-flash-live-preview"), &opening);
        assert_eq!(ours, without_behavior(recorded), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 8);
}

#[test]
fn our_own_setup_is_this() {
    let tool = json!({"name": "tide", "description": "When the tide is high", "parametersJsonSchema": {"type": "object"}});
    let config = GeminiLiveConfig::new("k");
    let opening = LiveSetup { tools: vec![tool].into(), ..opening() };
    let setup = setup(&config, &Profile::of(&config.model), &opening);
    let expected = expect![[r#"
        {
          "setup": {
            "model": "models/gemini-3.8-live",
            "generationConfig": {
              "responseModalities": [
                "AUDIO"
              ],
              "speechConfig": {
                "voiceConfig": {
                  "prebuiltVoiceConfig": {
                    "voiceName": "Algenib"
                  }
                }
              }
            },
            "systemInstruction": {
              "parts": [
                {
                  "text": "You are a terse assistant."
                }
              ],
              "role": "user"
            },
            "tools": [
              {
                "functionDeclarations": [
                  {
                    "name": "tide",
                    "description": "When the tide is high",
                    "parametersJsonSchema": {
                      "type": "object"
                    },
                    "behavior": "NON_BLOCKING"
                  }
                ]
              }
            ],
            "sessionResumption": {},
            "inputAudioTranscription": {},
            "outputAudioTranscription": {},
            "contextWindowCompression": {
              "slidingWindow": {}
            }
          }
        }
    "#]];
    expected.assert_eq(&format!("{setup:#}\n"));
}

#[test]
fn a_family_is_known_by_how_its_names_begin_and_an_unknown_one_is_taken_for_the_newest() {
    let newest = Profile::of("gemini-3.8-live");
    assert_eq!((newest.behavior, newest.takes_scheduling), (Some("NON_BLOCKING"), true));
    for name in ["models/gemini-3.8-live-extended-thinking", "gemini-4-live", "something"] {
        assert_eq!(Profile::of(name), newest, "{name}");
    }
    let old = Profile::of("models/gemini-3.1-flash-live-preview");
    assert_eq!((old.behavior, old.takes_scheduling, old.content), (None, false, Content::InitialHistory));
    for name in ["gemini-2.5-flash-native-audio-preview-12-2025", "gemini-live-2.5-flash-native-audio"] {
        assert_eq!(Profile::of(name).behavior, Some("NON_BLOCKING"), "{name}");
    }
}

#[test]
fn the_form_of_declarations_is_a_field_of_the_profile() {
    let parameters = json!({
        "type": "object", "required": ["tool_id"], "additionalProperties": false,
        "properties": { "tool_id": { "type": "string", "description": "The id." } },
    });
    let of = |declarations: Declarations| {
        let profile = Profile { declarations, ..Profile::of("gemini-3.8-live") };
        let config = GeminiLiveConfig { profile: Some(profile), ..GeminiLiveConfig::new("key") };
        let model = GeminiLive::new(config).unwrap();
        (model.declarations(), model.fuller_declarations(), model.declare("x", "y", &parameters))
    };
    let (usual, fuller, declared) = of(Declarations::NativeOrJsonSchema);
    assert_eq!((usual, fuller), (Provider::GeminiNative, Some(Provider::GeminiJsonSchema)));
    assert_eq!(declared["parametersJsonSchema"], parameters);
    let (usual, fuller, declared) = of(Declarations::Native);
    assert_eq!((usual, fuller), (Provider::GeminiNative, None));
    assert_eq!(
        declared,
        json!({ "name": "x", "description": "y", "parameters": {
            "type": "OBJECT", "required": ["tool_id"],
            "properties": { "tool_id": { "type": "STRING", "description": "The id." } },
        } })
    );
}
