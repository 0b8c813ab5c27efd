//! What the protocol does not allow, and the code that each is closed with.

use quarterdeck_websocket::{CloseCode, Limits, Role, WebSocket};

use crate::wire::{
    BINARY, CLOSE, CONTINUATION, Kept, PING, Pieces, TEXT, flush, frame, head, read_all, read_bytes,
};

const LIMIT: usize = 1_000;
const MASK: Option<[u8; 4]> = Some([1, 2, 3, 4]);

/// Bytes that a server must refuse, and why.
fn refused() -> Vec<(&'static str, Vec<u8>, u16)> {
    let close = |payload: &[u8]| frame(0x80 | CLOSE, MASK, payload);
    vec![
        ("no mask", frame(0x80 | TEXT, None, b"hi"), 1002),
        ("first reserved bit", frame(0xc0 | TEXT, MASK, b"hi"), 1002),
        ("third reserved bit", frame(0x90 | TEXT, MASK, b"hi"), 1002),
        ("an opcode for data that means nothing", frame(0x83, MASK, b"hi"), 1002),
        ("an opcode for control that means nothing", frame(0x8b, MASK, b""), 1002),
        ("a ping in parts", frame(PING, MASK, b""), 1002),
        ("a long ping", frame(0x80 | PING, MASK, &[0; 126]), 1002),
        ("a long ping by its head", head(0x80 | PING, MASK, 126), 1002),
        ("a continuation of nothing", frame(0x80 | CONTINUATION, MASK, b"hi"), 1002),
        (
            "a message within a message",
            [frame(TEXT, MASK, b"hi"), frame(0x80 | BINARY, MASK, b"hi")].concat(),
            1002,
        ),
        ("half a close code", close(&[3]), 1002),
        ("a close code below all", close(&999_u16.to_be_bytes()), 1002),
        ("a close code that is never sent", close(&1005_u16.to_be_bytes()), 1002),
        ("a close code of the network", close(&1006_u16.to_be_bytes()), 1002),
        ("a close code that means nothing", close(&2999_u16.to_be_bytes()), 1002),
        ("a reason that is not UTF-8", close(&[0x03, 0xe8, 0xff]), 1007),
        ("a text that is not UTF-8", frame(0x80 | TEXT, MASK, &[b'a', 0xc3]), 1007),
        (
            "a text in parts that is not UTF-8",
            [frame(TEXT, MASK, &[0xc3]), frame(0x80 | CONTINUATION, MASK, &[0x28])].concat(),
            1007,
        ),
        ("one byte too many, by the head alone", head(0x80 | BINARY, MASK, LIMIT as u64 + 1), 1009),
        ("a length that no machine has", head(0x80 | BINARY, MASK, u64::MAX), 1009),
        (
            "parts that are too large together, by the head alone",
            [frame(BINARY, MASK, &[0; 600]), head(0x80 | CONTINUATION, MASK, 401)].concat(),
            1009,
        ),
    ]
}

#[test]
fn each_violation_has_its_close_code_and_nothing_follows_it() {
    for (what, bytes, code) in refused() {
        let after = frame(0x80 | TEXT, MASK, b"after");
        let stream = Pieces::arriving([bytes, after]);
        let mut socket = WebSocket::new(stream, Role::Server, Limits { max_message_bytes: LIMIT }, &[]);
        let (read, violation) = read_all(&mut socket);
        assert_eq!(read, [], "{what}");
        assert_eq!(violation.map(|violation| violation.code), Some(CloseCode(code)), "{what}");
        // Whatever else comes is not read, and nothing is sent after the close frame.
        socket.send_text("too late");
        assert_eq!(read_all(&mut socket), (Vec::new(), None), "{what}");
        socket.get_mut().takes = usize::MAX;
        flush(&mut socket);
        let (said, _) = read_bytes(Role::Client, LIMIT, &socket.get_mut().taken);
        let [Kept::Close(Some(said), _)] = said.as_slice() else { panic!("{what}: {said:?}") };
        assert_eq!(said.0, code, "{what}");
    }
}

#[test]
fn a_client_refuses_frames_with_a_mask() {
    let (_, violation) = read_bytes(Role::Client, LIMIT, &frame(0x80 | TEXT, MASK, b"hi"));
    assert_eq!(violation.map(|violation| violation.code), Some(CloseCode::PROTOCOL));
}

#[test]
fn what_is_just_within_the_limits_is_read() {
    let all = |bytes: Vec<u8>| read_bytes(Role::Server, LIMIT, &bytes);
    let largest = vec![9; LIMIT];
    assert_eq!(all(frame(0x80 | BINARY, MASK, &largest)), (vec![Kept::Binary(largest.clone())], None));
    let parts = [frame(BINARY, MASK, &largest), frame(0x80 | CONTINUATION, MASK, b"")].concat();
    assert_eq!(all(parts), (vec![Kept::Binary(largest)], None));
    let ping = vec![5; 125];
    assert_eq!(all(frame(0x80 | PING, MASK, &ping)), (vec![Kept::Ping(ping)], None));
    for code in [1000_u16, 1003, 1007, 1011, 1014, 3000, 4999] {
        let close = frame(0x80 | CLOSE, MASK, &code.to_be_bytes());
        assert_eq!(all(close), (vec![Kept::Close(Some(CloseCode(code)), String::new())], None));
    }
    let silent = frame(0x80 | CLOSE, MASK, b"");
    assert_eq!(all(silent), (vec![Kept::Close(None, String::new())], None));
}

#[test]
fn a_message_does_not_count_against_the_next_one() {
    let message = [frame(BINARY, MASK, &[0; 600]), frame(0x80 | CONTINUATION, MASK, &[0; 400])].concat();
    let (read, violation) = read_bytes(Role::Server, LIMIT, &message.repeat(5));
    assert_eq!((read.len(), violation), (5, None));
}

#[test]
fn bytes_after_the_end_are_discarded() {
    let bad = frame(0xc0 | TEXT, MASK, b"hi");
    let more = std::iter::repeat_n(vec![0; 1_000], 2_000);
    let stream = Pieces::arriving(std::iter::once(bad).chain(more));
    let mut socket = WebSocket::new(stream, Role::Server, Limits { max_message_bytes: 1 << 20 }, &[]);
    assert!(read_all(&mut socket).1.is_some());
    assert_eq!(read_all(&mut socket), (Vec::new(), None));
    assert!(socket.get_mut().max_read_bytes <= 4 << 10, "{}", socket.get_mut().max_read_bytes);
    assert!(socket.get_mut().arriving.is_empty(), "it was read, so that the peer can be told");
}
