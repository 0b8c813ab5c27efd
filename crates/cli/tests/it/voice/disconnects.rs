//! The provider's connection is lost in a turn with two tools. Every boundary is tried in process, where time can be
//! skipped; here are a few of them against the server as it runs.

use quarterdeck_simulator::live::{Disconnect, DisconnectAfter, Scenario};
use serde_json::json;

use super::page::Page;
use super::provider::{Provider, scenario};
use super::server::{Server, Site};

fn two_tools() -> Scenario {
    scenario(&json!([
        { "begins": "text", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "containing": "room", "steps": [
            { "call": { "name": "look", "args": { "what": "room" } } },
            { "await": "answers" },
            { "call": { "name": "book", "args": { "what": "room" } } },
            { "await": "answers" },
            { "say": "It is booked." },
        ] },
        { "begins": "text", "containing": "thank", "steps": [{ "say": "You are welcome." }] },
    ]))
}

/// Returns the number of provider connections that the conversation took.
async fn converse(server: &Server, provider: &Provider, what: &str) -> usize {
    let mut page = Page::connect(server).await;
    for (text, answer) in [("Good day", "Hello."), ("Book the room", "booked."), ("Many thanks", "welcome.")]
    {
        page.exchange(text, answer).await;
    }
    assert!(page.messages.iter().all(|it| it["type"] != "error"), "{what}: {:#?}", page.messages);
    let report = provider.report();
    let booked = report.calls.iter().filter(|call| call.name == "book" && !call.answers.is_empty());
    for call in booked {
        assert_eq!(call.answers, [json!({ "output": { "did": "room", "count": 1 } })], "{what}: {report:#?}");
    }
    report.connections
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnect_anywhere_in_a_turn_loses_nothing_and_repeats_nothing() {
    let provider = Provider::new(two_tools()).await;
    let site = Site::new(&provider.address);
    let server = site.serve();
    assert_eq!(converse(&server, &provider, "no cut").await, 1);
    let sent = [4, 6, 7, 8, 9].map(DisconnectAfter::Sent);
    let received = [2, 3, 4, 5].map(DisconnectAfter::Received);
    let mut clients = 1;
    for after in sent.into_iter().chain(received) {
        provider.set_scenario(two_tools().with_disconnect(Disconnect { connection: 1, after }));
        let what = format!("cut {after:?}");
        assert!(converse(&server, &provider, &what).await > 1, "{what}: nothing was disconnected");
        clients += 1;
    }
    server.stop();
    // Each client has its own counter.
    assert_eq!((site.count_runs("ran", "room"), site.stored_count("book").await), (clients, clients as u64));
}
