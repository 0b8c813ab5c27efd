//! In a call with the simulator, as it is without a key.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::in_writing::start;
use super::prompt_set::{Prompt, Reply, Verdicts, load};
use crate::serve::Server;
use crate::voice::page::Page;

fn new_cookie(server: &Server) -> String {
    let (_, head, _) = server.ask("GET", "/api/me", "", "");
    let (_, cookie) = head.split_once("set-cookie: ").unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

/// What comes of one prompt: everything up to the end of the turn.
async fn say(page: &mut Page, prompt: &Prompt) -> Reply {
    let before = page.messages.len();
    page.send_text(&prompt.text).await;
    page.wait_for("turn_complete").await;
    let new = &page.messages[before..];
    let of = |kind: &'static str| new.iter().filter(move |it| it["type"] == kind);
    let spoken = of("transcript").filter(|it| it["role"] == "assistant");
    let call = |it: &Value| (it["name"].as_str().unwrap_or_default().to_owned(), it["args"].clone());
    Reply {
        text: spoken.filter_map(|it| it["text"].as_str()).collect(),
        calls: of("tool_call").map(call).collect(),
    }
}

/// A call takes as long as its answers are spoken, so that many are held at once.
const MAX_OPEN_CALLS: usize = 32;

async fn hold(server: SocketAddr, cookie: String, conversation: Vec<Prompt>) -> Vec<(Prompt, Reply)> {
    let mut page = Page::dial(server, cookie, json!({})).await;
    let mut replies = Vec::new();
    for prompt in conversation.into_iter().filter(|prompt| !prompt.is_text_only) {
        let reply = say(&mut page, &prompt).await;
        // An approval is the page's business, and what follows it is judged in writing.
        let is_last = prompt.is_approved;
        replies.push((prompt, reply));
        if is_last {
            break;
        }
    }
    replies
}

/// On a machine with much else to do, the server may give up a client that does not keep up. Such a call is held once more.
const MAX_ATTEMPTS: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_answers_the_same_in_a_call() {
    let data = tempfile::tempdir().unwrap();
    let mut server = start(data.path());
    let mut verdicts = Verdicts::default();
    let mut rest: Vec<usize> = (0..load("prompts.txt").len()).collect();
    for attempt in 1..=MAX_ATTEMPTS {
        let mut open: JoinSet<Vec<(Prompt, Reply)>> = JoinSet::new();
        let mut places = BTreeMap::new();
        let mut failed = Vec::new();
        let mut waiting = std::mem::take(&mut rest).into_iter();
        loop {
            while open.len() < MAX_OPEN_CALLS
                && let Some(place) = waiting.next()
            {
                let conversation = load("prompts.txt").swap_remove(place);
                let call = open.spawn(hold(server.address, new_cookie(&server), conversation));
                places.insert(call.id(), place);
            }
            match open.join_next_with_id().await {
                Some(Ok((_, replies))) => {
                    replies.iter().for_each(|(prompt, reply)| verdicts.judge(prompt, reply));
                }
                Some(Err(error)) => failed.push(places[&error.id()]),
                None => break,
            }
        }
        assert!(failed.is_empty() || attempt < MAX_ATTEMPTS, "calls that were lost twice: {failed:?}");
        rest = failed;
    }
    server.child.kill().unwrap();
    // Passages are short in a call, and there are two look-ups for each thing that is said.
    verdicts.check(0.6);
}
