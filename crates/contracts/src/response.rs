//! The envelope: exactly one per call, whatever happened.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{HandlerAnswer, Outcome, RequestedIntent};

/// What a call came to, with where and when.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResponse {
    /// How the call ended.
    pub outcome: Outcome,
    /// What the handler asks to have changed, in order.
    pub intents: Vec<RequestedIntent>,
    /// Where the answer comes from.
    pub meta: Meta,
}

impl ToolResponse {
    /// Whether the call did what was asked.
    pub fn is_ok(&self) -> bool {
        matches!(self.outcome, Outcome::Success(_))
    }

    /// The copy that a transport may send to a model: no confirmation token, so that a model cannot approve itself.
    pub fn for_model(&self) -> Self {
        let outcome = match &self.outcome {
            Outcome::Success(data) => Outcome::Success(data.clone()),
            Outcome::Failure(error) => Outcome::Failure(error.for_model()),
        };
        Self { outcome, intents: self.intents.clone(), meta: self.meta.clone() }
    }
}

/// Where an answer comes from and what it took. Made for every call, so what is known before is shared rather than copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// The tool that answered. A call to a tool that does not exist carries the name that was asked for.
    pub tool_id: Arc<str>,
    /// Its version.
    pub tool_version: Arc<str>,
    /// The registry it was found in.
    pub registry_version: Arc<str>,
    /// The version of the envelope.
    pub response_schema_version: Cow<'static, str>,
    /// Whole milliseconds.
    pub duration: u64,
    /// When it was answered (RFC 3339, UTC).
    pub timestamp: String,
    /// How often it was tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<u32>,
    /// The call that made this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_call_id: Option<String>,
    /// The work that goes on after the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_task_id: Option<String>,
    /// Whether this is a recorded answer given again.
    #[serde(rename = "_idempotent_cache_hit", default, skip_serializing_if = "Option::is_none")]
    pub idempotent_cache_hit: Option<bool>,
    /// The turn in which the recorded answer was made.
    #[serde(rename = "_original_turn", default, skip_serializing_if = "Option::is_none")]
    pub original_turn: Option<u64>,
}

impl Serialize for ToolResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        HandlerAnswer::serialize_fields(&self.outcome, &self.intents, &mut map)?;
        map.serialize_entry("meta", &self.meta)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for ToolResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        let meta = value
            .as_object_mut()
            .and_then(|fields| fields.remove("meta"))
            .ok_or_else(|| D::Error::missing_field("meta"))?;
        let meta = serde_json::from_value(meta).map_err(D::Error::custom)?;
        HandlerAnswer::parse(value).map(|answer| answer.stamp(meta)).map_err(D::Error::custom)
    }
}
