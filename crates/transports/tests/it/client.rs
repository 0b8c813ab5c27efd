//! Asks a scripted server and tells what came of it.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use quarterdeck_contracts::{ChatError, ChatErrorKind, ChatEvent, ChatModel, ChatRequest};
use quarterdeck_transports::{Limits, OpenAi, OpenAiConfig};

use crate::fixtures::{request, user};
use crate::server::{Act, Server, head};

pub(crate) const KEY: &str = "sk-this-is-the-key";
pub(crate) const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Aye\"}}]}\n\n";
pub(crate) const CALL: &str = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"tide\"}}]}}]}\n\n";
pub(crate) const END: &str =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Patient enough for a busy machine.
pub(crate) fn limits() -> Limits {
    Limits {
        first_byte: Duration::from_secs(20),
        idle: Duration::from_secs(20),
        backoff: Duration::from_millis(5),
        max_retry_delay: Duration::from_secs(5),
        ..Limits::default()
    }
}

/// For servers that fall silent.
pub(crate) fn impatient() -> Limits {
    let soon = Duration::from_millis(300);
    Limits { first_byte: soon, idle: soon, ..limits() }
}

pub(crate) fn openai_with(server: &Server, limits: Limits) -> OpenAi {
    let base_url = format!("{}/v1", server.url());
    OpenAi::new(OpenAiConfig { base_url, limits, ..OpenAiConfig::new(KEY, "m") }).unwrap()
}

pub(crate) fn question() -> ChatRequest {
    request("Be brief.", vec![user("Ready?")], Vec::new())
}

pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) error: Option<ChatError>,
    pub(crate) took: Duration,
}

impl Outcome {
    pub(crate) fn kind(&self) -> Option<ChatErrorKind> {
        self.error.as_ref().map(|error| error.kind)
    }

    pub(crate) fn detail(&self) -> &str {
        self.error.as_ref().map_or("", |error| &error.detail)
    }
}

pub(crate) async fn ask(model: &impl ChatModel) -> Outcome {
    let began = Instant::now();
    let (mut text, mut error, mut done) = (String::new(), None, false);
    let mut stream = model.ask(question());
    while let Some(event) = stream.next().await {
        assert!(!done && error.is_none(), "nothing follows the end");
        match event {
            Ok(ChatEvent::Text(more)) => text.push_str(&more),
            Ok(ChatEvent::Thought(_)) => {}
            Ok(ChatEvent::Done(reply)) => {
                assert_eq!(reply.message.text(), text);
                assert_eq!(reply.message.by, model.name());
                done = true;
            }
            Err(failed) => error = Some(failed),
        }
    }
    assert!(done != error.is_some(), "one end or the other");
    let said = format!("{error:?} {}", error.as_ref().map(ToString::to_string).unwrap_or_default());
    assert!(!said.contains(KEY), "the key is in {said}");
    Outcome { text, error, took: began.elapsed() }
}

/// Asks a server that follows this script.
pub(crate) async fn ask_by(script: Vec<Act>) -> (Outcome, Server) {
    ask_within(limits(), script).await
}

pub(crate) async fn ask_within(limits: Limits, script: Vec<Act>) -> (Outcome, Server) {
    let server = Server::start(script).await;
    let outcome = ask(&openai_with(&server, limits)).await;
    assert!(outcome.took < Duration::from_secs(10), "it took {:?}", outcome.took);
    (outcome, server)
}

pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!("{}{body}", head("200 OK", "")).into_bytes()
}

pub(crate) fn fine() -> Act {
    Act::Send(ok(&format!("{TEXT}{END}")))
}
