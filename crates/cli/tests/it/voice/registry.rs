//! The tools change while the server runs.

use serde_json::json;

use super::page::Page;
use super::provider::Provider;
use super::server::Site;
use super::tools;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_keeps_its_tools_until_it_is_started_again() {
    let provider = Provider::with_turns(&json!([
        { "begins": "text", "steps": [{ "call": { "name": "look", "args": { "what": "room" } } }, { "await": "answers" }, { "say": "There." }] },
        { "begins": "text", "steps": [{ "call": { "name": "look", "args": { "what": "hall" } } }, { "await": "answers" }, { "say": "There." }] },
    ]))
    .await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.exchange("Look", "There.").await;
    let version = page.ready["toolsVersion"].clone();

    let changed = json!({ "category": "retrieval", "sideEffects": "read_only", "idempotent": true, "version": "2.0.0" });
    let handler = "export function execute() { return { ok: true, data: { results: ['new'] } }; }\n";
    tools::add(site.tools.path(), "look", &changed, handler);
    site.build();
    let mut page = page.reconnect(&server).await;
    assert_eq!(page.ready["toolsVersion"], version, "the session is pinned");
    let other = Page::connect(&server).await;
    assert_eq!(other.ready["toolsVersion"], version, "and so is the server");
    page.exchange("Look again", "There.").await;
    let report = provider.report();
    assert_eq!(report.calls[1].answers, [json!({ "output": { "results": ["hall"] } })], "{report:#?}");
    assert_eq!(report.faults, [""; 0]);
    server.stop();

    let server = site.serve();
    let page = page.reconnect(&server).await;
    assert_ne!(page.ready["toolsVersion"], version, "{}", page.ready);
    server.stop();
    let resumed = site.trail("session_resumed");
    assert_eq!(resumed.last().unwrap()["pinnedAnew"], true, "{resumed:#?}");
}
