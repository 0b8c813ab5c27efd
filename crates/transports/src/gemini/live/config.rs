//! Settings of the Gemini Live client.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Profile;
use crate::Secret;

/// Settings of the Gemini Live client.
#[derive(Debug, Clone, PartialEq)]
pub struct GeminiLiveConfig {
    /// With the scheme `http`, `https`, `ws` or `wss`.
    pub base_url: String,
    /// The version of the API, which is part of the path.
    pub version: String,
    pub api_key: Secret,
    /// The model, with or without `models/`.
    pub model: String,
    /// The voice; the model's own when empty.
    pub voice: String,
    /// The language it speaks, `en-US`; without one, that of the user.
    pub language: Option<String>,
    /// Without one, the model's default.
    pub temperature: Option<f64>,
    pub thinking: Thinking,
    pub detection: Detection,
    /// `START_OF_ACTIVITY_INTERRUPTS`, `NO_INTERRUPTION`.
    pub activity_handling: Option<String>,
    /// `TURN_INCLUDES_ONLY_ACTIVITY`, `TURN_INCLUDES_ALL_INPUT`.
    pub turn_coverage: Option<String>,
    /// Whether the user's speech is transcribed, and in which languages; any when the list is empty.
    pub input_languages: Option<Vec<String>>,
    /// Whether the model's speech is transcribed, likewise.
    pub output_languages: Option<Vec<String>>,
    /// Whether handles for resumption are requested.
    pub resumption: bool,
    /// Without it, a conversation ends when the context window is full.
    pub compression: Option<Compression>,
    /// Further members of `generationConfig`, which override ours.
    pub generation: Map<String, Value>,
    /// Further members of `setup`, which override ours.
    pub extra: Map<String, Value>,
    /// Overrides the profile of the model's name.
    pub profile: Option<Profile>,
    /// Until the provider is ready.
    pub connect: Duration,
}

impl GeminiLiveConfig {
    /// Used unless another model is configured.
    pub const DEFAULT_MODEL: &'static str = "gemini-3.8-live";
    pub const DEFAULT_BASE_URL: &'static str = "https://generativelanguage.googleapis.com";
    /// Used unless another voice is configured.
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
            input_languages: Some(Vec::new()),
            output_languages: Some(Vec::new()),
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

/// What is absent is the model's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thinking {
    /// In tokens.
    pub budget: Option<i32>,
    /// `MINIMAL`, `LOW`, `MEDIUM`, `HIGH`.
    pub level: Option<String>,
    /// Whether thoughts are sent. They are not spoken.
    pub include_thoughts: Option<bool>,
}

/// Voice activity detection. What is absent is the provider's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detection {
    /// If true, the client marks the start and end of speech.
    pub disabled: Option<bool>,
    /// `START_SENSITIVITY_HIGH` or `START_SENSITIVITY_LOW`.
    pub start: Option<String>,
    /// `END_SENSITIVITY_HIGH` or `END_SENSITIVITY_LOW`.
    pub end: Option<String>,
    /// How much speech is needed before a start is detected.
    pub prefix_padding_ms: Option<u32>,
    /// How much silence ends speech.
    pub silence_ms: Option<u32>,
}

/// Compression of the context window: the oldest turns are dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compression {
    /// When it starts; without one, the model's default.
    pub trigger_tokens: Option<u64>,
    /// How many tokens are kept.
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
