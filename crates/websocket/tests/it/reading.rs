//! What was sent is what is read, however it was cut.

use proptest::prelude::*;
use quarterdeck_websocket::{Class, CloseCode, Limits, Opcode, Role, WebSocket};

use crate::wire::{
    BINARY, CLOSE, CONTINUATION, Kept, PING, PONG, Pieces, TEXT, flush, frame, head, mask_to, read_all,
    read_bytes,
};

const LIMIT: usize = 70_000;

/// A message, where its parts end, and what stands between them.
#[derive(Debug, Clone)]
struct Sent {
    message: Kept,
    cuts: Vec<usize>,
    between: Vec<Kept>,
}

fn control() -> impl Strategy<Value = Kept> {
    prop_oneof![prop::collection::vec(any::<u8>(), 0..=125).prop_map(Kept::Ping), Just(Kept::Pong),]
}

fn sent() -> impl Strategy<Value = Sent> {
    let bytes = || {
        prop_oneof![
            4 => prop::collection::vec(any::<u8>(), 0..400),
            // Lengths around which the head changes its form.
            1 => prop::sample::select(vec![125_usize, 126, 127, 4_095, 65_535, 65_536, LIMIT])
                .prop_map(|length| vec![7; length]),
        ]
    };
    let message =
        prop_oneof![bytes().prop_map(Kept::Binary), any::<String>().prop_map(Kept::Text), control(),];
    (message, prop::collection::vec(0_usize..500, 0..4), prop::collection::vec(control(), 0..3))
        .prop_map(|(message, cuts, between)| Sent { message, cuts, between })
}

/// The frames of a message, and what a reader sees of them in which order.
fn frames(sent: &Sent, role: Role, read: &mut Vec<Kept>) -> Vec<u8> {
    let mask = mask_to(role);
    let single = |kept: &Kept| match kept {
        Kept::Ping(payload) => frame(0x80 | PING, mask, payload),
        _ => frame(0x80 | PONG, mask, b"ignored"),
    };
    let (opcode, payload) = match &sent.message {
        Kept::Text(text) => (TEXT, text.as_bytes()),
        Kept::Binary(bytes) => (BINARY, bytes.as_slice()),
        control => {
            read.push(control.clone());
            return single(control);
        }
    };
    let mut cuts: Vec<usize> = sent.cuts.iter().map(|cut| cut % (payload.len() + 1)).collect();
    cuts.push(payload.len());
    cuts.sort_unstable();
    let (mut bytes, mut start) = (Vec::new(), 0);
    for (place, cut) in cuts.iter().enumerate() {
        let kind = if place == 0 { opcode } else { CONTINUATION };
        let last = if place + 1 == cuts.len() { 0x80 } else { 0 };
        bytes.extend(frame(last | kind, mask, &payload[start..*cut]));
        start = *cut;
        if last == 0
            && let Some(between) = sent.between.get(place)
        {
            bytes.extend(single(between));
            read.push(between.clone());
        }
    }
    read.push(sent.message.clone());
    bytes
}

fn cut(bytes: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).clamp(1, rest.len()));
        pieces.push(piece.to_vec());
        rest = after;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_is_sent_is_read_however_it_is_cut(
        all in prop::collection::vec(sent(), 0..6),
        sizes in prop::collection::vec(1_usize..6_000, 1..5),
        before in 0_usize..40,
        role in prop::sample::select(vec![Role::Server, Role::Client]),
    ) {
        let mut expected = Vec::new();
        let mut bytes: Vec<u8> = all.iter().flat_map(|sent| frames(sent, role, &mut expected)).collect();
        bytes.extend(frame(0x80 | CLOSE, mask_to(role), b"\x03\xe8bye"));
        expected.push(Kept::Close(Some(CloseCode::NORMAL), "bye".into()));
        // Some of it may have come with the handshake.
        let (before, after) = bytes.split_at(before.min(bytes.len()));
        let stream = Pieces::arriving(cut(after, &sizes));
        let mut socket = WebSocket::new(stream, role, Limits { max_message_bytes: LIMIT }, before);
        let (read, violation) = read_all(&mut socket);
        prop_assert_eq!(violation, None);
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn what_one_end_sends_the_other_reads(
        all in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..5_000)), 0..20),
        takes in 1_usize..3_000,
        sizes in prop::collection::vec(1_usize..2_000, 1..5),
        role in prop::sample::select(vec![Role::Server, Role::Client]),
    ) {
        let mut ours = WebSocket::new(Pieces::default(), role, Limits { max_message_bytes: LIMIT }, &[]);
        let mut expected = Vec::new();
        for (is_audio, payload) in &all {
            let class = if *is_audio { Class::Audio } else { Class::Control };
            ours.send(Opcode::Binary, class, payload.len(), |out| out.extend_from_slice(payload));
            expected.push(Kept::Binary(payload.clone()));
            ours.get_mut().takes = takes;
            flush(&mut ours);
        }
        ours.send_text("that was all");
        ours.close(CloseCode::AWAY, "");
        ours.send_text("nothing is sent after a close");
        expected.extend([
            Kept::Text("that was all".into()), Kept::Close(Some(CloseCode::AWAY), String::new()),
        ]);
        ours.get_mut().takes = usize::MAX;
        flush(&mut ours);
        prop_assert_eq!(ours.queued_bytes(), 0);
        let other = if role == Role::Server { Role::Client } else { Role::Server };
        let stream = Pieces::arriving(cut(&ours.get_mut().taken, &sizes));
        let mut theirs = WebSocket::new(stream, other, Limits { max_message_bytes: LIMIT }, &[]);
        prop_assert_eq!(read_all(&mut theirs), (expected, None));
    }

    #[test]
    fn bytes_of_any_kind_are_read_or_refused_and_the_same_in_any_pieces(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        sizes in prop::collection::vec(1_usize..50, 1..5),
        role in prop::sample::select(vec![Role::Server, Role::Client]),
    ) {
        let whole = read_bytes(role, 100, &bytes);
        let stream = Pieces::arriving(cut(&bytes, &sizes));
        let mut socket = WebSocket::new(stream, role, Limits { max_message_bytes: 100 }, &[]);
        prop_assert_eq!(read_all(&mut socket), whole);
    }
}

#[test]
fn a_length_that_is_announced_costs_no_memory() {
    let hundred_megabytes = 100 << 20;
    let mut bytes = head(0x80 | BINARY, mask_to(Role::Server), hundred_megabytes);
    bytes.extend([0; 1_000]);
    let limits = Limits { max_message_bytes: usize::MAX };
    let mut socket = WebSocket::new(Pieces::arriving(cut(&bytes, &[100])), Role::Server, limits, &[]);
    assert_eq!(read_all(&mut socket), (Vec::new(), None));
    assert!(socket.get_mut().max_read_bytes <= 4 << 10, "{}", socket.get_mut().max_read_bytes);
}

#[test]
fn a_buffer_that_was_large_is_given_back() {
    let mask = mask_to(Role::Server);
    let large = frame(0x80 | BINARY, mask, &[1; 60_000]);
    let small = frame(0x80 | BINARY, mask, &[2; 10]);
    let stream = Pieces::arriving([large, small]);
    let mut socket = WebSocket::new(stream, Role::Server, Limits { max_message_bytes: LIMIT }, &[]);
    let (read, violation) = read_all(&mut socket);
    assert_eq!((read.len(), violation), (2, None));
    assert!(socket.get_mut().max_read_bytes > 20_000, "it has grown");
    socket.get_mut().max_read_bytes = 0;
    assert_eq!(read_all(&mut socket), (Vec::new(), None));
    assert!(socket.get_mut().max_read_bytes <= 4 << 10, "{}", socket.get_mut().max_read_bytes);
}

#[test]
fn frames_are_counted_with_pings_and_parts() {
    let mask = mask_to(Role::Server);
    let bytes = [
        frame(TEXT, mask, b"a"),
        frame(0x80 | PING, mask, b""),
        frame(CONTINUATION, mask, b""),
        frame(0x80 | CONTINUATION, mask, b"b"),
    ];
    let stream = Pieces::arriving([bytes.concat()]);
    let mut socket = WebSocket::new(stream, Role::Server, Limits { max_message_bytes: LIMIT }, &[]);
    assert_eq!(read_all(&mut socket).0, [Kept::Ping(Vec::new()), Kept::Text("ab".into())]);
    assert_eq!(socket.frames(), 4);
}
