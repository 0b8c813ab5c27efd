//! The server is stopped and started again in the middle of a conversation.

use serde_json::json;

use super::page::Page;
use super::provider::{Provider, scenario};
use super::server::Site;
use super::voice_model::VoiceModel;

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_announced_and_loses_no_turn() {
    let turns = json!([
        { "begins": "text", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "containing": "room", "steps": [
            { "call": { "name": "book", "args": { "what": "room" } } },
            { "await": "answers" },
            { "say": "It is booked." },
        ] },
        { "begins": "text", "containing": "thank", "steps": [{ "say": "You are welcome." }] },
    ]);
    for model in VoiceModel::each(&turns).await {
        assert_announced(&model).await;
    }
}

async fn assert_announced(model: &VoiceModel) {
    let site = model.site();
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    // What the page has not played to the end is not taken for heard.
    let drained = json!({ "type": "playback", "state": "drained" });
    page.exchange("Good day", "Hello.").await;
    page.send(&drained).await;
    page.exchange("Book the room", "It is booked.").await;
    page.send(&drained).await;
    server.request_stop();
    assert!(page.wait_for("going_away").await["inMs"].is_u64());
    page.read_to_end().await;
    server.wait_until_stopped();

    let server = site.serve();
    let mut page = page.reconnect(&server).await;
    page.exchange("Many thanks", "You are welcome.").await;
    match model {
        VoiceModel::Live(provider) => {
            let report = provider.wait_for_report("three turns", |report| report.turns == 3).await;
            assert_eq!(
                (report.connections, report.resumptions, report.calls.len()),
                (2, 1, 1),
                "{report:#?}"
            );
        }
        VoiceModel::Pipeline(engines) => {
            let shown = json!(engines.requests().last()).to_string();
            let is_shown = |words: &&str| shown.contains(words);
            assert!(["Good day", "Hello.", "Book the room", "It is booked."].iter().all(is_shown), "{shown}");
        }
    }
    server.stop();
    assert_eq!(site.stored_count("book").await, 1);
    assert_eq!(site.trail("session_resumed").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_forgot_everything_is_told_what_was_said() {
    let turns = json!([
        { "begins": "text", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "containing": "thank", "steps": [{ "say": "You are welcome." }] },
    ]);
    let provider = Provider::with_turns(&turns).await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.exchange("Good day to you", "Hello.").await;
    server.stop();
    // Another simulator, which knows no handle of the first. What it is told counts as said.
    provider.set_scenario(scenario(&turns));

    let server = site.serve();
    let mut page = page.reconnect(&server).await;
    page.exchange("Many thanks", "You are welcome.").await;
    let report = provider.report();
    // The handle is refused, which the simulator counts as the client's fault.
    assert_eq!(report.faults, ["connection 1: the session handle is unknown or has expired"], "{report:#?}");
    let heard = report.heard.join("\n");
    assert!(heard.contains("Good day to you"), "{report:#?}");
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_in_the_middle_of_a_write_waits_for_it() {
    let turns = json!([
        { "begins": "text", "steps": [
            { "call": { "name": "book", "args": { "what": "room", "ms": 1_500 } } },
            { "await": "answers" },
            { "say": "It is booked." },
        ] },
        { "begins": "text", "containing": "thank", "steps": [{ "say": "You are welcome." }] },
    ]);
    for model in VoiceModel::each(&turns).await {
        assert_waited_for(&model).await;
    }
}

async fn assert_waited_for(model: &VoiceModel) {
    let site = model.site();
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.send_text("Book the room").await;
    page.wait_for("progress").await;
    server.request_stop();
    page.read_to_end().await;
    assert_eq!(page.results(), ["ok"], "{:#?}", page.messages);
    assert!(page.answer_text().contains("It is booked."), "{:#?}", page.messages);
    server.wait_until_stopped();

    let server = site.serve();
    let mut page = page.reconnect(&server).await;
    page.exchange("Many thanks", "You are welcome.").await;
    if let VoiceModel::Live(provider) = model {
        let report = provider.wait_for_report("both turns", |report| report.turns == 2).await;
        assert_eq!(report.calls.len(), 1, "{report:#?}");
    }
    server.stop();
    assert_eq!(site.stored_count("book").await, 1);
}
