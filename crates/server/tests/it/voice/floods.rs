//! Pages that send too much or read too little, beside one that does neither.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::page::{Page, Read};
use crate::world::World;

/// A call that must not notice anything.
async fn bystander(world: &World) -> Page {
    Page::calling(world, &world.newcomer().await).await.0
}

/// A call, on which these bytes arrive as they are; how it ends.
async fn ends(world: &World, bytes: &[u8]) -> (String, u16) {
    let (mut page, _) = Page::calling(world, &world.newcomer().await).await;
    // The server may close before it has read everything.
    let _ = page.socket.get_mut().write_all(bytes).await;
    let (error, code) = page.ending().await;
    (error.unwrap()["type"].as_str().unwrap().to_owned(), code.unwrap())
}

/// A masked frame, the mask of which changes nothing.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[first, 0x80 | length, 0, 0, 0, 0], payload].concat()
}

#[tokio::test]
async fn every_flood_gets_a_typed_error_and_its_close_code_and_nobody_else_notices() {
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
        assert_eq!(ends(&world, &bytes).await, (kind.into(), code), "{what}");
        other.is_heard().await;
    }
}

#[tokio::test]
async fn audio_at_twenty_times_its_pace_is_a_flood() {
    let world = World::new().await;
    let mut other = bystander(&world).await;
    let (mut page, _) = Page::calling(&world, &world.newcomer().await).await;
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
    other.is_heard().await;
}

/// How much memory this process holds.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

#[tokio::test]
async fn a_page_that_does_not_read_costs_no_memory_and_loses_only_audio() {
    let world = World::new().await;
    let mut other = bystander(&world).await;
    let (mut page, _) = Page::calling(&world, &world.newcomer().await).await;
    let before = resident();
    page.says(&json!({ "type": "text", "text": "speech 40000000" })).await;
    for _ in 0..80 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        other.is_heard().await;
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
    assert!((64 << 10..40_000_000).contains(&heard), "what was too old is gone: {heard}");
    page.is_heard().await;
}
