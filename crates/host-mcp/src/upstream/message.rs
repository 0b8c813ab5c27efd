//! Looks at a message of a server before anything parses it: its size, its encoding, how deep it is nested and how many
//! values it holds.
//!
//! A parser that recurses, or builds a tree of what it reads, is only given what has passed here. The look itself is one
//! pass without recursion, and allocates nothing but the id.

use std::fmt;

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::json;

/// The values of one message. Each needs up to a hundred times its bytes once it is parsed, so that the limit of bytes alone
/// would let a server have half a gigabyte. A list of 500 tools with large schemas has half of these.
const MAX_VALUES: usize = 100_000;
/// An id is ours, and ours are short numbers. A longer one is not looked at.
const MAX_ID_BYTES: usize = 64;
/// How much of an oversized message is searched for the id, at each of its ends.
pub(crate) const ID_SEARCH_BYTES: usize = 256;
/// Nothing outside speaks of errors with this code: it is from the range that JSON-RPC leaves to implementations.
const REFUSED_MESSAGE: ErrorCode = ErrorCode(-32_099);

/// The limits of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageLimits {
    pub(crate) bytes: usize,
    pub(crate) depth: usize,
}

/// Why a message is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    TooLarge,
    TooDeep,
    TooManyValues,
    NotUtf8,
    NotJsonRpc,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "larger than the limit of a message",
            Self::TooDeep => "nested deeper than the limit of a message",
            Self::TooManyValues => "made of more values than the limit of a message",
            Self::NotUtf8 => "not valid UTF-8",
            Self::NotJsonRpc => "not a message of JSON-RPC",
        })
    }
}

impl Refusal {
    /// What the call that waits for the message gets in its place, so that it does not wait for its deadline.
    pub(crate) fn to_answer(self, id: RequestId) -> ServerJsonRpcMessage {
        let data = json!({ "refused": self.to_string() });
        ServerJsonRpcMessage::error(
            ErrorData::new(REFUSED_MESSAGE, "the answer was refused", Some(data)),
            Some(id),
        )
    }

    /// Whether an error is one of [`Self::to_answer`]. A server that sends such an error harms its own call.
    pub(crate) fn is_in(error: &ErrorData) -> bool {
        error.code == REFUSED_MESSAGE
    }
}

/// Parses a message that is within the limits.
pub(crate) fn parse(
    bytes: &[u8],
    outline: &Outline,
    limits: MessageLimits,
) -> Result<ServerJsonRpcMessage, Refusal> {
    if bytes.len() > limits.bytes {
        return Err(Refusal::TooLarge);
    }
    if outline.depth > limits.depth {
        return Err(Refusal::TooDeep);
    }
    if outline.values > MAX_VALUES {
        return Err(Refusal::TooManyValues);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::NotUtf8)?;
    serde_json::from_str(text).map_err(|_| Refusal::NotJsonRpc)
}

/// The id of a message of which only the two ends are at hand. Some servers write it first and some last.
pub(crate) fn find_id(bytes: &[u8]) -> Option<RequestId> {
    let head = &bytes[..bytes.len().min(ID_SEARCH_BYTES)];
    let outline = Outline::of(head);
    if outline.has_method || outline.id.is_some() {
        return outline.answers().cloned();
    }
    let tail = &bytes[bytes.len().saturating_sub(ID_SEARCH_BYTES)..];
    let key = tail.windows(4).rposition(|window| window == br#""id""#)?;
    let value = tail[key + 4..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    read_id(value)
}

/// What can be seen of a message without parsing it.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    depth: usize,
    /// At most so many: the objects, the lists, and what commas separate in them.
    values: usize,
    id: Option<RequestId>,
    has_id: bool,
    has_method: bool,
}

/// What kind of message it is, by the keys of its outermost object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Notification,
    Request,
    Answer,
}

impl Outline {
    pub(crate) fn kind(&self) -> MessageKind {
        match (self.has_method, self.has_id) {
            (true, true) => MessageKind::Request,
            (true, false) => MessageKind::Notification,
            (false, _) => MessageKind::Answer,
        }
    }

    /// What it answers. A request of the server's has an id too, of its own.
    pub(crate) fn answers(&self) -> Option<&RequestId> {
        self.id.as_ref().filter(|_| !self.has_method)
    }

    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut outline = Self::default();
        let (mut depth, mut at) = (0_usize, 0_usize);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b',' => outline.values += 1,
                b'{' | b'[' => {
                    outline.values += 1;
                    depth += 1;
                    outline.depth = outline.depth.max(depth);
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => {
                    let end = string_end(bytes, at + 1);
                    if depth == 1 {
                        outline.note_key(&bytes[at + 1..end], &bytes[(end + 1).min(bytes.len())..]);
                    }
                    at = end;
                }
                _ => {}
            }
            at += 1;
        }
        outline
    }

    /// Remembers what stands under a key of the outermost object. A text that is no key has no colon after it.
    fn note_key(&mut self, text: &[u8], after: &[u8]) {
        let Some(value) = after.trim_ascii_start().strip_prefix(b":") else { return };
        match text {
            b"id" => {
                self.has_id = true;
                self.id = read_id(value.trim_ascii_start());
            }
            b"method" => self.has_method = true,
            _ => {}
        }
    }
}

/// Where the text that begins at `at` ends: the place of its closing quote, or the end.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn read_id(value: &[u8]) -> Option<RequestId> {
    if let Some(text) = value.strip_prefix(b"\"") {
        let end = text.iter().take(MAX_ID_BYTES).position(|byte| *byte == b'"')?;
        let text = std::str::from_utf8(&text[..end]).ok().filter(|text| !text.contains('\\'))?;
        return Some(RequestId::String(text.into()));
    }
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
    let end = value.iter().take(MAX_ID_BYTES).position(|byte| !is_number(byte))?;
    // What goes on is another number, such as 5.5.
    if !matches!(value[end], b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n') {
        return None;
    }
    std::str::from_utf8(&value[..end]).ok()?.parse().ok().map(RequestId::Number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: MessageLimits = MessageLimits { bytes: 4_096, depth: 16 };

    fn read(bytes: &[u8]) -> Result<ServerJsonRpcMessage, Refusal> {
        parse(bytes, &Outline::of(bytes), LIMITS)
    }

    fn refused(bytes: &[u8]) -> (Refusal, Option<RequestId>) {
        (read(bytes).unwrap_err(), find_id(bytes))
    }

    #[test]
    fn a_message_within_the_limits_is_parsed() {
        let message = read(br#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#).unwrap();
        let ServerJsonRpcMessage::Response(response) = message else { panic!("{message:?}") };
        assert_eq!(response.id, RequestId::Number(3));
    }

    #[test]
    fn nesting_is_refused_before_it_is_parsed_and_names_the_call() {
        let deep = format!(r#"{{"result":{}{},"id":7}}"#, "[".repeat(1_000), "]".repeat(1_000));
        assert_eq!(refused(deep.as_bytes()), (Refusal::TooDeep, Some(RequestId::Number(7))));
        // Brackets inside a text are not nesting.
        let flat = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{}"}}]}}}}"#,
            "[".repeat(999)
        );
        assert!(read(flat.as_bytes()).is_ok());
    }

    #[test]
    fn a_message_of_too_many_values_is_refused_before_it_is_parsed() {
        let limits = MessageLimits { bytes: 4_000_000, ..LIMITS };
        let message = |values: usize| {
            let result =
                format!(r#"{{"content":[],"structuredContent":{{"a":[{}0]}}}}"#, "0,".repeat(values));
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
        };
        let read = |text: &str| parse(text.as_bytes(), &Outline::of(text.as_bytes()), limits);
        assert!(read(&message(MAX_VALUES - 10)).is_ok());
        assert_eq!(read(&message(MAX_VALUES)).unwrap_err(), Refusal::TooManyValues);
    }

    #[test]
    fn an_oversized_message_names_its_call_at_either_end() {
        let filler = "x".repeat(10_000);
        for (text, id) in [
            (format!(r#"{{"jsonrpc":"2.0","id":12,"result":"{filler}"}}"#), Some(RequestId::Number(12))),
            (format!(r#"{{"result":"{filler}","jsonrpc":"2.0","id":13}}"#), Some(RequestId::Number(13))),
            (format!(r#"{{"result":"{filler}", "id" : "14" }}"#), Some(RequestId::String("14".into()))),
            (format!(r#"{{"result":"{filler}"}}"#), None),
        ] {
            assert_eq!(refused(text.as_bytes()), (Refusal::TooLarge, id));
        }
    }

    #[test]
    fn bytes_that_are_no_text_or_no_message_are_refused() {
        assert_eq!(
            refused(b"{\"id\":1,\"result\":\"\xff\xfe\"}"),
            (Refusal::NotUtf8, Some(RequestId::Number(1)))
        );
        assert_eq!(refused(br#"{"id":2,"result":"#), (Refusal::NotJsonRpc, Some(RequestId::Number(2))));
        assert_eq!(refused(b"hello"), (Refusal::NotJsonRpc, None));
        // The id of a request is the server's own.
        assert_eq!(refused(br#"{"id":2,"method":"x","#), (Refusal::NotJsonRpc, None));
    }

    #[test]
    fn a_refused_answer_can_be_told_from_an_error_of_the_server() {
        let ServerJsonRpcMessage::Error(error) = Refusal::TooDeep.to_answer(RequestId::Number(1)) else {
            panic!("not an error")
        };
        assert!(Refusal::is_in(&error.error));
        assert!(!Refusal::is_in(&ErrorData::internal_error("x", None)));
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_are_they_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = read(&bytes);
            let _ = find_id(&bytes);
        }

        #[test]
        fn the_depth_is_that_of_the_parsed_value(depth in 1_usize..60, closed in any::<bool>()) {
            let text = format!("{}{}", "[".repeat(depth), if closed { "]".repeat(depth) } else { String::new() });
            prop_assert_eq!(Outline::of(text.as_bytes()).depth, depth);
        }
    }
}
