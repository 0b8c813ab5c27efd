//! Clients that flood or do not read, beside a normal one.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::page::{Page, Read};
use crate::world::World;

/// A call that must not be affected.
async fn bystander(world: &World) -> Page {
    Page::calling(world, &world.new_client().await).await.0
}

/// Sends raw bytes on a call; the error type and the close code.
async fn ending_after(world: &World, bytes: &[u8]) -> (String, u16) {
    let (mut page, _) = Page::calling(world, &world.new_client().await).await;
    // The server may close before it has read everything.
    let _ = page.socket.get_mut().write_all(bytes).await;
    let (error, code) = page.ending().await;
    (error.unwrap()["type"].as_str().unwrap().to_owned(), code.unwrap())
}

/// A frame with a zero mask.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[first, 0x80 | length, 0, 0, 0, 0], payload].concat()
}

#[tokio::test]
async fn every_flood_gets_an_error_and_a_close_code_without_affecting_others() {
    let world = World::new().await;
    let mut other = bystander(&world).await;
    let hundred_megabytes =
        [&[0x82, 0xff][..], &(100_u64 << 20).to_be_bytes(), &[0; 4], &[0; 1_000]].concat();
    let nonsense = frame(0x81, b"nonsense").repeat(21);
    for (what, bytes, kind, code) in [
        ("a frame of 100 MB", hundred_megabytes, "VALIDATION", 1009),
        ("many tiny frames", frame(0x82, &[]).repeat(5_000), "RATE_LIMIT", 1008),
        ("many pings", frame(0x89, b"x").repeat(5_000), "RATE_LIMIT", 1008),
        (
            "many parts of one message",
            [frame(0x02, &[]), frame(0x00, &[]).repeat(5_000)].concat(),
            "RATE_LIMIT",
            1008,
        ),
        ("bytes that are no UTF-8", frame(0x81, &[0xff]), "VALIDATION", 1007),
        ("no frame at all", vec![0xff; 100], "VALIDATION", 1002),
        ("nonsense without end", nonsense, "RATE_LIMIT", 1008),
    ] {
        assert_eq!(ending_after(&world, &bytes).await, (kind.into(), code), "{what}");
        other.check_echo().await;
    }
}

#[tokio::test]
async fn audio_at_twenty_times_real_time_is_rejected() {
    let world = World::new().await;
    let mut other = bystander(&world).await;
    let (mut page, _) = Page::calling(&world, &world.new_client().await).await;
    // Twenty seconds of speech in less than one.
    for _ in 0..100 {
        page.socket.send(
            quarterdeck_websocket::Opcode::Binary,
            quarterdeck_websocket::Class::Control,
            6_400,
            |out| {
                out.extend_from_slice(&[0; 6_400]);
            },
        );
    }
    let _ = page.socket.flush().await;
    let (error, code) = page.ending().await;
    assert_eq!((&error.unwrap()["type"], code), (&json!("RATE_LIMIT"), Some(1008)));
    other.check_echo().await;
}

/// The resident memory of this process.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

#[tokio::test]
async fn an_unread_call_is_bounded_in_memory_and_loses_only_audio() {
    let world = World::new().await;
    let mut other = bystander(&world).await;
    let (mut page, _) = Page::calling(&world, &world.new_client().await).await;
    let before = resident();
    page.send_json(&json!({ "type": "text", "text": "speech 40000000" })).await;
    for _ in 0..80 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        other.check_echo().await;
        let grown = resident().saturating_sub(before);
        assert!(grown < 10 << 20, "{grown}");
    }
    let mut heard = 0;
    loop {
        match page.read().await {
            Read::Audio(audio) => heard += audio.len(),
            Read::Json(json) if json["type"] == "turn_complete" => break,
            Read::Json(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!((64 << 10..40_000_000).contains(&heard), "old audio was dropped: {heard}");
    page.check_echo().await;
}
