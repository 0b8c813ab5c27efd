//! The server is killed while a write is under way, or right after it.

use serde_json::{Value, json};

use super::page::Page;
use super::provider::Provider;
use super::server::Site;

/// Somebody says hello, has something booked that takes a while, and says thanks.
fn booking(ms: u64) -> Value {
    let call = json!({ "id": "function-call-4711", "name": "book", "args": { "what": "room", "ms": ms } });
    json!([
        { "begins": "text", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "containing": "room", "steps": [{ "call": call }, { "await": "answers" }, { "say": "So much for that." }] },
        { "begins": "text", "containing": "thank", "steps": [{ "say": "You are welcome." }] },
    ])
}

/// What the provider has been answered on the connection after the death of the server.
async fn answer_after(provider: &Provider) -> Value {
    let report = provider.has_seen("the turn that was cut", |report| report.turns == 2).await;
    let answers: Vec<_> = report.calls.iter().map(|call| (call.connection, call.answers.len())).collect();
    assert_eq!(answers, [(1, 0), (2, 1)], "{report:#?}");
    report.calls[1].answers[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_before_a_crash_is_not_done_again_and_its_answer_is_not_lost() {
    let provider = Provider::playing(&booking(400)).await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::calls(&server).await;
    page.asks("Good day", "Hello.").await;
    page.writes("Book the room").await;
    page.until("tool_call").await;
    provider.goes_deaf();
    let committed = page.until("message").await;
    assert_eq!(committed["data"]["count"], 1);
    server.dies();
    provider.hears_again();

    let server = site.serve();
    let mut page = page.calls_again(&server).await;
    assert_eq!(answer_after(&provider).await, json!({ "output": { "did": "room", "count": 1 } }));
    page.asks("Many thanks", "You are welcome.").await;
    assert_eq!(provider.report().faults, [""; 0]);
    server.stops();
    assert_eq!((site.runs("ran", "room"), site.kept("book").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_has_interrupted_is_not_tried_again_and_is_not_said_to_be_done() {
    let provider = Provider::playing(&booking(10_000)).await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::calls(&server).await;
    page.asks("Good day", "Hello.").await;
    page.writes("Book the room").await;
    page.until("progress").await;
    provider.goes_deaf();
    server.dies();
    provider.hears_again();

    let server = site.serve();
    let mut page = page.calls_again(&server).await;
    let answer = answer_after(&provider).await;
    let error = &answer["error"];
    assert_eq!(
        (&error["type"], &error["details"]["outcome"]),
        (&json!("INTERNAL"), &json!("unknown")),
        "{answer}"
    );
    assert_eq!(error["partialSideEffects"], true, "{answer}");
    page.asks("Many thanks", "You are welcome.").await;
    assert_eq!(provider.report().faults, [""; 0]);
    server.stops();
    assert_eq!(site.kept("book").await, 0, "half of it is not real");
    assert!(site.runs("ran", "room") <= 1, "{:#?}", site.trail("ran"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persons_yes_counts_once_across_a_crash() {
    let provider = Provider::playing(&json!([
        { "begins": "text", "steps": [
            { "call": { "id": "function-call-4712", "name": "pay", "args": { "what": "rent" } } },
            { "await": "answers" },
            { "say": "Please look at your screen." },
        ] },
        { "begins": "anything", "steps": [{ "say": "So it is." }] },
        { "begins": "anything", "steps": [{ "say": "So it is." }] },
    ]))
    .await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::calls(&server).await;
    page.writes("Pay the rent").await;
    let token = page.until("confirmation_request").await["token"].clone();
    page.until("turn_complete").await;
    let yes = json!({ "type": "confirm", "token": token, "approve": true });
    page.sends(&yes).await;
    page.until("message").await;
    server.dies();

    let server = site.serve();
    let mut page = page.calls_again(&server).await;
    page.sends(&yes).await;
    let error = page.until("error").await;
    let kind = error["error"]["type"].as_str().unwrap();
    assert!(kind.starts_with("CONFIRMATION_"), "{error}");
    server.stops();
    assert_eq!((site.runs("ran", "rent"), site.kept("pay").await), (1, 1));
}
