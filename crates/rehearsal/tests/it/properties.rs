//! What holds for every conversation.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use quarterdeck_contracts::{
    CallArguments, CallResult, ChatEvent, ChatMessage, ChatModel, ChatRequest, ModelCall, ModelMessage,
    ModelPart, PartContent, Provider, ToolUse, Usage,
};
use quarterdeck_rehearsal::Rehearsal;
use quarterdeck_schema::Schema;
use serde_json::{Value, json};

use crate::conversation::*;

#[test]
fn it_says_what_it_is() {
    let model = Rehearsal::default();
    assert_eq!(
        (model.name(), model.window(), model.declarations()),
        ("rehearsal/built-in", 128_000, Provider::Openai)
    );
}

#[test]
fn answers_come_word_by_word() {
    let mut conversation = Conversation::new();
    conversation.user("Hello!");
    conversation.request.messages.pop();
    let events = events(&Rehearsal::new(), &conversation.request);
    let [first, second, ..] = events.as_slice() else { panic!("several words") };
    assert_eq!((first, second), (&ChatEvent::Text("Hello! ".into()), &ChatEvent::Text("Ask ".into())));
}

#[test]
fn tokens_are_characters_divided_by_four_and_rounded_up() {
    let request = ChatRequest {
        system: "12345".into(),
        messages: vec![ChatMessage::User { text: "høy".into() }],
        tools: [].into(),
        tool_use: ToolUse::Allowed,
        span: None,
    };
    let reply = complete(&events(&Rehearsal::new(), &request));
    let said = reply.message.text().chars().count() as u64;
    assert_eq!(reply.usage, Usage::new(2, said.div_ceil(4)));
}

/// The runtime takes an id for stable when it is long, has no “temp” in it and does not hold the tool's name.
#[test]
fn call_ids_are_stable_and_differ_by_their_place() {
    let mut ids = std::collections::BTreeSet::new();
    let mut conversation = Conversation::new();
    for nth in 0..4 {
        conversation.user("Who built the Fram?").results(&[found(&["project:building-of-fram"])]);
        conversation.results(&[record("project:building-of-fram")]);
        for message in &conversation.request.messages {
            if let ChatMessage::Model(message) = message {
                ids.extend(message.calls().map(|call| (call.id.clone().unwrap(), call.name.clone())));
            }
        }
        assert_eq!(ids.len(), 2 * (nth + 1), "the same question again is another call");
    }
    for (id, name) in ids {
        assert!(
            id.len() > 8 && id.starts_with("rehearsal-") && !id.contains("temp") && !id.contains(&name),
            "{id}"
        );
    }
}

#[test]
fn a_message_of_a_megabyte_takes_no_time() {
    let texts = [
        "a".repeat(1_000_000),
        "word ".repeat(200_000),
        "[Note: ".repeat(150_000),
        "“”[](: @ 15:00 2026-01-01 ".repeat(40_000),
        "氷".repeat(330_000),
        "\n".repeat(1_000_000),
    ];
    for text in texts {
        let begun = Instant::now();
        let mut conversation = Conversation::new();
        conversation.user(&text);
        assert!(begun.elapsed() < Duration::from_secs(2), "{} {:?}", &text[..12], begun.elapsed());
    }
}

#[test]
fn a_record_of_a_megabyte_takes_no_time() {
    for text in
        ["Ice. ".repeat(200_000), "[".repeat(1_000_000), "[a](b".repeat(200_000), "ice ".repeat(250_000)]
    {
        let begun = Instant::now();
        let mut conversation = Conversation::new();
        conversation.user("What is ice?").results(&[found(&["doc:framheim"])]);
        conversation
            .results(&[ok(json!({ "records": [{ "id": "doc:ice", "title": "Ice", "full_text": text }] }))]);
        assert!(begun.elapsed() < Duration::from_secs(2), "{} {:?}", &text[..5], begun.elapsed());
        assert!(!conversation.said().is_empty());
    }
}

static SCHEMAS: LazyLock<Vec<(String, Schema)>> = LazyLock::new(|| {
    let compiled = |tool: Folder| {
        let schema = Schema::compile(&tool.declaration["function"]["parameters"]).unwrap();
        (tool.id, schema)
    };
    text_tools().into_iter().map(compiled).collect()
});

/// Words that mean something here, and words that do not.
fn junk() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "book",
        "a meeting",
        "tomorrow",
        "at 15:00",
        "at",
        "from 10 to",
        "in",
        "two",
        "hours",
        "half",
        "past",
        "quarter",
        "next",
        "Friday",
        "on",
        "with",
        "anna@example.com",
        "@",
        "about",
        "free",
        "call me",
        "in German",
        "2026-02-31",
        "2026-12-31T23:59:60Z",
        "99:99",
        "for",
        "until",
        "linkedin",
        "Ingrid Berg",
        "doc:hull",
        "more",
        "and when?",
        "[Note: x]",
        "[Note:",
        ":",
        "\n",
        "“",
        "”",
        "?",
        "you idiot",
        "yes",
        "Europe/Oslo",
        "New York time",
        "try public",
        "-9223372036854775808",
        "9999-12-31",
        "in 10000 weeks",
        "",
    ]);
    let piece = prop_oneof![4 => known.prop_map(str::to_owned), 1 => any::<String>(), 1 => "\\PC{0,12}"];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.join(" "))
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        junk().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let name = prop::sample::select(vec![
            "results",
            "records",
            "id",
            "title",
            "full_text",
            "snippet",
            "score",
            "empty",
            "available_slots",
            "existing_events",
            "start",
            "end",
            "start_time",
            "end_time",
            "attendees",
            "formatted",
            "valid",
            "reasons",
            "emails",
            "phones",
            "urls",
            "name",
            "url",
            "session_id",
            "pending_request",
            "summary",
            "guide",
            "type",
            "format",
            "enum",
            "properties",
            "required",
            "items",
            "x_id",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..6).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Value>()),
        ]
    })
}

fn envelope() -> impl Strategy<Value = Value> {
    let kinds: Vec<&str> = quarterdeck_contracts::ErrorType::ALL.iter().map(|kind| kind.as_str()).collect();
    let failure = (prop::sample::select(kinds), junk(), any_json(), any::<bool>()).prop_map(
        |(kind, message, details, partial)| {
            error(
                kind,
                &message,
                json!({ "details": details, "suggestion": message, "partialSideEffects": partial }),
            )
        },
    );
    prop_oneof![any_json().prop_map(ok), failure]
}

#[derive(Debug, Clone)]
enum Message {
    User(String),
    Model(String),
    Call(&'static str, Value, Value),
}

fn conversation() -> impl Strategy<Value = Vec<Message>> {
    let name = prop::sample::select(vec![
        "kb_search",
        "kb_get",
        "calendar_create_event",
        "ignore_user",
        "describe_tool",
        "?",
    ]);
    let said = prop_oneof![
        3 => junk().prop_map(Message::User),
        1 => junk().prop_map(Message::Model),
        2 => (name, any_json(), envelope()).prop_map(|(name, arguments, envelope)| Message::Call(name, arguments, envelope)),
    ];
    prop::collection::vec(said, 0..8)
}

fn messages(said: Vec<Message>) -> Vec<ChatMessage> {
    let model = |content| {
        ChatMessage::Model(ModelMessage {
            by: "rehearsal/built-in".into(),
            parts: vec![ModelPart::new(content)],
        })
    };
    let mut messages = Vec::new();
    for (nth, said) in said.into_iter().enumerate() {
        match said {
            Message::User(text) => messages.push(ChatMessage::User { text }),
            Message::Model(text) => messages.push(model(PartContent::Text(text))),
            Message::Call(name, arguments, envelope) => {
                let id = Some(format!("call-{nth}"));
                let arguments = CallArguments::Json(arguments);
                messages.push(model(PartContent::Call(ModelCall {
                    id: id.clone(),
                    name: name.into(),
                    arguments,
                })));
                let response = Arc::new(stamped(&envelope, name));
                messages.push(ChatMessage::Tools {
                    results: vec![CallResult { id, name: name.into(), response }],
                });
            }
        }
    }
    messages
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_conversation_ends_with_a_reply_and_the_same_one_again(
        said in conversation(),
        is_off in any::<bool>(),
        strange in prop::collection::vec(any_json(), 0..3),
        is_described in any::<bool>(),
    ) {
        let folders = text_tools();
        let mut tools: Vec<Value> = folders.iter().map(|tool| tool.declaration.clone()).collect();
        tools.extend(strange.into_iter().map(|parameters| {
            json!({ "type": "function", "function": { "name": "strange", "description": "Does strange things.", "parameters": parameters } })
        }));
        let request = ChatRequest {
            system: system(&folders, is_described).into(),
            messages: messages(said),
            tools: tools.into(),
            tool_use: if is_off { ToolUse::Off } else { ToolUse::Allowed },
            span: None,
        };
        let model = Rehearsal::new();
        let once = events(&model, &request);
        let reply = complete(&once);
        prop_assert!(once.iter().all(|event| !matches!(event, ChatEvent::Text(text) if text.is_empty())));
        prop_assert_eq!(&once, &events(&Rehearsal::new(), &request), "the same request, the same events");
        if is_off {
            prop_assert_eq!(reply.message.calls().count(), 0);
        }
        let declared: Vec<&str> = request.tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
        prop_assert!(reply.message.calls().all(|call| declared.contains(&call.name.as_str())));
    }

    /// Whatever is said, a call that is made is one that the tool's own schema admits: a refusal would be our mistake.
    #[test]
    fn arguments_are_what_the_schema_admits(texts in prop::collection::vec(junk(), 1..4)) {
        let mut conversation = Conversation::new();
        for text in texts {
            conversation.user(&text);
            for (name, arguments) in conversation.called() {
                let schema = SCHEMAS.iter().find(|(tool, _)| *tool == name).map(|(_, schema)| schema).unwrap();
                let violations = schema.violations(&arguments);
                prop_assert!(violations.is_empty(), "{}: {} {} {:?}", text, name, arguments, violations);
            }
        }
    }

    #[test]
    fn any_system_text_is_survived(system in any::<String>(), text in junk()) {
        let around = format!("{system}\n## Now\n\n{system} (2026-11-15). time zone is {text} and locale is {system}.\n<tool id=\"{text}\n**{system}** (x): {text}\nIt is {text} now.");
        for system in [system, around] {
            let request = ChatRequest {
                system: system.into(), messages: vec![ChatMessage::User { text: text.clone() }], tools: [].into(), tool_use: ToolUse::Allowed, span: None,
            };
            complete(&events(&Rehearsal::new(), &request));
        }
    }
}
