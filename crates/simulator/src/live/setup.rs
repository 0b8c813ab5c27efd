//! The setup frame, and why the provider would refuse it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::client_frame::{find, quote, text_of};
use super::scenario::Behaviour;

const MAX_TOOLS: usize = 1_024;
const MAX_NAME_BYTES: usize = 128;

/// What differs between families of models, as data.
struct Family {
    /// Of the names of its models.
    prefix: &'static str,
    is_audio_only: bool,
    /// Paths of options that it is documented to refuse: with any value, or with this one only.
    refused_options: &'static [(&'static [&'static str], Option<bool>)],
}

const FAMILIES: [Family; 1] = [Family {
    prefix: "gemini-3.8-live",
    is_audio_only: true,
    refused_options: &[
        (&["generationConfig", "thinkingConfig", "thinkingLevel"], None),
        (&["proactivity", "proactiveAudio"], Some(false)),
        (&["generationConfig", "enableAffectiveDialog"], None),
    ],
}];

#[derive(Debug, Clone, Default)]
pub(super) struct Setup {
    pub(super) system: String,
    /// The declarations of functions, as they came.
    pub(super) declarations: Vec<Value>,
    pub(super) behaviours: BTreeMap<String, Behaviour>,
    pub(super) speaks: bool,
    pub(super) transcribes_input: bool,
    pub(super) transcribes_output: bool,
    pub(super) resumption: Option<Resumption>,
    pub(super) detects_speech: bool,
    pub(super) silence: Option<Duration>,
    pub(super) may_be_interrupted: bool,
    pub(super) signals_speech: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resumption {
    pub(super) handle: Option<String>,
}

impl Setup {
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        let model = find(value, "model").and_then(Value::as_str).unwrap_or_default();
        let Some(model) = model.strip_prefix("models/").filter(|model| !model.is_empty()) else {
            return Err("setup.model must be “models/NAME”".into());
        };
        let generation = find(value, "generationConfig").unwrap_or(&Value::Null);
        let modalities = find(generation, "responseModalities").and_then(Value::as_array);
        let speaks = modalities.is_none_or(|all| all.iter().any(|it| it == "AUDIO"));
        for family in FAMILIES.iter().filter(|family| model.starts_with(family.prefix)) {
            family.check(value, speaks)?;
        }
        let realtime = find(value, "realtimeInputConfig").unwrap_or(&Value::Null);
        let detection = find(realtime, "automaticActivityDetection").unwrap_or(&Value::Null);
        let silence = find(detection, "silenceDurationMs").and_then(Value::as_u64);
        let mut setup = Self {
            system: find(value, "systemInstruction").map(text_of).unwrap_or_default(),
            speaks,
            transcribes_input: find(value, "inputAudioTranscription").is_some(),
            transcribes_output: find(value, "outputAudioTranscription").is_some(),
            resumption: find(value, "sessionResumption").map(resumption),
            detects_speech: find(detection, "disabled") != Some(&Value::Bool(true)),
            silence: silence.map(|millis| Duration::from_millis(millis.min(10_000))),
            may_be_interrupted: find(realtime, "activityHandling")
                .is_none_or(|handling| handling != "NO_INTERRUPTION"),
            signals_speech: find(value, "explicitVadSignal") == Some(&Value::Bool(true)),
            ..Self::default()
        };
        setup.declare(find(value, "tools"))?;
        Ok(setup)
    }

    /// Replaces the tools.
    pub(super) fn declare(&mut self, tools: Option<&Value>) -> Result<(), String> {
        self.declarations.clear();
        self.behaviours.clear();
        let tools = tools.and_then(Value::as_array).into_iter().flatten();
        for declaration in tools.filter_map(|tool| find(tool, "functionDeclarations")?.as_array()).flatten() {
            let name = find(declaration, "name").and_then(Value::as_str).unwrap_or_default();
            if !is_valid_name(name) {
                return Err(format!("a function cannot be called {}", quote(name)));
            }
            if find(declaration, "parameters").is_some()
                && find(declaration, "parametersJsonSchema").is_some()
            {
                return Err(format!("{name} has both parameters and parametersJsonSchema"));
            }
            let behaviour = match find(declaration, "behavior").and_then(Value::as_str) {
                Some("NON_BLOCKING") => Behaviour::NonBlocking,
                None | Some("BLOCKING" | "UNSPECIFIED") => Behaviour::Blocking,
                Some(other) => return Err(format!("{name} has the behavior {}", quote(other))),
            };
            if self.behaviours.insert(name.to_owned(), behaviour).is_some() {
                return Err(format!("{name} is declared twice"));
            }
            self.declarations.push(declaration.clone());
            if self.declarations.len() > MAX_TOOLS {
                return Err(format!("there are more than {MAX_TOOLS} functions"));
            }
        }
        Ok(())
    }

    pub(super) fn behaviour(&self, name: &str) -> Behaviour {
        self.behaviours.get(name).copied().unwrap_or(Behaviour::Blocking)
    }
}

fn resumption(value: &Value) -> Resumption {
    let handle = find(value, "handle").and_then(Value::as_str).filter(|handle| !handle.is_empty());
    Resumption { handle: handle.map(str::to_owned) }
}

impl Family {
    fn check(&self, setup: &Value, speaks: bool) -> Result<(), String> {
        if self.is_audio_only && !speaks {
            return Err("this model answers in audio only".into());
        }
        for (path, refused) in self.refused_options {
            let value = path.iter().try_fold(setup, |value, name| find(value, name));
            let name = path.last().copied().unwrap_or_default();
            match (value, refused) {
                (Some(_), None) => return Err(format!("this model takes no {name}")),
                (Some(value), Some(refused)) if *value == Value::Bool(*refused) => {
                    return Err(format!("this model does not take {name}: {refused}"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn is_valid_name(name: &str) -> bool {
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    let goes_on = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | ':' | '-');
    begins && name.len() <= MAX_NAME_BYTES && name.chars().all(goes_on)
}
