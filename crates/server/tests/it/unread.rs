//! Memory used by unread answers.

use std::time::Duration;

use quarterdeck_server::Settings;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;
use tokio::time::timeout;

use crate::http::{Answer, Ask, Open};
use crate::world::World;

/// Per answer.
const MAX_BACKLOG_BYTES: u64 = (1 << 20) + (64 << 10);
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Thirty million characters.
const POUR: &str = "pour 30000";

/// Sends a request with a minimal receive buffer and reads only the head of the response.
async fn unread(world: &World, ask: Ask) -> Open {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut stream = socket.connect(world.address).await.unwrap();
    stream.write_all(&ask.bytes()).await.unwrap();
    Open::read(stream).await
}

async fn memory(world: &World) -> (u64, u64) {
    let memory = world.get("/metrics").send().await.json()["memory"].clone();
    (memory["answers"].as_u64().unwrap(), memory["conversations"].as_u64().unwrap())
}

/// Polls the metrics until `until` holds, and checks the backlog meanwhile.
async fn watch(world: &World, backlog: u64, until: impl Fn(u64, u64) -> bool) {
    let watched = async {
        loop {
            let (answers, conversations) = memory(world).await;
            assert!(answers <= backlog, "{answers} bytes are unread");
            if until(answers, conversations) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), watched).await.unwrap();
}

/// Polls until no turn runs.
async fn wait_for_turns(world: &World, backlog: u64) {
    let waiting = async {
        while world.running_turns() > 0 {
            watch(world, backlog, |_, _| true).await;
        }
    };
    timeout(Duration::from_secs(60), waiting).await.unwrap();
}

fn say(world: &World, cookie: &str, chat: &str, text: &str) -> Ask {
    world.post("/api/chat", &json!({ "message": text, "id": chat })).with("cookie", cookie)
}

/// The text of a stream, and the bytes reported as left out.
fn text_of(answer: &Answer) -> (String, u64) {
    assert!(answer.text().ends_with("data: [DONE]\n\n"), "the stream is complete");
    let (mut text, mut left_out, mut open) = (String::new(), 0, None);
    for event in answer.events() {
        match event["type"].as_str().unwrap() {
            "text-start" => assert_eq!(open.replace(event["id"].clone()), None),
            "text-end" => assert_eq!(open.take(), Some(event["id"].clone())),
            "text-delta" => {
                assert_eq!(open.as_ref(), Some(&event["id"]));
                text.push_str(event["delta"].as_str().unwrap());
            }
            "data-left-out" => {
                assert!(
                    open.is_none() && event["data"]["message"].as_str().unwrap().contains("not read in time")
                );
                left_out += event["data"]["bytes"].as_u64().unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(open, None);
    (text, left_out)
}

fn finish_reason(answer: &Answer) -> Value {
    answer.event("finish")["finishReason"].clone()
}

#[tokio::test]
async fn a_slow_reader_learns_what_it_missed_and_does_not_slow_others() {
    let world = World::new().await;
    let (ann, ben) = (world.new_client().await, world.new_client().await);
    let mut slow = unread(&world, say(&world, &ann, "c", POUR)).await;
    let mut fast = world.get("/api/chat/c/stream").with("cookie", &ann).open().await;
    fast.until("start-step").await;
    world.resume.add_permits(1);
    let reading = tokio::spawn(async move { fast.rest().await });
    // Another conversation is not affected.
    let other = timeout(Duration::from_secs(10), say(&world, &ben, "d", "hello").send()).await.unwrap();
    assert_eq!(text_of(&other).0, "You said: hello");
    watch(&world, MAX_BACKLOG_BYTES, |_, _| reading.is_finished()).await;
    let whole = reading.await.unwrap();
    let (text, left_out) = text_of(&whole);
    assert_eq!(left_out, 0, "a fast reader misses nothing");
    assert!(text.len() > MAX_ANSWER_BYTES - 2_000 && text.len() <= MAX_ANSWER_BYTES, "{}", text.len());
    assert_eq!(finish_reason(&whole), "length");

    let late = slow.rest().await;
    let (end, left_out) = text_of(&late);
    assert!(left_out > 2 << 20, "{left_out}");
    assert_eq!(end.len() as u64 + left_out, text.len() as u64);
    assert!(text.ends_with(&end[end.len() - 100_000..]));
    assert_eq!(finish_reason(&late), "length");
    drop(slow);
    // It leaves memory and can be read whole.
    watch(&world, MAX_BACKLOG_BYTES, |answers, conversations| answers == 0 && conversations < 10_000).await;
    let session = world.get("/api/sessions/c").with("cookie", &ann).send().await.text();
    assert!(session.contains(&text[..1_000_000]) && session.contains(&text[text.len() - 1_000_000..]));
    assert!(memory(&world).await.1 < 10_000, "a loaded conversation is evicted");
}

#[tokio::test]
async fn an_unread_answer_is_bounded_in_memory() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    world.resume.add_permits(1);
    let mut slow = unread(&world, say(&world, &cookie, "c", POUR)).await;
    // The turn ends unread and is stored.
    wait_for_turns(&world, MAX_BACKLOG_BYTES).await;
    let session = world.get("/api/sessions/c").with("cookie", &cookie).send().await.text();
    assert!(session.contains("It pours: ") && session.len() > MAX_ANSWER_BYTES - 10_000);
    assert!(memory(&world).await.0 > 0, "unread text is kept");
    let (end, left_out) = text_of(&slow.rest().await);
    assert!(left_out > 2 << 20 && end.len() < 2 << 20, "{left_out} {}", end.len());
    drop(slow);
    // A repeated message replays the answer within the same bounds.
    let parts = json!([{ "type": "text", "text": POUR }]);
    let message = json!({ "messages": [{ "id": "m", "role": "user", "parts": parts }], "id": "e" });
    let again = || world.post("/api/chat", &message).with("cookie", &cookie);
    world.resume.add_permits(1);
    let first = again().send().await;
    let again = unread(&world, again()).await;
    watch(&world, MAX_BACKLOG_BYTES, |answers, _| answers > 0).await;
    let mut again = again;
    let (end, left_out) = text_of(&again.rest().await);
    assert_eq!(end.len() as u64 + left_out, text_of(&first).0.len() as u64);
    drop(again);
    watch(&world, MAX_BACKLOG_BYTES, |answers, _| answers == 0).await;
}

#[tokio::test]
async fn many_slow_readers_are_bounded_in_memory() {
    let world = World::new().await;
    world.resume.add_permits(8);
    let mut unread_ones = Vec::new();
    for number in 0..8 {
        let cookie = world.new_client().await;
        unread_ones.push(unread(&world, say(&world, &cookie, &format!("c{number}"), POUR)).await);
    }
    let cookie = world.new_client().await;
    let other = timeout(Duration::from_secs(10), say(&world, &cookie, "d", "hello").send()).await.unwrap();
    assert_eq!(other.status, 200);
    // Large conversations are evicted when their turns end.
    wait_for_turns(&world, 8 * MAX_BACKLOG_BYTES).await;
    watch(&world, 8 * MAX_BACKLOG_BYTES, |_, conversations| conversations < 100_000).await;
    for open in &mut unread_ones {
        assert!(text_of(&open.rest().await).1 > 2 << 20);
    }
    drop(unread_ones);
    watch(&world, 8 * MAX_BACKLOG_BYTES, |answers, _| answers == 0).await;
}

#[tokio::test]
async fn through_v1_the_gap_is_noted_in_the_text() {
    let world = World::new().await;
    world.resume.add_permits(1);
    let body = json!({ "messages": [{ "role": "user", "content": POUR }], "stream": true });
    let mut slow = unread(&world, world.post("/v1/chat/completions", &body)).await;
    wait_for_turns(&world, MAX_BACKLOG_BYTES).await;
    watch(&world, MAX_BACKLOG_BYTES, |_, conversations| conversations < 100_000).await;
    let answer = slow.rest().await;
    let text = answer.text();
    assert!(text.ends_with("data: [DONE]\n\n"));
    assert!(text.contains("bytes of this answer were not read in time"), "the gap is noted");
    assert!(text.contains(r#""finish_reason":"length""#));
    world.resume.add_permits(1);
    let whole = json!({ "messages": [{ "role": "user", "content": POUR }] });
    let whole = world.post("/v1/chat/completions", &whole).send().await.json();
    let content = whole["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(content.len() > (1 << 20) - 2_000 && content.len() <= 1 << 20, "{}", content.len());
    assert_eq!(whole["choices"][0]["finish_reason"], "length", "longer answers need streaming");
}

#[tokio::test]
async fn an_unread_large_conversation_holds_its_permit() {
    let world = World::new().await;
    let (ann, ben) = (world.new_client().await, world.new_client().await);
    world.resume.add_permits(1);
    say(&world, &ann, "large", POUR).send().await;
    say(&world, &ann, "small", "hello").send().await;
    let look = |chat: &str| world.get(&format!("/api/sessions/{chat}")).with("cookie", &ann);
    let mut first = unread(&world, look("large")).await;
    let _second = unread(&world, look("large")).await;
    let refused = look("large").send().await;
    assert_eq!(refused.refusal().0, 429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(look("small").send().await.status, 200, "a small response needs no permit");
    assert_eq!(say(&world, &ben, "c", "hello").send().await.status, 200);
    let read = first.rest().await;
    assert!(read.json()["messages"].as_array().unwrap().len() == 2, "it is complete");
    drop(first);
    let released = async {
        while look("large").send().await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), released).await.unwrap();
}

#[tokio::test]
async fn an_unread_completion_holds_its_permit() {
    let world = World::with(Settings { streams_per_client: 1, ..Settings::default() }).await;
    let cookie = world.new_client().await;
    world.resume.add_permits(1);
    let ask = |text: &str| {
        let body = json!({ "messages": [{ "role": "user", "content": text }] });
        world.post("/v1/chat/completions", &body).with("cookie", &cookie)
    };
    let mut whole = unread(&world, ask(POUR)).await;
    assert_eq!(ask("hello").send().await.refusal().0, 429);
    whole.rest().await;
    drop(whole);
    let released = async {
        while ask("hello").send().await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), released).await.unwrap();
}
