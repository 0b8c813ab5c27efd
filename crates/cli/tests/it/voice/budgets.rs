//! How much a model may call in a turn.

use serde_json::{Value, json};

use super::page::Page;
use super::provider::Provider;
use super::server::Site;

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_turn_budgets_are_refused_and_the_next_turn_is_free() {
    let call = |name: &str, what: &str| json!({ "name": name, "args": { "what": what } });
    let provider = Provider::with_turns(&json!([
        { "begins": "text", "steps": [
            { "call": [call("look", "1"), call("look", "2"), call("look", "3")] },
            { "await": "answers" },
            { "say": "Two of three." },
        ] },
        { "begins": "text", "steps": [
            { "call": call("look", "4") },
            { "await": "answers" },
            { "call": call("book", "5") },
            { "await": "answers" },
            { "call": call("look", "6") },
            { "await": "answers" },
            { "call": call("book", "7") },
            { "await": "answers" },
            { "say": "Three of four." },
        ] },
        { "begins": "text", "steps": [{ "call": call("book", "8") }, { "await": "answers" }, { "say": "One of one." }] },
    ]))
    .await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    for (text, answer) in [("Look", "Two of"), ("Look and book", "Three of"), ("Book", "One of")] {
        page.exchange(text, answer).await;
    }
    server.stop();
    let report = provider.report();
    assert_eq!(report.faults, [""; 0], "{report:#?}");
    let spent = "BUDGET_EXCEEDED";
    assert_eq!(page.results(), ["ok", "ok", spent, "ok", "ok", "ok", spent, "ok"], "{report:#?}");
    let refused: Vec<&Value> =
        report.calls.iter().map(|call| &call.answers[0]["error"]).filter(|it| !it.is_null()).collect();
    assert!(refused.iter().all(|error| error["suggestion"].is_string()), "it says what to do: {refused:?}");
    let ran: usize = ["1", "2", "3", "4", "6"].iter().map(|what| site.count_runs("looked", what)).sum();
    assert_eq!((ran, site.count_runs("looked", "3"), site.stored_count("book").await), (4, 0, 2));
}
