//! `ignore_user` as it ships, in a call with the simulator as it ships.

use serde_json::json;

use super::page::Page;
use super::server::Site;

const FAREWELL: &str = "I do not continue after a threat. Goodbye.";

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_caller_hears_the_farewell_before_the_call_ends() {
    let site = Site::built_in(&["ignore-user"]);
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.send_text("I will kill you.").await;
    let timeout = page.wait_for("timeout").await;
    assert_eq!(
        (&timeout["durationSeconds"], &timeout["farewellMessage"]),
        (&json!(86_400), &json!(FAREWELL))
    );
    assert!(timeout["timeoutUntil"].as_u64().is_some_and(|at| at > 1_700_000_000_000), "{timeout}");
    assert_eq!(page.audio_bytes, 0, "nothing has been said yet");
    page.wait_for_answer(FAREWELL).await;
    page.wait_for("turn_complete").await;
    assert!(page.audio_bytes > 0, "the farewell makes a sound");
    page.send(&json!({ "type": "playback", "state": "drained" })).await;
    let end = page.read_to_end().await.last().unwrap().clone();
    assert_eq!(
        (&end["type"], &end["reason"], &end["closingMessage"]),
        (&json!("session_end"), &json!("blocked"), &json!(FAREWELL))
    );
    assert_eq!(page.results(), ["ok"]);
    drop(page);
    server.stop();
    let audited = site.trail("user_timeout");
    assert_eq!(audited.len(), 1);
    assert!(audited[0].to_string().contains("timeoutUntil"), "{}", audited[0]);
}
