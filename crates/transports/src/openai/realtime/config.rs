//! How OpenAI Realtime is opened.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::Secret;

/// How OpenAI Realtime is opened.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAiRealtimeConfig {
    /// Where it is; begins with `http`, `https`, `ws` or `wss`, and usually ends in `/v1`.
    pub base_url: String,
    /// The key.
    pub api_key: Secret,
    /// The model.
    pub model: String,
    /// The voice.
    pub voice: String,
    /// How fast it speaks; without one, as it does.
    pub speed: Option<f64>,
    /// The model that transcribes what the user says; without one, there is no transcript.
    pub transcription: Option<String>,
    /// `near_field` or `far_field`; without one, what the microphone hears is left as it is.
    pub noise_reduction: Option<String>,
    /// When the user speaks and when not.
    pub turn_detection: TurnDetection,
    /// Longest answer in tokens; without one, there is no limit.
    pub max_output_tokens: Option<u32>,
    /// Further members of `session`. They win over ours.
    pub extra: Map<String, Value>,
    /// How long it may take until the provider is ready.
    pub connect: Duration,
}

impl OpenAiRealtimeConfig {
    /// The model that is spoken with unless another one is named.
    pub const DEFAULT_MODEL: &'static str = "gpt-realtime-2.1";
    /// OpenAI's own address.
    pub const DEFAULT_BASE_URL: &'static str = "https://api.openai.com/v1";
    /// The voice unless another one is named.
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

/// How the provider finds out when the user speaks. It always answers by itself, and always lets itself be cut off.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnDetection {
    /// By loudness.
    Server(ServerVad),
    /// By what is said. The eagerness to answer is `low`, `medium`, `high` or `auto`.
    Semantic(String),
}

/// How loudness is taken for speech. What is not said is the provider's own setting.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerVad {
    /// From 0 to 1.
    pub threshold: Option<f64>,
    /// How much of what came before counts.
    pub prefix_padding_ms: Option<u32>,
    /// How much silence ends it.
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
