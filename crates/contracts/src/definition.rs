//! What an author declares about a tool: `schema.json`.
//!
//! The doc comments of these types are what editors show while a tool author writes a `schema.json`
//! (see [`crate::definition_schema`]), so they speak to tool authors.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Capability, ConfirmWhen, ErrorType, RequestPhrases, SecretUse, ToolId};

/// The contract of one tool: the whole of its `schema.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Definition {
    /// Everything but the parameters.
    #[serde(flatten)]
    pub metadata: Metadata,
    /// The arguments of a call, as a JSON Schema (draft 2020-12) of an object with `"additionalProperties": false`.
    pub parameters: Value,
}

/// What a definition says beside its parameters. The artifact carries it unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Where editors find the schema of this file. Not used by Quarterdeck.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The name that models call: the folder's name with `-` as `_`.
    pub tool_id: ToolId,
    /// Semantic version of the tool, such as `1.0.0`.
    pub version: String,
    /// What the tool does and when to use it. Goes to every provider.
    #[cfg_attr(feature = "json-schema", schemars(length(min = 1)))]
    pub description: String,
    /// What kind of tool it is; retrieval tools have a budget of their own and must be read-only.
    pub category: Category,
    /// Whether the tool changes anything outside itself.
    pub side_effects: SideEffects,
    /// Whether doing it twice is the same as doing it once.
    pub idempotent: bool,
    /// Whether the user must approve each call: `true`, `false`, or `"policy"` when `confirmWhen` decides.
    pub requires_confirmation: Confirmation,
    /// Where the tool may be called.
    #[cfg_attr(feature = "json-schema", schemars(length(min = 1), extend("uniqueItems" = true)))]
    pub allowed_modes: Vec<Mode>,
    /// How long a call should take, in milliseconds. Exceeding it is a warning and a metric, never a refusal.
    #[serde(deserialize_with = "whole")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = 86_400_000)))]
    pub latency_budget_ms: u64,

    /// Hard stop of one execution, in milliseconds. Default: five times the latency budget, at least 2,000.
    #[serde(default, deserialize_with = "whole_or_absent", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = 86_400_000)))]
    pub timeout_ms: Option<u64>,
    /// Session control (ending a call, blocking the user): never refused for budget.
    #[serde(default, skip_serializing_if = "is_false")]
    pub control: bool,
    /// The same call twice in a turn really means twice.
    #[serde(default, skip_serializing_if = "is_false")]
    pub repeatable: bool,
    /// What the handler may use beyond session, messaging, audit and log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(extend("uniqueItems" = true)))]
    pub capabilities: Option<Vec<Capability>>,
    /// Host names that the handler's `fetch` may reach. None by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(extend("uniqueItems" = true)))]
    pub network: Vec<String>,
    /// Secrets that the host adds to requests of the handler's `fetch`, each to one host. An operator configures their
    /// values; the handler never sees them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(with = "std::collections::BTreeMap<String, SecretUse>"))]
    pub secrets: IndexMap<String, SecretUse>,
    /// How often the tool may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// Conditions that must all hold for the tool to be offered and called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability: Option<Availability>,
    /// JSON Schema of the answer's `data`. Checked on every answer when present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub returns: Option<Value>,
    /// The sentence that the user sees before approving a call; `{name}` stands for an argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// With `"requiresConfirmation": "policy"`: when the user must approve a call. Without it, always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_when: Option<ConfirmWhen>,
    /// The user's own words that count as asking for the tool: phrases by language, in which `*` stands for any words.
    #[serde(default, skip_serializing_if = "RequestPhrases::is_empty")]
    #[cfg_attr(
        feature = "json-schema",
        schemars(with = "std::collections::BTreeMap<String, Vec<String>>", extend("minProperties" = 1))
    )]
    pub requested_by: RequestPhrases,
    /// How the user may approve a call: `any` way that the operator allows, on a `page` (or another screen) only, or, when
    /// they speak, with a `code` that is made for the question.
    #[serde(default, skip_serializing_if = "ConfirmBy::is_any")]
    pub confirm_by: ConfirmBy,
    /// Whether the call waits for the handler (`inline`), is answered at once while the handler goes on as a task
    /// (`background`), or becomes a task when it takes long (`auto`).
    #[serde(default, skip_serializing_if = "Execution::is_inline")]
    pub execution: Execution,
    /// With `"execution": "auto"`: after how many milliseconds the call becomes a task. Default: 2,000.
    #[serde(default, deserialize_with = "whole_or_absent", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 100, max = 60_000)))]
    pub background_after_ms: Option<u64>,
    /// Hard stop of a task, in milliseconds. Default: 600,000.
    #[serde(default, deserialize_with = "whole_or_absent", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1_000, max = 86_400_000)))]
    pub task_timeout_ms: Option<u64>,
    /// JSON pointers of arguments that are hidden in audit and logs, such as `/attendees`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
    /// Lossy conversions that the author has seen and accepts, such as `geminiNative: format`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acknowledged: Vec<String>,
    /// The errors that the guide's example calls may end with in `quarterdeck test`, where nothing is there for them to find.
    /// Any other error fails the test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(extend("uniqueItems" = true)))]
    pub example_errors: Vec<ErrorType>,
}

impl Metadata {
    /// The hard stop of one execution, whether it was declared or not.
    pub fn effective_timeout_ms(&self) -> u64 {
        if !self.execution.is_inline() {
            return self.task_timeout_ms.unwrap_or(600_000);
        }
        self.timeout_ms.unwrap_or_else(|| self.latency_budget_ms.saturating_mul(5).max(2_000))
    }

    /// After how long a call becomes a task: at once where it always does, never where it never does.
    pub fn effective_background_after_ms(&self) -> Option<u64> {
        match self.execution {
            Execution::Inline => None,
            Execution::Background => Some(0),
            Execution::Auto => Some(self.background_after_ms.unwrap_or(2_000)),
        }
    }

    /// What the handler may use. A folder from before there were capabilities gets the one that its id names.
    pub fn effective_capabilities(&self) -> Vec<Capability> {
        if let Some(declared) = &self.capabilities {
            return declared.clone();
        }
        match self.tool_id.as_str() {
            id if id.starts_with("kb_") => vec![Capability::KB],
            id if id.starts_with("calendar_") => vec![Capability::CALENDAR],
            "ignore_user" => vec![Capability::MODERATION],
            _ => Vec::new(),
        }
    }
}

/// What kind of tool it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Looks something up; read-only and idempotent.
    Retrieval,
    /// Does something.
    Action,
    /// Computes something.
    Utility,
}

impl Category {
    /// The name in `schema.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retrieval => "retrieval",
            Self::Action => "action",
            Self::Utility => "utility",
        }
    }
}

/// What a tool changes outside itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum SideEffects {
    /// Neither reads nor changes anything.
    None,
    /// Reads, changes nothing.
    ReadOnly,
    /// Changes something.
    Writes,
}

/// How users reach the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// They write.
    Text,
    /// They speak.
    Voice,
}

/// Whether a call waits for its handler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    /// The answer of the handler is the answer of the call.
    #[default]
    Inline,
    /// The call is answered at once, and the handler goes on as a task.
    Background,
    /// The call becomes a task when the handler takes long.
    Auto,
}

impl Execution {
    /// Whether the call waits for its handler however long it takes.
    pub fn is_inline(&self) -> bool {
        *self == Self::Inline
    }
}

/// Whether the user must approve each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Confirmation {
    /// Runs on the model's word.
    Never,
    /// Runs only after a user approved it.
    Always,
    /// The tool's [`ConfirmWhen`] decides for each call.
    Policy,
}

/// How the user may approve a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum ConfirmBy {
    /// In any way that the operator allows, a spoken yes included.
    #[default]
    Any,
    /// Where the question can be read. A spoken answer does not count.
    Page,
    /// On a page, or by saying the code of the question.
    Code,
}

impl ConfirmBy {
    /// Whether nothing special is demanded.
    pub fn is_any(&self) -> bool {
        *self == Self::Any
    }
}

/// How often a tool may run within a sliding window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RateLimit {
    /// Calls within one window.
    #[serde(deserialize_with = "whole")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = 1_000_000)))]
    pub calls: u64,
    /// Length of the window in milliseconds.
    #[serde(deserialize_with = "whole")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = 31_536_000_000_u64)))]
    pub window_ms: u64,
    /// Whose calls are counted together.
    pub per: RateLimitScope,
}

/// Whose calls a rate limit counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum RateLimitScope {
    /// One user or device, across sessions.
    Client,
    /// One conversation.
    Session,
    /// All clients together.
    Global,
}

/// Conditions under which a tool exists for a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Availability {
    /// The client must have signed in.
    #[serde(default, skip_serializing_if = "is_false")]
    pub authenticated: bool,
    /// Claims of the client's verified token, each with the values it may have.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(with = "std::collections::BTreeMap<String, Vec<Value>>"))]
    pub claims: IndexMap<String, Vec<Value>>,
    /// Configuration keys or capabilities that must be present.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
}

impl Serialize for Confirmation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Never => serializer.serialize_bool(false),
            Self::Always => serializer.serialize_bool(true),
            Self::Policy => serializer.serialize_str("policy"),
        }
    }
}

impl<'de> Deserialize<'de> for Confirmation {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) => Ok(Self::Never),
            Value::Bool(true) => Ok(Self::Always),
            Value::String(word) if word == "policy" => Ok(Self::Policy),
            _ => Err(serde::de::Error::custom("requiresConfirmation is true, false or \"policy\"")),
        }
    }
}

#[cfg(feature = "json-schema")]
impl schemars::JsonSchema for Confirmation {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Confirmation".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": [true, false, "policy"] })
    }
}

/// A whole number, however it is written: JSON Schema's `integer` admits `100.0`.
fn whole<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    let as_float = || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..=9e15).contains(float));
    number
        .as_u64()
        .or_else(|| as_float().map(|float| float as u64))
        .ok_or_else(|| serde::de::Error::custom(format_args!("{number} is not a whole number")))
}

fn whole_or_absent<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    whole(deserializer).map(Some)
}

fn is_false(value: &bool) -> bool {
    !value
}
