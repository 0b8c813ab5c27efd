//! Settings of the OpenAI Realtime client.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::Secret;

/// Settings of the OpenAI Realtime client.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAiRealtimeConfig {
    /// With the scheme `http`, `https`, `ws` or `wss`; usually ends in `/v1`.
    pub base_url: String,
    pub api_key: Secret,
    pub model: String,
    pub voice: String,
    /// Of speech; without one, the provider's default.
    pub speed: Option<f64>,
    /// The model that transcribes what the user says; without one, there is no transcript.
    pub transcription: Option<String>,
    /// `near_field` or `far_field`; without one, there is none.
    pub noise_reduction: Option<String>,
    pub turn_detection: TurnDetection,
    /// Without one, there is no limit.
    pub max_output_tokens: Option<u32>,
    /// Further members of `session`, which override ours.
    pub extra: Map<String, Value>,
    /// Until the provider is ready.
    pub connect: Duration,
}

impl OpenAiRealtimeConfig {
    /// Used unless another model is configured.
    pub const DEFAULT_MODEL: &'static str = "gpt-realtime-2.1";
    pub const DEFAULT_BASE_URL: &'static str = "https://api.openai.com/v1";
    /// Used unless another voice is configured.
    pub const DEFAULT_VOICE: &'static str = "marin";

    /// The default model at OpenAI.
    pub fn new(api_key: impl Into<Secret>) -> Self {
        Self {
            base_url: Self::DEFAULT_BASE_URL.to_owned(),
            api_key: api_key.into(),
            model: Self::DEFAULT_MODEL.to_owned(),
            voice: Self::DEFAULT_VOICE.to_owned(),
            speed: None,
            transcription: Some("gpt-4o-mini-transcribe".to_owned()),
            noise_reduction: None,
            turn_detection: TurnDetection::Server(ServerVad::default()),
            max_output_tokens: None,
            extra: Map::new(),
            connect: Duration::from_secs(10),
        }
    }
}

/// Voice activity detection. Speech is always answered, and always interrupts.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnDetection {
    /// By loudness.
    Server(ServerVad),
    /// By what is said. The eagerness to answer is `low`, `medium`, `high` or `auto`.
    Semantic(String),
}

/// What is absent is the provider's default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerVad {
    /// From 0 to 1.
    pub threshold: Option<f64>,
    /// Audio before the start that is included.
    pub prefix_padding_ms: Option<u32>,
    /// How much silence ends speech.
    pub silence_ms: Option<u32>,
    /// After how much silence of the user the model speaks by itself.
    pub idle_timeout_ms: Option<u32>,
}

impl TurnDetection {
    pub(super) fn to_json(&self) -> Value {
        let mut detection = match self {
            Self::Semantic(eagerness) => json!({ "type": "semantic_vad", "eagerness": eagerness }),
            Self::Server(vad) => {
                let mut detection = json!({ "type": "server_vad" });
                let ServerVad { threshold, prefix_padding_ms, silence_ms, idle_timeout_ms } = vad;
                for (name, value) in [
                    ("threshold", threshold.map(Value::from)),
                    ("prefix_padding_ms", prefix_padding_ms.map(Value::from)),
                    ("silence_duration_ms", silence_ms.map(Value::from)),
                    ("idle_timeout_ms", idle_timeout_ms.map(Value::from)),
                ] {
                    if let Some(value) = value {
                        detection[name] = value;
                    }
                }
                detection
            }
        };
        detection["create_response"] = true.into();
        detection["interrupt_response"] = true.into();
        detection
    }
}
