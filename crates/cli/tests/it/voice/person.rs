//! What a person decides, and what only writing allows.

use serde_json::json;

use super::page::Page;
use super::provider::Provider;
use super::server::Site;

#[tokio::test(flavor = "multi_thread")]
async fn a_person_approves_what_the_model_wants_and_it_is_done_once() {
    let provider = Provider::playing(&json!([
        { "begins": "text", "steps": [
            { "call": { "name": "pay", "args": { "what": "rent" } } },
            { "await": "answers" },
            { "say": "Please look at your screen." },
        ] },
        { "begins": "content", "containing": "pay", "steps": [{ "say": "It is paid." }] },
    ]))
    .await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::calls(&server).await;
    page.writes("Pay the rent").await;
    let token = page.until("confirmation_request").await["token"].clone();
    page.until("turn_complete").await;
    // A double click, and the line is lost in between.
    let yes = json!({ "type": "confirm", "token": token, "approve": true });
    page.sends(&yes).await;
    let mut page = page.calls_again(&server).await;
    page.sends(&yes).await;
    page.hears("It is paid.").await;
    let report = provider.has_seen("two turns", |report| report.turns == 2).await;
    let answer = &report.calls[0].answers[0]["error"];
    assert_eq!(answer["type"], "CONFIRMATION_REQUIRED", "{report:#?}");
    assert!(
        !report.calls[0].answers[0].to_string().contains(token.as_str().unwrap()),
        "the model has no token"
    );
    server.stops();
    assert_eq!((site.runs("ran", "rent"), site.kept("pay").await), (1, 1));
    assert_eq!(provider.report().faults, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_for_text_is_refused_with_the_reason() {
    let provider = Provider::playing(&json!([
        { "begins": "text", "steps": [
            { "call": { "name": "write_only", "args": { "what": "letter" } } },
            { "await": "answers" },
            { "say": "Not here." },
        ] },
    ]))
    .await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::calls(&server).await;
    page.asks("Write a letter", "Not here.").await;
    assert_eq!(page.results(), ["MODE_RESTRICTED"]);
    let report = provider.report();
    assert_eq!(report.calls[0].answers[0]["error"]["type"], "MODE_RESTRICTED", "{report:#?}");
    assert_eq!(report.faults, [""; 0]);
}
