//! Replies from a script.

use std::time::Duration;

use expect_test::expect;
use futures_util::StreamExt;
use quarterdeck_contracts::{
    CallArguments, ChatError, ChatErrorKind, ChatEvent, ChatMessage, ChatModel, ChatRequest, Finish,
    ModelCall, ModelMessage, ModelReply, PartContent, ToolUse, Usage,
};
use quarterdeck_rehearsal::{Rehearsal, Script};
use quarterdeck_testkit::block_on;
use serde_json::json;

use crate::conversation::complete;

type Events = Vec<Result<ChatEvent, ChatError>>;

fn scripted(script: &str) -> Rehearsal {
    Rehearsal::scripted(Script::parse(script).unwrap())
}

fn request(messages: Vec<ChatMessage>) -> ChatRequest {
    ChatRequest {
        system: "You are…".into(),
        messages,
        tools: [].into(),
        tool_use: ToolUse::Allowed,
        span: None,
    }
}

fn hello() -> ChatRequest {
    request(vec![ChatMessage::User { text: "Hello".into() }])
}

fn collect_events(model: &Rehearsal, request: ChatRequest) -> Events {
    block_on(model.ask(request).collect())
}

fn reply(events: Events) -> ModelReply {
    complete(&events.into_iter().map(Result::unwrap).collect::<Vec<_>>())
}

fn text(events: Events) -> String {
    reply(events).message.text()
}

#[test]
fn replies_come_exactly_as_they_are_written() {
    let model = scripted(
        r#"[
            { "thought": "Hm.", "text": ["Let me ", "look."], "usage": { "inputTokens": 7, "outputTokens": 3 },
              "calls": [
                { "name": "kb_search", "id": "call-0001", "arguments": { "query": "ice" } },
                { "name": "no such tool", "broken": "{\"query\": \"ic" },
                { "name": "kb_get" }
              ], "finish": "length" }
        ]"#,
    );
    let events = collect_events(&model, hello());
    let events: Vec<ChatEvent> = events.into_iter().map(Result::unwrap).collect();
    assert_eq!(
        events[..3],
        [
            ChatEvent::Thought("Hm.".into()),
            ChatEvent::Text("Let me ".into()),
            ChatEvent::Text("look.".into())
        ]
    );
    let ModelReply { message, finish, usage } = complete(&events);
    let call = |id: Option<&str>, name: &str, arguments| {
        PartContent::Call(ModelCall { id: id.map(str::to_owned), name: name.into(), arguments })
    };
    let parts: Vec<PartContent> = message.parts.into_iter().map(|part| part.content).collect();
    assert_eq!(
        parts,
        [
            PartContent::Thought("Hm.".into()),
            PartContent::Text("Let me look.".into()),
            call(Some("call-0001"), "kb_search", CallArguments::Json(json!({ "query": "ice" }))),
            call(None, "no such tool", CallArguments::Broken("{\"query\": \"ic".into())),
            call(None, "kb_get", CallArguments::Json(json!({}))),
        ]
    );
    assert_eq!((finish, usage), (Finish::Length, Usage::new(7, 3)));
}

#[test]
fn a_reply_can_break_off_in_the_middle() {
    let model = scripted(
        r#"[{ "text": "She was bui", "error": "cut" },
            { "error": { "kind": "rate_limited", "detail": "quota", "retryAfterMs": 1500 } }]"#,
    );
    let events = collect_events(&model, hello());
    assert_eq!(events[0], Ok(ChatEvent::Text("She was bui".into())));
    assert_eq!((events.len(), events[1].as_ref().unwrap_err().kind), (2, ChatErrorKind::Cut));
    let limited = ChatError {
        kind: ChatErrorKind::RateLimited,
        model: "rehearsal/built-in".into(),
        detail: "quota".into(),
        retry_after: Some(Duration::from_millis(1500)),
        context: None,
    };
    assert_eq!(collect_events(&model, hello()), [Err(limited)]);
}

#[test]
fn replies_are_taken_in_order_of_requests_and_then_the_script_is_over() {
    let model = scripted(r#"[{ "text": "one" }, { "text": "two" }]"#);
    assert_eq!(
        [text(collect_events(&model, hello())), text(collect_events(&model, hello()))],
        ["one", "two"]
    );
    for _ in 0..2 {
        assert_eq!(
            text(collect_events(&model, hello())),
            "The rehearsal script is over: every reply in it has been given."
        );
    }
    assert!(text(collect_events(&scripted("[]"), hello())).contains("over"));
}

#[test]
fn a_script_can_begin_anew() {
    let model = scripted(r#"{ "replies": [{ "text": "one" }, { "text": "two" }], "atEnd": "again" }"#);
    let events: Vec<String> = (0..3).map(|_| text(collect_events(&model, hello()))).collect();
    assert_eq!(events, ["one", "two", "one"]);
    assert!(
        text(collect_events(&scripted(r#"{ "replies": [], "atEnd": "again" }"#), hello())).contains("over")
    );
}

#[test]
fn every_conversation_can_have_the_script_for_itself() {
    let model = scripted(r#"{ "replies": [{ "text": "one" }, { "text": "two" }], "order": "conversation" }"#);
    let user = || ChatMessage::User { text: "Hello".into() };
    let later = || request(vec![user(), ChatMessage::Model(ModelMessage::default()), user()]);
    let events = [hello(), hello(), later(), later()].map(|request| text(collect_events(&model, request)));
    assert_eq!(events, ["one", "one", "two", "two"]);
}

#[test]
fn an_empty_reply_is_a_reply() {
    let reply = reply(collect_events(&scripted("[{}]"), hello()));
    assert!(reply.message.parts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn pauses_are_kept() {
    let model = scripted(r#"[{ "delayMs": 1000, "text": ["a", { "delayMs": 200 }, "b"], "everyMs": 10 }]"#);
    let begun = tokio::time::Instant::now();
    let mut stream = model.ask(hello());
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        if let Ok(ChatEvent::Text(text)) = event {
            seen.push((text, begun.elapsed().as_millis()));
        }
    }
    assert_eq!(seen, [("a".to_owned(), 1010), ("b".to_owned(), 1220)]);
}

#[tokio::test(start_paused = true)]
async fn a_flood_keeps_its_pace_and_costs_little() {
    let model = scripted(r#"[{ "repeat": { "text": " token", "times": 2000, "everyMs": 20 } }]"#);
    let begun = tokio::time::Instant::now();
    let events: Vec<ChatEvent> = model.ask(hello()).map(Result::unwrap).collect().await;
    assert_eq!((events.len(), begun.elapsed().as_secs()), (2001, 40));
    assert_eq!(complete(&events).message.text(), " token".repeat(2000));
}

#[tokio::test(start_paused = true)]
async fn words_can_be_paced_for_people() {
    let model = Rehearsal::new().with_pace(Duration::from_millis(50));
    let begun = tokio::time::Instant::now();
    let events: Vec<_> = model.ask(hello()).collect().await;
    let words = events.len() as u128 - 1;
    assert!(words > 5);
    assert_eq!(begun.elapsed().as_millis() / 50, words);
}

#[test]
fn a_mistake_in_a_script_is_named_with_its_line_and_field() {
    let problems: Vec<String> = [
        "{",
        "17",
        "{}",
        "[\n  { \"text\": \"fine\" },\n  { \"tex\": \"typo\" }\n]",
        "[\n  { \"calls\": [\n    { \"name\": 5 } ] }\n]",
        "[\n  { \"calls\": [\n    {\n      \"id\": \"a\" } ] }\n]",
        "[{ \"calls\": [{ \"name\": \"a\", \"arguments\": {}, \"broken\": \"\" }] }]",
        "[{ \"error\": \"tired\" }]",
        "[{ \"error\": \"cut\", \"finish\": \"stop\" }]",
        "[{ \"text\": [\"a\",\n 5] }]",
        "[{ \"repeat\": { \"text\": \"a\", \"times\": -1 } }]",
        "[{ \"repeat\": { \"text\": \"abc\", \"times\": 100000000 } }]",
        "[{ \"delayMs\": 100000000 }]",
        "{ \"replies\": [],\n\"order\": \"random\" }",
    ]
    .into_iter()
    .map(|script| Script::parse(script).unwrap_err().to_string())
    .collect();
    expect![[r#"
        line 1: the script: no JSON: EOF while parsing an object at line 1 column 1
        line 1: the script: must be a list of replies, or an object with “replies”
        line 1: replies: is missing
        line 3: replies[1].tex: is not known; known are delayMs, thought, text, everyMs, repeat, calls, finish, error, usage
        line 3: replies[0].calls[0].name: must be a text, is a number
        line 3: replies[0].calls[0].name: is missing
        line 1: replies[0].calls[0].broken: arguments are either JSON or broken
        line 1: replies[0].error: unknown variant `tired`, expected one of `unreachable`, `unauthorised`, `rate_limited`, `overloaded`, `rejected`, `too_long`, `refused`, `cut`, `garbled`, `silent`
        line 1: replies[0].error: a reply that breaks off has no calls and no finish
        line 2: replies[0].text[1]: must be a text, is a number
        line 1: replies[0].repeat.times: must be a whole number from 0 on, is a number
        line 1: replies[0].repeat.times: together that would be over 64 MiB
        line 1: replies[0].delayMs: is over an hour
        line 2: order: must be one of “process”, “conversation”"#]].assert_eq(&problems.join("\n"));
}

#[test]
fn a_deep_script_is_refused_and_not_followed() {
    assert!(Script::parse(&"[".repeat(100_000)).is_err());
}
