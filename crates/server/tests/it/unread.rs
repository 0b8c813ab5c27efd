//! Answers that are not read, and what they take.

use std::time::Duration;

use quarterdeck_server::Settings;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;
use tokio::time::timeout;

use crate::http::{Answer, Ask, Open};
use crate::world::World;

/// What waits for the readers of one answer at the most, in bytes.
const MAX_BACKLOG: u64 = (1 << 20) + (64 << 10);
/// What an answer may have at the most, in bytes.
const MAX_ANSWER: usize = 4 << 20;
/// A model that says thirty million letters.
const POUR: &str = "pour 30000";

/// Sends a request on a connection that takes as little as possible, and reads no more than the head of the answer.
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

/// Watches until something holds, and that what waits for readers is never too much meanwhile.
async fn watch(world: &World, backlog: u64, until: impl Fn(u64, u64) -> bool) {
    let watched = async {
        loop {
            let (answers, conversations) = memory(world).await;
            assert!(answers <= backlog, "{answers} bytes wait for readers");
            if until(answers, conversations) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), watched).await.unwrap();
}

/// Watches until no turn runs any more.
async fn over(world: &World, backlog: u64) {
    let over = async {
        while world.running() > 0 {
            watch(world, backlog, |_, _| true).await;
        }
    };
    timeout(Duration::from_secs(60), over).await.unwrap();
}

fn say(world: &World, cookie: &str, chat: &str, text: &str) -> Ask {
    world.post("/api/chat", &json!({ "message": text, "id": chat })).with("cookie", cookie)
}

/// The words of a stream, and how many bytes it says were left out. The stream is what a client can read.
fn words(answer: &Answer) -> (String, u64) {
    assert!(answer.text().ends_with("data: [DONE]\n\n"), "it has an end");
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
                assert!(open.is_none() && event["data"]["message"].as_str().unwrap().contains("left out"));
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
async fn a_reader_that_does_not_read_is_told_what_it_missed_and_disturbs_no_other() {
    let world = World::new().await;
    let (ann, ben) = (world.newcomer().await, world.newcomer().await);
    let mut slow = unread(&world, say(&world, &ann, "c", POUR)).await;
    let mut fast = world.get("/api/chat/c/stream").with("cookie", &ann).open().await;
    fast.until("start-step").await;
    world.go_on.add_permits(1);
    let reading = tokio::spawn(async move { fast.rest().await });
    // Another conversation goes on beside it.
    let other = timeout(Duration::from_secs(10), say(&world, &ben, "d", "hello").send()).await.unwrap();
    assert_eq!(words(&other).0, "You said: hello");
    watch(&world, MAX_BACKLOG, |_, _| reading.is_finished()).await;
    let whole = reading.await.unwrap();
    let (text, left_out) = words(&whole);
    assert_eq!(left_out, 0, "who reads misses nothing");
    assert!(text.len() > MAX_ANSWER - 2_000 && text.len() <= MAX_ANSWER, "{}", text.len());
    assert_eq!(finish_reason(&whole), "length");

    let late = slow.rest().await;
    let (end, left_out) = words(&late);
    assert!(left_out > 2 << 20, "{left_out}");
    assert_eq!(end.len() as u64 + left_out, text.len() as u64);
    assert!(text.ends_with(&end[end.len() - 100_000..]));
    assert_eq!(finish_reason(&late), "length");
    drop(slow);
    // Nothing of it stays in memory, and it can be read whole.
    watch(&world, MAX_BACKLOG, |answers, conversations| answers == 0 && conversations < 10_000).await;
    let session = world.get("/api/sessions/c").with("cookie", &ann).send().await.text();
    assert!(session.contains(&text[..1_000_000]) && session.contains(&text[text.len() - 1_000_000..]));
    assert!(memory(&world).await.1 < 10_000, "what was brought back to be looked at is let go");
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_not_kept_for_the_reader() {
    let world = World::new().await;
    let cookie = world.newcomer().await;
    world.go_on.add_permits(1);
    let mut slow = unread(&world, say(&world, &cookie, "c", POUR)).await;
    // The turn comes to its end without being read, and is stored.
    over(&world, MAX_BACKLOG).await;
    let session = world.get("/api/sessions/c").with("cookie", &cookie).send().await.text();
    assert!(session.contains("It pours: ") && session.len() > MAX_ANSWER - 10_000);
    assert!(memory(&world).await.0 > 0, "what was not read yet waits");
    let (end, left_out) = words(&slow.rest().await);
    assert!(left_out > 2 << 20 && end.len() < 2 << 20, "{left_out} {}", end.len());
    drop(slow);
    // The same message once more is the same answer, told again within the same bounds.
    let message = json!({ "messages": [{ "id": "m", "role": "user", "parts": [{ "type": "text", "text": POUR }] }], "id": "e" });
    let again = || world.post("/api/chat", &message).with("cookie", &cookie);
    world.go_on.add_permits(1);
    let first = again().send().await;
    let again = unread(&world, again()).await;
    watch(&world, MAX_BACKLOG, |answers, _| answers > 0).await;
    let mut again = again;
    let (end, left_out) = words(&again.rest().await);
    assert_eq!(end.len() as u64 + left_out, words(&first).0.len() as u64);
    drop(again);
    watch(&world, MAX_BACKLOG, |answers, _| answers == 0).await;
}

#[tokio::test]
async fn many_that_do_not_read_take_no_more_than_their_share() {
    let world = World::new().await;
    world.go_on.add_permits(8);
    let mut unread_ones = Vec::new();
    for number in 0..8 {
        let cookie = world.newcomer().await;
        unread_ones.push(unread(&world, say(&world, &cookie, &format!("c{number}"), POUR)).await);
    }
    let cookie = world.newcomer().await;
    let other = timeout(Duration::from_secs(10), say(&world, &cookie, "d", "hello").send()).await.unwrap();
    assert_eq!(other.status, 200);
    // Large conversations are let go as soon as their turns are over.
    over(&world, 8 * MAX_BACKLOG).await;
    watch(&world, 8 * MAX_BACKLOG, |_, conversations| conversations < 100_000).await;
    for open in &mut unread_ones {
        assert!(words(&open.rest().await).1 > 2 << 20);
    }
    drop(unread_ones);
    watch(&world, 8 * MAX_BACKLOG, |answers, _| answers == 0).await;
}

#[tokio::test]
async fn through_v1_it_is_told_in_words() {
    let world = World::new().await;
    world.go_on.add_permits(1);
    let body = json!({ "messages": [{ "role": "user", "content": POUR }], "stream": true });
    let mut slow = unread(&world, world.post("/v1/chat/completions", &body)).await;
    over(&world, MAX_BACKLOG).await;
    watch(&world, MAX_BACKLOG, |_, conversations| conversations < 100_000).await;
    let answer = slow.rest().await;
    let text = answer.text();
    assert!(text.ends_with("data: [DONE]\n\n"));
    assert!(text.contains("bytes of this answer were not read in time"), "it is said");
    assert!(text.contains(r#""finish_reason":"length""#));
    world.go_on.add_permits(1);
    let whole = json!({ "messages": [{ "role": "user", "content": POUR }] });
    let whole = world.post("/v1/chat/completions", &whole).send().await.json();
    let content = whole["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(content.len() > (1 << 20) - 2_000 && content.len() <= 1 << 20, "{}", content.len());
    assert_eq!(whole["choices"][0]["finish_reason"], "length", "more than that is for clients that stream");
}

#[tokio::test]
async fn a_large_conversation_that_is_not_read_holds_its_place() {
    let world = World::new().await;
    let (ann, ben) = (world.newcomer().await, world.newcomer().await);
    world.go_on.add_permits(1);
    say(&world, &ann, "large", POUR).send().await;
    say(&world, &ann, "small", "hello").send().await;
    let look = |chat: &str| world.get(&format!("/api/sessions/{chat}")).with("cookie", &ann);
    let mut first = unread(&world, look("large")).await;
    let _second = unread(&world, look("large")).await;
    let refused = look("large").send().await;
    assert_eq!(refused.refusal().0, 429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(look("small").send().await.status, 200, "what is small needs no place");
    assert_eq!(say(&world, &ben, "c", "hello").send().await.status, 200);
    let read = first.rest().await;
    assert!(read.json()["messages"].as_array().unwrap().len() == 2, "it is whole");
    drop(first);
    let given_back = async {
        while look("large").send().await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), given_back).await.unwrap();
}

#[tokio::test]
async fn an_answer_in_one_piece_that_is_not_read_holds_its_place() {
    let world = World::with(Settings { streams_per_client: 1, ..Settings::default() }).await;
    let cookie = world.newcomer().await;
    world.go_on.add_permits(1);
    let ask = |text: &str| {
        let body = json!({ "messages": [{ "role": "user", "content": text }] });
        world.post("/v1/chat/completions", &body).with("cookie", &cookie)
    };
    let mut whole = unread(&world, ask(POUR)).await;
    assert_eq!(ask("hello").send().await.refusal().0, 429);
    whole.rest().await;
    drop(whole);
    let given_back = async {
        while ask("hello").send().await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), given_back).await.unwrap();
}
