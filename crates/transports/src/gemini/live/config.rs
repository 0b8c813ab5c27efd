//! How Gemini Live is opened.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Profile;
use crate::Secret;

/// How Gemini Live is opened.
#[derive(Debug, Clone, PartialEq)]
pub struct GeminiLiveConfig {
    /// Where it is; begins with `http`, `https`, `ws` or `wss`.
    pub base_url: String,
    /// The version of the API, which is part of the path.
    pub version: String,
    /// The key.
    pub api_key: Secret,
    /// The model, with or without `models/`.
    pub model: String,
    /// The voice; the model's own when empty.
    pub voice: String,
    /// The language it speaks, `en-US`; without one, that of the user.
    pub language: Option<String>,
    /// How freely it chooses its words; without one, the model's own setting.
    pub temperature: Option<f64>,
    /// How it thinks.
    pub thinking: Thinking,
    /// When the user speaks and when not.
    pub detection: Detection,
    /// What a user who speaks does to an answer: `START_OF_ACTIVITY_INTERRUPTS`, `NO_INTERRUPTION`.
    pub activity_handling: Option<String>,
    /// What belongs to a turn: `TURN_INCLUDES_ONLY_ACTIVITY`, `TURN_INCLUDES_ALL_INPUT`.
    pub turn_coverage: Option<String>,
    /// Whether what the user says is written down, and in which languages it may be; any when the list is empty.
    pub hears_in: Option<Vec<String>>,
    /// Whether what the model says is written down, likewise.
    pub speaks_in: Option<Vec<String>>,
    /// Whether handles are asked for by which the conversation can go on.
    pub resumption: bool,
    /// Whether the provider forgets the oldest when a conversation grows long. Without it, it ends then.
    pub compression: Option<Compression>,
    /// Further members of `generationConfig`. They win over ours.
    pub generation: Map<String, Value>,
    /// Further members of `setup`. They win over ours.
    pub extra: Map<String, Value>,
    /// How the model is spoken to, if its name does not say.
    pub profile: Option<Profile>,
    /// How long it may take until the provider is ready.
    pub connect: Duration,
}

impl GeminiLiveConfig {
    /// The model that is spoken with unless another one is named.
    pub const DEFAULT_MODEL: &'static str = "gemini-3.8-live";
    /// Google's own address.
    pub const DEFAULT_BASE_URL: &'static str = "https://generativelanguage.googleapis.com";
    /// The voice unless another one is named.
    pub const DEFAULT_VOICE: &'static str = "Algenib";

    /// The default model at Google.
    pub fn new(api_key: impl Into<Secret>) -> Self {
        Self {
            base_url: Self::DEFAULT_BASE_URL.to_owned(),
            version: "v1beta".to_owned(),
            api_key: api_key.into(),
            model: Self::DEFAULT_MODEL.to_owned(),
            voice: Self::DEFAULT_VOICE.to_owned(),
            language: None,
            temperature: None,
            thinking: Thinking::default(),
            detection: Detection::default(),
            activity_handling: None,
            turn_coverage: None,
            hears_in: Some(Vec::new()),
            speaks_in: Some(Vec::new()),
            resumption: true,
            compression: Some(Compression::default()),
            generation: Map::new(),
            extra: Map::new(),
            profile: None,
            connect: Duration::from_secs(10),
        }
    }

    pub(super) fn plain_model(&self) -> &str {
        self.model.strip_prefix("models/").unwrap_or(&self.model)
    }

    pub(super) fn full_model(&self) -> String {
        // `tunedModels/x` names its own collection.
        if self.model.contains('/') { self.model.clone() } else { format!("models/{}", self.model) }
    }
}

/// How a model thinks. What is not said is the model's own setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thinking {
    /// How many tokens it may think.
    pub budget: Option<i32>,
    /// `MINIMAL`, `LOW`, `MEDIUM`, `HIGH`.
    pub level: Option<String>,
    /// Whether thoughts are sent. They are not spoken.
    pub include_thoughts: Option<bool>,
}

/// How the provider finds out when the user speaks. What is not said is its own setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detection {
    /// Whether it does not: then audio begins a turn, and its end ends it.
    pub disabled: Option<bool>,
    /// `START_SENSITIVITY_HIGH` or `START_SENSITIVITY_LOW`.
    pub start: Option<String>,
    /// `END_SENSITIVITY_HIGH` or `END_SENSITIVITY_LOW`.
    pub end: Option<String>,
    /// How much speech it takes to be speech.
    pub prefix_padding_ms: Option<u32>,
    /// How much silence ends it.
    pub silence_ms: Option<u32>,
}

/// What happens when a conversation grows long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compression {
    /// From how many tokens on; the model's own setting without one.
    pub trigger_tokens: Option<u64>,
    /// How many stay.
    pub target_tokens: Option<u64>,
}

impl Compression {
    pub(super) fn to_json(&self) -> Value {
        // Numbers of 64 bits are strings in protobuf's JSON.
        let mut compression = match self.target_tokens {
            Some(target) => json!({ "slidingWindow": { "targetTokens": target.to_string() } }),
            None => json!({ "slidingWindow": {} }),
        };
        if let Some(trigger) = self.trigger_tokens {
            compression["triggerTokens"] = trigger.to_string().into();
        }
        compression
    }
}
