//! What other programs change, seen by way of sync tokens and without them.

use quarterdeck_remote_calendar::CalDavConfig;
use serde_json::json;

use crate::radicale::{Radicale, USER};
use crate::world::{Caller, calendars, config, starts};

const DAY: (&str, &str) = ("2026-01-13T00:00:00Z", "2026-01-14T00:00:00Z");

fn event(uid: &str, hour: u32) -> String {
    format!(
        "BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:20260113T{hour:02}0000Z\r\nDURATION:PT1H\r\nSUMMARY:Other\r\nEND:VEVENT\r\n"
    )
}

#[tokio::test]
async fn what_other_programs_add_change_and_delete_is_seen_with_and_without_a_mirror() {
    let Some(server) = Radicale::start().await else { return };
    for mirror in [true, false] {
        let config = CalDavConfig { mirror, ..config(server.url(&format!("/{USER}/work/"))) };
        let ann = Caller::new(&calendars(config), "ann", "1");
        assert_eq!(ann.events(DAY.0, DAY.1).await.unwrap().len(), 0, "mirror: {mirror}");
        server.put("one", &event("one", 8)).await;
        server.put("two", &event("two", 12)).await;
        assert_eq!(
            starts(&ann.events(DAY.0, DAY.1).await.unwrap()),
            ["2026-01-13T08:00:00Z", "2026-01-13T12:00:00Z"]
        );
        server.put("one", &event("one", 16)).await;
        server.delete("two").await;
        assert_eq!(starts(&ann.events(DAY.0, DAY.1).await.unwrap()), ["2026-01-13T16:00:00Z"]);
        server.delete("one").await;
        assert_eq!(ann.events(DAY.0, DAY.1).await.unwrap().len(), 0);
    }
}

#[tokio::test]
async fn a_booking_is_moved_and_cancelled_without_a_mirror() {
    let Some(server) = Radicale::start().await else { return };
    let config = CalDavConfig { mirror: false, ..config(server.url(&format!("/{USER}/work/"))) };
    let ann = Caller::new(&calendars(config), "ann", "1");
    let made = ann.book(10).await.unwrap();
    let to = json!({ "id": made["id"], "start": "2026-01-13T14:00:00Z", "end": "2026-01-13T15:00:00Z" });
    ann.ask("moveEvent", to).await.unwrap();
    assert_eq!(starts(&ann.events(DAY.0, DAY.1).await.unwrap()), ["2026-01-13T14:00:00Z"]);
    ann.ask("cancelEvent", json!({ "id": made["id"] })).await.unwrap();
    assert_eq!(ann.events(DAY.0, DAY.1).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_sync_token_that_the_server_has_forgotten_costs_a_whole_read_and_nothing_else() {
    let Some(server) = Radicale::start().await else { return };
    let ann = Caller::new(&calendars(config(server.url(&format!("/{USER}/work/")))), "ann", "1");
    server.put("one", &event("one", 8)).await;
    assert_eq!(ann.events(DAY.0, DAY.1).await.unwrap().len(), 1);
    server.forget_sync_tokens();
    server.put("two", &event("two", 12)).await;
    server.delete("one").await;
    assert_eq!(starts(&ann.events(DAY.0, DAY.1).await.unwrap()), ["2026-01-13T12:00:00Z"]);
}
