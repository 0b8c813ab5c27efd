//! The `data-…` parts of the UI message stream: the server's own, and the tools' own messages.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::routes::openapi::envelope::any;

/// For the page: `data-confirmation`, `data-gates`, `data-progress`, `data-partial`, `data-outcome`, `data-file` (a file of
/// the session with its link), `data-timeout`, `data-voice-session-start`, `data-history-trimmed`, `data-model-loading`,
/// `data-model-fallback` (another model answers because the first one failed), `data-session-end`, `data-left-out` (text that
/// was not read in
/// time), and the tools' own messages.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, title = "data-…", deny_unknown_fields)]
pub(crate) struct DataPart<'a> {
    #[schemars(regex(pattern = "^data-"))]
    r#type: String,
    /// The call. A later part with the same id replaces this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[schemars(schema_with = "any")]
    data: Cow<'a, Value>,
}

/// The parts that only the server sends. An event of the agent never has one of these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerData {
    Confirmation,
    Gates,
    Progress,
    /// A partial result of a call that another message made.
    Partial,
    Outcome,
    LeftOut,
    File,
}

impl ServerData {
    const ALL: [Self; 7] = [
        Self::Confirmation,
        Self::Gates,
        Self::Progress,
        Self::Partial,
        Self::Outcome,
        Self::LeftOut,
        Self::File,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Confirmation => "confirmation",
            Self::Gates => "gates",
            Self::Progress => "progress",
            Self::Partial => "partial",
            Self::Outcome => "outcome",
            Self::LeftOut => "left-out",
            Self::File => "file",
        }
    }

    pub(crate) fn part(self, id: Option<&str>, data: Value) -> DataPart<'_> {
        DataPart { r#type: format!("data-{}", self.name()), id, data: Cow::Owned(data) }
    }
}

impl<'a> DataPart<'a> {
    /// A tool's own message, or one of the agent's. The runtime refuses the server's names where a tool sends them; one
    /// that came this far would make the client believe the server said it, so there is no part for it.
    pub(crate) fn from_event(name: &str, value: &'a Value) -> Option<Self> {
        let plain = |text: &str| text.replace('_', "-").to_ascii_lowercase();
        if ServerData::ALL.iter().any(|own| own.name() == plain(name)) {
            tracing::error!(name, "message of a tool has a name of the server's and is dropped");
            return None;
        }
        Some(Self { r#type: format!("data-{name}"), id: None, data: Cow::Borrowed(value) })
    }
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::{PROTOCOL_MESSAGE_TYPES, message_type};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_servers_data_parts_are_reserved() {
        for part in ServerData::ALL {
            assert!(PROTOCOL_MESSAGE_TYPES.contains(&&*message_type(part.name())), "{part:?}");
        }
    }

    #[test]
    fn a_tools_own_message_cannot_pass_for_the_servers() {
        let value = json!({ "callId": "c1" });
        for name in
            ["outcome", "gates", "confirmation", "progress", "left-out", "left_out", "Outcome", "file"]
        {
            assert_eq!(DataPart::from_event(name, &value), None, "{name}");
        }
        let own = json!(DataPart::from_event("ice-report", &value));
        assert_eq!(own, json!({ "type": "data-ice-report", "data": value }));
    }
}
