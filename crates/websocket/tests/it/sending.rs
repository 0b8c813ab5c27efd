//! The send queue: order, dropped audio, pongs and close frames.

use proptest::prelude::*;
use quarterdeck_websocket::{Class, CloseCode, Limits, Opcode, Role, WebSocket};

use crate::wire::{BINARY, CLOSE, Kept, PING, Pieces, TEXT, flush, frame, mask_to, read_all, read_bytes};

const LIMIT: usize = 70_000;

fn server(stream: Pieces) -> WebSocket<Pieces> {
    WebSocket::new(stream, Role::Server, Limits { max_message_bytes: LIMIT }, &[])
}

fn audio(socket: &mut WebSocket<Pieces>, byte: u8) {
    socket.send(Opcode::Binary, Class::Audio, 100, |out| out.extend_from_slice(&[byte; 100]));
}

/// Sends everything and reads it as the peer does.
fn sent(socket: &mut WebSocket<Pieces>) -> Vec<Kept> {
    socket.get_mut().takes = usize::MAX;
    flush(socket);
    read_bytes(Role::Client, LIMIT, &socket.get_mut().taken).0
}

fn heard(byte: u8) -> Kept {
    Kept::Binary(vec![byte; 100])
}

#[test]
fn old_audio_is_dropped_and_control_frames_keep_their_order() {
    let mut socket = server(Pieces::default());
    audio(&mut socket, 1);
    socket.send_text("one");
    audio(&mut socket, 2);
    audio(&mut socket, 3);
    socket.send_text("two");
    audio(&mut socket, 4);
    let queued = socket.queued_bytes();
    assert_eq!(socket.queued_control_bytes(), 2 * (2 + 3));
    // A frame of 100 bytes has a head of two.
    assert_eq!(socket.drop_audio(204), 204);
    assert_eq!(socket.queued_bytes(), queued - 204);
    assert_eq!(sent(&mut socket), [text("one"), heard(3), text("two"), heard(4)]);
    assert_eq!(socket.drop_audio(0), 0);
}

fn text(text: &str) -> Kept {
    Kept::Text(text.into())
}

#[test]
fn a_partly_sent_frame_is_not_dropped() {
    let mut socket = server(Pieces::default());
    audio(&mut socket, 1);
    audio(&mut socket, 2);
    socket.get_mut().takes = 1;
    flush(&mut socket);
    assert_eq!(socket.drop_audio(0), 102);
    // The partly sent frame stays, whatever is dropped in between.
    audio(&mut socket, 3);
    assert_eq!(socket.drop_audio(0), 102);
    assert_eq!(sent(&mut socket), [heard(1)]);
}

#[test]
fn a_frame_after_one_that_was_sent_whole_may_be_dropped() {
    let mut socket = server(Pieces::default());
    audio(&mut socket, 1);
    audio(&mut socket, 2);
    socket.get_mut().takes = 102;
    flush(&mut socket);
    assert_eq!(socket.drop_audio(0), 102);
    assert_eq!(sent(&mut socket), [heard(1)]);
}

proptest! {
    #[test]
    fn dropping_never_breaks_the_frames(
        steps in prop::collection::vec((0_u8..3, 0_usize..400), 1..60),
        role in prop::sample::select(vec![Role::Server, Role::Client]),
    ) {
        let mut socket = WebSocket::new(Pieces::default(), role, Limits { max_message_bytes: LIMIT }, &[]);
        let (mut sent_texts, mut number) = (Vec::new(), 0_u32);
        for (what, amount) in steps {
            match what {
                0 => audio(&mut socket, 7),
                1 => {
                    number += 1;
                    let words = format!("{number} {}", "x".repeat(amount));
                    socket.send_text(&words);
                    sent_texts.push(Kept::Text(words));
                }
                _ => {
                    socket.get_mut().takes = amount;
                    flush(&mut socket);
                    socket.drop_audio(amount);
                }
            }
        }
        socket.get_mut().takes = usize::MAX;
        flush(&mut socket);
        prop_assert_eq!(socket.queued_bytes(), 0);
        let other = if role == Role::Server { Role::Client } else { Role::Server };
        let (read, violation) = read_bytes(other, LIMIT, &socket.get_mut().taken);
        prop_assert_eq!(violation, None);
        let control: Vec<Kept> = read.into_iter().filter(|kept| *kept != heard(7)).collect();
        prop_assert_eq!(control, sent_texts);
    }
}

#[test]
fn a_ping_is_answered_with_its_own_payload() {
    let mut socket = server(Pieces::arriving([frame(0x80 | PING, mask_to(Role::Server), b"there?")]));
    assert_eq!(read_all(&mut socket).0, [Kept::Ping(b"there?".to_vec())]);
    socket.get_mut().takes = usize::MAX;
    flush(&mut socket);
    assert_eq!(socket.get_mut().taken, frame(0x8a, None, b"there?"));
}

#[test]
fn a_flood_of_pings_does_not_grow_the_send_queue() {
    let pings = frame(0x80 | PING, mask_to(Role::Server), &[b'x'; 125]).repeat(10_000);
    let mut socket = server(Pieces::arriving([pings]));
    assert_eq!(read_all(&mut socket).0.len(), 10_000);
    assert!(socket.queued_bytes() <= (16 << 10) + 127, "{}", socket.queued_bytes());
    for _ in 0..10_000 {
        socket.ping();
    }
    assert!(socket.queued_bytes() <= (16 << 10) + 127, "{}", socket.queued_bytes());
    let answers = sent(&mut socket);
    assert!(answers.len() > 100 && answers.iter().all(|answer| *answer == Kept::Pong));
}

#[test]
fn a_close_is_answered_once_with_its_code() {
    let mask = mask_to(Role::Server);
    let mut socket = server(Pieces::arriving([
        frame(0x80 | CLOSE, mask, &[0x0f, 0xa1]),
        frame(0x80 | TEXT, mask, b"after"),
    ]));
    assert_eq!(read_all(&mut socket).0, [Kept::Close(Some(CloseCode(4001)), String::new())]);
    socket.close(CloseCode::NORMAL, "ours");
    audio(&mut socket, 1);
    assert!(socket.is_closing());
    assert_eq!(sent(&mut socket), [Kept::Close(Some(CloseCode(4001)), String::new())]);
}

#[test]
fn a_violation_text_is_sent_before_the_close_frame() {
    let stream = Pieces::arriving([frame(0xc0 | TEXT, mask_to(Role::Server), b"hi")]);
    let mut socket = server(stream).with_violation_text(|violation| format!("no: {}", violation.what));
    assert!(read_all(&mut socket).1.is_some());
    let close = Kept::Close(Some(CloseCode::PROTOCOL), "reserved bits".into());
    assert_eq!(sent(&mut socket), [text("no: reserved bits"), close]);
}

#[test]
fn a_reason_is_cut_to_what_a_close_frame_holds() {
    let mut socket = server(Pieces::default());
    socket.close(CloseCode::POLICY, &"é".repeat(100));
    assert_eq!(sent(&mut socket), [Kept::Close(Some(CloseCode::POLICY), "é".repeat(61))]);
}

#[test]
fn a_frame_is_as_long_as_it_was_said_to_be() {
    let mut socket = server(Pieces::default());
    socket.send(Opcode::Binary, Class::Control, 2, |out| out.extend_from_slice(&[1, 2]));
    socket.get_mut().takes = usize::MAX;
    flush(&mut socket);
    assert_eq!(socket.get_mut().taken, frame(0x80 | BINARY, None, &[1, 2]));
}

#[tokio::test]
async fn finishing_waits_for_the_peers_close_and_passes_over_everything_else() {
    let mask = mask_to(Role::Server);
    let stream = Pieces {
        takes: usize::MAX,
        ..Pieces::arriving([
            frame(0x80 | TEXT, mask, b"late"),
            frame(0x80 | CLOSE, mask, &[0x03, 0xe8]),
            vec![0; 10],
        ])
    };
    let mut socket = server(stream);
    socket.send_text("last words");
    socket.finish(CloseCode::NORMAL, "over").await.unwrap();
    assert_eq!(socket.get_mut().arriving.len(), 1, "nothing is read after the close frame");
    let close = Kept::Close(Some(CloseCode::NORMAL), "over".into());
    assert_eq!(sent(&mut socket), [text("last words"), close]);
}

#[tokio::test]
async fn finishing_is_done_at_once_when_the_peer_has_closed_before() {
    let closes = frame(0x80 | CLOSE, mask_to(Role::Server), &[0x03, 0xe8]);
    let (mut theirs, ours) = tokio::io::duplex(1_000);
    tokio::io::AsyncWriteExt::write_all(&mut theirs, &closes).await.unwrap();
    let mut socket = WebSocket::new(ours, Role::Server, Limits { max_message_bytes: LIMIT }, &[]);
    socket.fill().await.unwrap();
    assert!(matches!(socket.next(), Some(Ok(quarterdeck_websocket::Message::Close(..)))));
    // The peer keeps its end open, which is not waited for.
    socket.finish(CloseCode::NORMAL, "").await.unwrap();
    drop(theirs);
}

#[tokio::test]
async fn finishing_after_a_violation_reads_on_until_the_peer_is_gone() {
    let bad = frame(0xc0 | TEXT, mask_to(Role::Server), b"hi");
    let stream = Pieces {
        takes: usize::MAX,
        ..Pieces::arriving(std::iter::once(bad).chain(std::iter::repeat_n(vec![1; 500], 100)))
    };
    let mut socket = server(stream);
    socket.finish(CloseCode::NORMAL, "").await.unwrap();
    assert!(socket.get_mut().arriving.is_empty());
}
