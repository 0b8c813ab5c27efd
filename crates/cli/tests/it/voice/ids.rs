//! Ids that are missing or cannot be relied on.

use serde_json::{Value, json};

use super::page::Page;
use super::provider::{Provider, scenario};
use super::server::Site;

#[tokio::test(flavor = "multi_thread")]
async fn without_an_id_to_rely_on_the_content_says_what_is_the_same_call() {
    let provider = Provider::with_turns(&json!([])).await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    // None at all, too short, one that says that it will not last, and one that is only the tool's name.
    let ids = [json!(null), json!("c1"), json!("temp-8273645"), json!("book-000001")];
    for id in &ids {
        let call = json!({ "call": { "id": id, "name": "book", "args": { "what": "room" } } });
        let answers = json!({ "await": "answers" });
        provider.set_scenario(scenario(&json!([
            { "begins": "text", "steps": [call, answers, call, answers, { "say": "It is booked." }] },
            { "begins": "text", "steps": [call, answers, { "say": "So is this one." }] },
        ])));
        let mut page = Page::connect(&server).await;
        page.exchange("Book the room", "It is booked.").await;
        page.exchange("Another one", "So is this one.").await;
        let report = provider.report();
        assert_eq!(report.faults, [""; 0], "{id}: {report:#?}");
        let answers: Vec<Value> = report.calls.iter().flat_map(|call| call.answers.clone()).collect();
        let answer = |count: u64| json!({ "output": { "did": "room", "count": count } });
        assert_eq!(answers, [answer(1), answer(1), answer(2)], "{id}: the next turn is another call");
    }
    server.stop();
    let twice_each = 2 * ids.len();
    assert_eq!(
        (site.count_runs("ran", "room"), site.stored_count("book").await),
        (twice_each, twice_each as u64)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_comes_back_with_other_content_is_refused() {
    let call = |what: &str| json!({ "call": { "id": "function-call-4711", "name": "book", "args": { "what": what } } });
    let answers = json!({ "await": "answers" });
    let steps =
        json!([call("room"), answers, call("hall"), answers, call("room"), answers, { "say": "Well." }]);
    let provider = Provider::with_turns(&json!([{ "begins": "text", "steps": steps }])).await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.exchange("Book the room", "Well.").await;
    server.stop();
    let report = provider.report();
    assert_eq!(report.faults, [""; 0], "{report:#?}");
    let answers: Vec<&Value> = report.calls.iter().flat_map(|call| &call.answers).collect();
    assert_eq!(answers.len(), 3, "{report:#?}");
    assert_eq!(answers[1]["error"]["type"], "VALIDATION", "{report:#?}");
    assert_eq!(answers[0], answers[2], "the first one stands: {report:#?}");
    assert_eq!(site.stored_count("book").await, 1);
}
