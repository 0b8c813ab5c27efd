//! What a definition calls sensitive appears in no record.

use proptest::prelude::{Just, Strategy, prop, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use quarterdeck_contracts::{ConfirmationAnswer, Mode};
use quarterdeck_runtime::{Call, ClientEvent, Reply};
use serde_json::{Value, json};

use super::fixture::{Fixture, receive, submit_one};
use super::log::Log;

const SECRET: &str = "hunter2-planted";

#[tokio::test(start_paused = true)]
async fn planted_secrets_appear_nowhere() {
    let (log, _guard) = Log::kept();
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let with_secret = |what: serde_json::Value| json!({ "what": what, "secret": SECRET });

    // What runs, what breaks, what is refused by each kind of gate, and what does not exist.
    for tool in ["book", "book", "book", "crash", "look", "typed_only", "members", "rare", "no_such_tool"] {
        let response = submit_one(&connection, Call::new(tool, with_secret(json!("x")))).await;
        assert!(!json!(*response).to_string().contains(SECRET), "{tool}");
    }
    let wrong = submit_one(&connection, Call::new("look", with_secret(json!(3)))).await;
    assert!(!json!(*wrong).to_string().contains(SECRET));

    // What is approved is shown: to the user who approves, and nowhere else.
    session.begin_turn(None);
    let replies = connection.submit(vec![Call::new("pay", with_secret(json!("rent")))]).all().await;
    assert!(matches!(&replies[0], Reply::AwaitingConfirmation { .. }));
    let Some(ClientEvent::Confirmation { request, .. }) = connection.try_next_event() else { panic!() };
    assert!(request.preview.contains(SECRET), "{}", request.preview);
    assert_eq!(request.args["secret"], SECRET);
    let token = request.token.unwrap();
    assert!(receive(session.resolve_confirmation(token.expose(), ConfirmationAnswer::Approve).await).is_ok());

    let log = log.text();
    for message in [" handler failed ", " handler session="] {
        let line =
            log.lines().find(|line| line.contains(message)).unwrap_or_else(|| panic!("{message}: {log}"));
        for field in ["session=", "turn=1", "call=", "tool=\"crash\""] {
            assert!(line.contains(field), "{field}: {line}");
        }
    }
    for (place, text) in [
        ("log", log),
        ("audit log", fixture.audit.text()),
        ("metrics", fixture.orchestrator.metrics().json().to_string()),
        ("metrics", fixture.orchestrator.metrics().prometheus()),
    ] {
        assert!(!text.contains(SECRET), "{place}: {text}");
        assert!(!text.contains(token.expose()), "{place} holds a token");
    }
    assert!(fixture.audit.count("tool_execution") > 10);
}

/// Arguments that hold the secret where it does not belong: under misspelt, unknown or misplaced names, in lists, in
/// texts that hold JSON, as a name, or as all there is.
fn misplaced() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(SECRET)),
        Just(json!(format!("it is {SECRET}."))),
        Just(json!(json!({ "secret": SECRET }).to_string())),
        Just(json!(json!([SECRET]).to_string())),
    ];
    let name = || {
        prop::sample::select(vec!["secret", "secrt", "Secret", "top_k", "password", "args", "x", SECRET])
            .prop_map(str::to_owned)
    };
    let value = leaf.prop_recursive(3, 10, 3, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(|items| json!(items)),
            prop::collection::btree_map(name(), inner, 1..3).prop_map(|fields| json!(fields)),
        ]
    });
    (value, name(), prop::sample::select(vec![json!("tea"), json!(["tea"]), Value::Null])).prop_map(
        |(value, name, what)| {
            if value.is_object() || name == "x" {
                // As it is: an object of its own, a list, or a text.
                return value;
            }
            let mut args = json!({ "what": what });
            args[name] = value;
            args
        },
    )
}

#[tokio::test(start_paused = true)]
async fn planted_secrets_in_wrong_places_appear_nowhere_and_what_is_declared_stays_readable() {
    let (log, _guard) = Log::kept();
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let mut runner = TestRunner::deterministic();
    for number in 0..300 {
        let args = misplaced().new_tree(&mut runner).unwrap().current();
        session.begin_turn(None);
        for tool in ["book", "look", "pay", "crash", "no_such_tool"] {
            let call = Call::new(tool, args.clone()).with_id(format!("call_{number}_{tool}"));
            for reply in connection.submit(vec![call]).all().await {
                let Some(answer) = reply.into_answer() else { continue };
                let told = json!(*receive(answer)).to_string();
                assert!(!told.contains(SECRET), "{tool} {args}: {told}");
            }
        }
    }
    for (place, text) in [("log", log.text()), ("audit log", fixture.audit.text())] {
        let line = text.lines().find(|line| line.contains(SECRET));
        assert_eq!(line, None, "{place}");
    }
    let audit = fixture.audit.text();
    assert!(audit.contains(r#""what":"tea""#), "what is declared stays readable");
    assert!(audit.contains(r#""secrt":"[hidden]""#), "a misspelt name too, without its value");
    assert!(fixture.audit.count("tool_execution") >= 1_000);
}
