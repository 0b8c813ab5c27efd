//! A client that chats: it asks for writes, one after the other, each at any node; approves those that need it; and when
//! an answer is lost, asks again as a page does, with the same idempotency key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::{ASK_TIMEOUT, Dice, PAUSE, Surroundings, new_cookie};
use crate::journal::Told;

/// So many messages a conversation, so that none of them is forgotten for want of room.
const ASKS_PER_CONVERSATION: u32 = 20;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(45);

pub(crate) struct Chat {
    of: Arc<Surroundings>,
    dice: Dice,
    name: String,
    cookie: String,
    asked: u32,
    /// The ids of calls that it was shown, with what they were asked for.
    calls: BTreeMap<String, String>,
    /// How often it clicks at once; as it likes when there is nothing.
    clicks: Option<usize>,
}

/// What a stream of an answer said.
#[derive(Default)]
struct Answer {
    session: String,
    outcomes: Vec<Outcome>,
    /// The token of a question, if it asked one.
    token: Option<String>,
    /// Whether it came to its end.
    is_whole: bool,
}

/// What a call came to, as far as the stream says which one.
struct Outcome {
    call: String,
    /// What was done, where the answer says it.
    did: Option<String>,
    told: Told,
}

impl Chat {
    pub(crate) async fn new(of: Arc<Surroundings>, index: usize) -> Self {
        let mut dice = Dice::new(index as u64 + 1);
        let cookie = new_cookie(&of, &mut dice).await;
        Self { of, dice, name: format!("c{index}"), cookie, asked: 0, calls: BTreeMap::new(), clicks: None }
    }

    /// Asks for one thing after another until the load is over.
    pub(crate) async fn run(mut self) {
        while !self.of.is_over() {
            self.asked += 1;
            // Every third one needs an approval.
            let tool = if self.asked.is_multiple_of(3) { "pay" } else { "book" };
            let key = format!("{}-{}", self.name, self.asked);
            self.of.journal.ask(&key, &self.name);
            let (begin, mut is_first) = (Instant::now(), true);
            let waiting = tokio::time::timeout(ASK_TIMEOUT, self.ask(tool, &key, &mut is_first));
            if waiting.await.is_ok() {
                let kind = if is_first { "chat" } else { "chat after a fault" };
                self.of.journal.took(kind, begin.elapsed());
            }
            let of = self.of.clone();
            self.dice.think(&of).await;
        }
    }

    /// Asks for one thing and approves it with so many clicks at once, over all nodes.
    pub(crate) async fn click_often(mut self, clicks: usize) {
        self.clicks = Some(clicks);
        let key = format!("{}-1", self.name);
        self.of.journal.ask(&key, &self.name);
        drop(tokio::time::timeout(ASK_TIMEOUT, self.ask("pay", &key, &mut true)).await);
    }

    /// Asks until something is told about it.
    async fn ask(&mut self, tool: &str, key: &str, is_first: &mut bool) {
        let text = format!("{tool} {key}");
        for message in 0.. {
            let answer = loop {
                // What has been told counts, even if the rest of the answer is lost.
                match self.post(&text, &format!("{key}.{message}"), key).await {
                    Some(answer) if answer.is_whole || self.is_told(key) => break answer,
                    _ => {
                        *is_first = false;
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            };
            self.of.journal.set_session(key, &answer.session);
            if let Some(token) = answer.token.filter(|_| !self.is_told(key)) {
                self.approve(key, &token, is_first).await;
            }
            if self.is_told(key) {
                return;
            }
            // The answer broke off, and the user is told to ask again.
            *is_first = false;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Approves, sometimes with three clicks at three nodes at once, until something is told about it.
    async fn approve(&mut self, key: &str, token: &str, is_first: &mut bool) {
        let clicks = self.clicks.unwrap_or(if self.dice.below(3) == 0 { 3 } else { 1 });
        for attempt in 0..20 {
            let nodes: Vec<_> = (0..clicks).map(|_| self.dice.node(&self.of)).collect();
            let clicked = join_all(nodes.into_iter().map(|node| self.click(node, token))).await;
            let mut is_used = false;
            for (status, envelope) in clicked.into_iter().flatten() {
                self.of.journal.look_for_strays(&self.name, &envelope.to_string());
                self.of.journal.note(key, &format!("click: {status} {envelope}"));
                is_used |= envelope["error"]["type"] == "CONFIRMATION_INVALID";
                if status == 200 || status == 410 {
                    // A click that may be repeated has decided nothing, and another one may have at the same time.
                    let told =
                        Told::from_envelope(&envelope).filter(|_| envelope["error"]["retryable"] != true);
                    told.into_iter().for_each(|told| self.of.journal.tell(key, told));
                }
            }
            if self.is_told(key) {
                return;
            }
            *is_first = false;
            // Decided already: the conversation says what came of it, or will say so with its next answer.
            if is_used {
                self.load(key).await;
                if self.is_told(key) {
                    return;
                }
                self.post(&format!("look {key}"), &format!("{key}.look{attempt}"), key).await;
            }
            if self.is_told(key) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn is_told(&self, key: &str) -> bool {
        self.of.journal.is_told(key)
    }

    async fn click(&self, node: std::net::SocketAddr, token: &str) -> Option<(u16, Value)> {
        let body = json!({ "token": token, "approve": true }).to_string();
        let request = self.of.http.post(format!("http://{node}/api/confirmations")).body(body);
        let request = request.header("content-type", "application/json").header("cookie", &self.cookie);
        let answer = request.timeout(ANSWER_TIMEOUT).send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, serde_json::from_slice(&answer.bytes().await.ok()?).ok()?))
    }

    /// The name of the conversation that it is in.
    fn conversation(&self) -> String {
        format!("chat-{}-{}", self.name, self.asked / ASKS_PER_CONVERSATION)
    }

    /// Loads the conversation, as a page does that does not know what became of a decision.
    async fn load(&mut self, about: &str) {
        let url = format!("http://{}/api/sessions/{}", self.dice.node(&self.of), self.conversation());
        let request = self.of.http.get(url).header("cookie", &self.cookie).timeout(ANSWER_TIMEOUT);
        let Ok(response) = request.send().await else { return };
        let body = response.bytes().await.unwrap_or_default();
        let conversation: Value = serde_json::from_slice(&body).unwrap_or_default();
        let messages = conversation["messages"].as_array().into_iter().flatten();
        let parts = messages.flat_map(|message| message["parts"].as_array().into_iter().flatten());
        for part in parts.filter(|part| part["input"]["what"] == about) {
            self.of.journal.note(about, &format!("loaded {part}"));
            let told = match part["state"].as_str().unwrap_or_default() {
                "output-available" => Told::from_envelope(&part["output"]),
                "output-error" => Told::from_envelope(&error_of(part)),
                _ => None,
            };
            told.into_iter().for_each(|told| self.of.journal.tell(about, told));
        }
    }

    /// Posts a message about something and notes what the answer says, as far as it comes. Nothing if the request was
    /// refused or lost.
    async fn post(&mut self, text: &str, idempotency_key: &str, about: &str) -> Option<Answer> {
        let body = json!({ "id": self.conversation(), "message": text }).to_string();
        let request = self.of.http.post(format!("http://{}/api/chat", self.dice.node(&self.of))).body(body);
        let request = request.header("content-type", "application/json").header("cookie", &self.cookie);
        let request = request.header("idempotency-key", idempotency_key).timeout(ANSWER_TIMEOUT);
        let node =
            request.try_clone().and_then(|request| request.build().ok()).map(|request| request.url().port());
        let sent = request.send().await;
        if let Err(error) = &sent {
            self.of.journal.note(about, &format!("{idempotency_key} to {node:?}: {error:?}"));
        }
        let mut response = sent.ok()?;
        if response.status() != 200 {
            let status = response.status().as_u16();
            self.of.journal.note(about, &format!("{idempotency_key} to {node:?}: {status}"));
            self.of.journal.refused(status, response.text().await.unwrap_or_default());
            return None;
        }
        let mut body = Vec::new();
        while let Ok(Some(piece)) = response.chunk().await {
            body.extend_from_slice(&piece);
        }
        let body = String::from_utf8_lossy(&body);
        self.of.journal.look_for_strays(&self.name, &body);
        let mut answer = read(&body, &mut self.calls);
        let kinds: Vec<_> = body.lines().filter_map(|line| line.split('"').nth(3)).collect();
        self.of.journal.note(about, &format!("{idempotency_key} to {node:?}: {}", kinds.join(" ")));
        for outcome in std::mem::take(&mut answer.outcomes) {
            // An outcome that names nothing is that of the last thing that was asked for.
            let named = outcome.did.or_else(|| self.calls.get(&outcome.call).cloned());
            self.of.journal.tell(named.as_deref().unwrap_or(about), outcome.told);
        }
        Some(answer)
    }
}

/// The envelope of an error of which only the words are shown. A question that is still open is no answer.
fn error_of(part: &Value) -> Value {
    let text = part["errorText"].as_str().unwrap_or_default();
    let kind = if text.contains("must approve") { "CONFIRMATION_REQUIRED" } else { "ERROR" };
    json!({ "ok": false, "error": { "type": kind, "message": text } })
}

fn read(body: &str, calls: &mut BTreeMap<String, String>) -> Answer {
    let mut answer = Answer::default();
    let outcome = |call: &Value, envelope: &Value| {
        let did = envelope["data"]["did"].as_str().map(str::to_owned);
        let call = call.as_str().unwrap_or_default().to_owned();
        Told::from_envelope(envelope).map(|told| Outcome { call, did, told })
    };
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    for part in data.filter_map(|data| serde_json::from_str::<Value>(data).ok()) {
        match part["type"].as_str().unwrap_or_default() {
            "start" => {
                answer.session = part["messageMetadata"]["sessionId"].as_str().unwrap_or_default().into();
            }
            "tool-output-available" if part["preliminary"] != true => {
                answer.outcomes.extend(outcome(&part["toolCallId"], &part["output"]));
            }
            "tool-output-error" => {
                answer.outcomes.extend(outcome(&part["toolCallId"], &error_of(&part)));
            }
            "data-outcome" => {
                answer.outcomes.extend(outcome(&part["data"]["callId"], &part["data"]["response"]));
            }
            "tool-input-available" => {
                let asked = part["input"]["what"].as_str().unwrap_or_default().to_owned();
                calls.insert(part["toolCallId"].as_str().unwrap_or_default().to_owned(), asked);
            }
            "data-confirmation" => answer.token = part["data"]["token"].as_str().map(str::to_owned),
            "finish" => answer.is_whole = true,
            _ => {}
        }
    }
    answer
}
