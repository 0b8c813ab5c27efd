//! The words of the two client protocols, which a tool's own messages must not use.

/// The types of voice messages in both directions and the names of the server's own `data-…` parts in the text stream.
/// The server's tests hold its encoders to this list. `timeout` and `voice_session_start` are not in it: a tool may send
/// them, under rules of their own.
pub const PROTOCOL_MESSAGE_TYPES: [&str; 33] = [
    "audio",
    "confirm",
    "confirmation",
    "confirmation_request",
    "error",
    "file",
    "finish",
    "gates",
    "going_away",
    "history_trimmed",
    "interrupt",
    "interrupted",
    "left_out",
    "model_fallback",
    "model_loading",
    "outcome",
    "partial",
    "pause",
    "ping",
    "playback",
    "pong",
    "progress",
    "ready",
    "resume",
    "session_end",
    "start",
    "stop",
    "text",
    "tool_call",
    "tool_result",
    "transcript",
    "turn_complete",
    "usage",
];

/// The type of a message as both protocols write it: text uses `-` where voice uses `_`.
pub fn message_type(kind: &str) -> String {
    kind.replace('-', "_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_only_by_dash_and_case_are_one_word() {
        for kind in ["history_trimmed", "history-trimmed", "History-Trimmed"] {
            assert!(PROTOCOL_MESSAGE_TYPES.contains(&&*message_type(kind)), "{kind}");
        }
        assert!(!PROTOCOL_MESSAGE_TYPES.contains(&&*message_type("ice_report")));
    }
}
