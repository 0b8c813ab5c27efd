//! The page's connection is lost while a call of the model is under way.

use serde_json::json;

use super::page::Page;
use super::provider::Provider;
use super::server::Site;
use super::voice_model::VoiceModel;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_replayed_around_a_lost_page_is_done_once_and_answered_alike() {
    let booking =
        json!({ "id": "function-call-4711", "name": "book", "args": { "what": "room", "ms": 700 } });
    let provider = Provider::with_turns(&json!([
        { "begins": "text", "steps": [
            { "call": booking, "behavior": "nonBlocking" },
            { "wait": 200 },
            { "call": booking, "behavior": "nonBlocking" },
            { "await": "answers" },
            { "call": booking },
            { "await": "answers" },
            { "say": "It is booked." },
        ] },
        { "begins": "text", "containing": "thank", "steps": [{ "say": "You are welcome." }] },
    ]))
    .await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.send_text("Book the room").await;
    page.wait_for("tool_call").await;
    let mut page = page.reconnect(&server).await;
    let report = provider.wait_for_report("the turn", |report| report.turns == 1).await;
    let answer = json!({ "output": { "did": "room", "count": 1 } });
    for call in &report.calls {
        assert_eq!(call.answers, std::slice::from_ref(&answer), "{report:#?}");
    }
    assert_eq!((report.calls.len(), report.connections), (3, 1), "{report:#?}");
    page.exchange("Many thanks", "You are welcome.").await;
    assert_eq!(page.results(), ["ok", "ok", "ok"], "what was missed is printed: {:#?}", page.messages);
    server.stop();
    assert_eq!((site.count_runs("ran", "room"), site.stored_count("book").await), (1, 1));
    assert_eq!(provider.report().faults, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ends_are_lost_at_once_and_nothing_is_done_twice() {
    let booking =
        json!({ "id": "function-call-4711", "name": "book", "args": { "what": "room", "ms": 600 } });
    let provider = Provider::with_turns(&json!([
        { "begins": "text", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "containing": "room", "steps": [
            { "call": booking, "behavior": "nonBlocking" },
            { "wait": 100 },
            { "drop": true, "on": 1 },
            { "await": "answers" },
            { "say": "It is booked." },
        ] },
        { "begins": "text", "containing": "thank", "steps": [{ "say": "You are welcome." }] },
    ]))
    .await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.exchange("Good day", "Hello.").await;
    page.send_text("Book the room").await;
    page.wait_for("tool_call").await;
    let mut page = page.reconnect(&server).await;
    let report = provider.wait_for_report("the booking", |report| report.turns == 2).await;
    assert_eq!((report.connections, report.resumptions), (2, 1), "{report:#?}");
    page.exchange("Many thanks", "You are welcome.").await;
    let report = provider.wait_for_report("the thanks", |report| report.turns == 3).await;
    let answered: Vec<_> = report.calls.iter().map(|call| (call.connection, call.answers.clone())).collect();
    let answer = json!({ "output": { "did": "room", "count": 1 } });
    assert_eq!(answered, [(1, vec![]), (2, vec![answer])], "only who asks is answered: {report:#?}");
    server.stop();
    assert_eq!((site.count_runs("ran", "room"), site.stored_count("book").await), (1, 1));
    assert_eq!(provider.report().faults, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn second_connection_of_a_call_takes_over_from_the_first() {
    let turns = json!([
        { "begins": "text", "steps": [
            { "call": { "name": "book", "args": { "what": "room", "ms": 500 } } },
            { "await": "answers" },
            { "say": "It is booked." },
        ] },
    ]);
    for model in VoiceModel::each(&turns).await {
        assert_taken_over(&model).await;
    }
}

async fn assert_taken_over(model: &VoiceModel) {
    let site = model.site();
    let server = site.serve();
    let mut first = Page::connect(&server).await;
    first.send_text("Book the room").await;
    first.wait_for("tool_call").await;
    let mut second = first.take_over(&server).await;
    second.wait_for("turn_complete").await;
    assert!(second.answer_text().contains("It is booked."), "{:#?}", second.messages);
    assert_eq!(second.results(), ["ok"]);
    first.read_to_end().await;
    assert_eq!(first.results(), [""; 0], "the first page is not told what the second is");
    if let VoiceModel::Live(provider) = model {
        provider.wait_for_report("the turn", |report| report.turns == 1 && report.calls.len() == 1).await;
    }
    server.stop();
    assert_eq!(site.stored_count("book").await, 1);
}
