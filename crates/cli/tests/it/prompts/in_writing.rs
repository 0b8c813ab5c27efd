//! Through the protocol of the page, and through `/v1/chat/completions`.

use serde_json::{Value, json};

use super::prompt_set::{Prompt, Reply, Verdicts, load};
use crate::serve::{Server, command};

pub(super) fn start(data: &std::path::Path) -> Server {
    let mut command = command(data, crate::serve::ANYWHERE);
    for limit in
        ["REQUESTS_PER_MINUTE_CLIENT", "REQUESTS_PER_MINUTE_ADDRESS", "CONNECTIONS_PER_ADDRESS", "CALLS"]
    {
        command.env(format!("QUARTERDECK_LIMITS__{limit}"), "100000");
    }
    let mut server = Server::begin(&mut command);
    server.collect_log();
    server
}

/// The parts of a stream.
fn parts(body: &str) -> Vec<Value> {
    body.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
}

/// One conversation on the page.
#[derive(Default)]
struct Page {
    cookie: String,
    session: Option<String>,
}

impl Page {
    fn say(&mut self, server: &Server, prompt: &Prompt) -> Reply {
        let body = json!({ "message": prompt.text, "sessionId": self.session }).to_string();
        let (status, head, body) = server.ask("POST", "/api/chat", &self.cookie, &body);
        assert_eq!(status, 200, "{}: {body}", prompt.text);
        if let Some((_, set)) = head.split_once("set-cookie: ") {
            self.cookie = format!("cookie: {}\r\n", set.split(';').next().unwrap());
        }
        let parts = parts(&body);
        if let Some(session) = parts.iter().find_map(|part| part["messageMetadata"]["sessionId"].as_str()) {
            self.session = Some(session.to_owned());
        }
        if prompt.is_approved {
            let asked = parts.iter().find(|part| part["type"] == "data-confirmation");
            let asked = asked.unwrap_or_else(|| panic!("{} is to be approved: {body}", prompt.text));
            let decision = json!({ "token": asked["data"]["token"], "approve": true }).to_string();
            let (status, _, body) = server.ask("POST", "/api/confirmations", &self.cookie, &decision);
            assert_eq!(status, 200, "{}: {body}", prompt.text);
        }
        let deltas = parts.iter().filter(|part| part["type"] == "text-delta");
        let calls = parts.iter().filter(|part| part["type"] == "tool-input-available");
        Reply {
            text: deltas.filter_map(|part| part["delta"].as_str()).collect(),
            calls: calls
                .map(|part| (part["toolName"].as_str().unwrap().to_owned(), part["input"].clone()))
                .collect(),
        }
    }
}

fn on_the_page(file: &str) -> Verdicts {
    let data = tempfile::tempdir().unwrap();
    let mut server = start(data.path());
    let mut verdicts = Verdicts::default();
    for conversation in load(file) {
        let mut page = Page::default();
        for prompt in &conversation {
            verdicts.judge(prompt, &page.say(&server, prompt));
        }
    }
    server.child.kill().unwrap();
    verdicts
}

#[test]
fn rehearsal_answers_the_set_without_a_wrong_statement() {
    let verdicts = on_the_page("prompts.txt");
    assert!(verdicts.prompts >= 120);
    verdicts.check(0.7);
}

/// These were not used to write the rules.
#[test]
fn rehearsal_makes_no_wrong_statement_about_what_it_has_not_seen() {
    on_the_page("held-out.txt").check(0.6);
}

/// Calls and their results are not told, only what is said, so a conversation ends where more than that is needed.
#[test]
fn rehearsal_answers_the_same_through_chat_completions() {
    let data = tempfile::tempdir().unwrap();
    let mut server = start(data.path());
    let mut verdicts = Verdicts::default();
    for conversation in load("prompts.txt") {
        let mut messages = Vec::new();
        for prompt in &conversation {
            messages.push(json!({ "role": "user", "content": prompt.text }));
            let body = json!({ "model": "quarterdeck", "messages": messages }).to_string();
            let (status, _, body) = server.ask("POST", "/v1/chat/completions", "", &body);
            assert_eq!(status, 200, "{}: {body}", prompt.text);
            let answer: Value = serde_json::from_str(&body).unwrap();
            let text = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned();
            messages.push(json!({ "role": "assistant", "content": text }));
            verdicts.judge_words(prompt, &text);
            if prompt.is_call() {
                break;
            }
        }
    }
    server.child.kill().unwrap();
    verdicts.check(0.7);
}
