//! Recurring events of other programs, and their exceptions.

use serde_json::json;

use crate::radicale::{Radicale, USER};
use crate::world::{Caller, calendars, config, starts};

/// Every weekday at nine in Berlin; not on the 14th, and at eleven on the 15th.
const STANDUP: &str = "BEGIN:VTIMEZONE\r\nTZID:Europe/Berlin\r\nBEGIN:STANDARD\r\nDTSTART:19701025T030000\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\nRRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\r\nEND:STANDARD\r\nBEGIN:DAYLIGHT\r\nDTSTART:19700329T020000\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\nBEGIN:VEVENT\r\nUID:standup\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;TZID=Europe/Berlin:20260112T090000\r\nDTEND;TZID=Europe/Berlin:20260112T091500\r\nRRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR\r\nEXDATE;TZID=Europe/Berlin:20260114T090000\r\nSUMMARY:Stand-up\r\nX-QUARTERDECK-BOOKED-BY:ann\r\nX-COLOUR:teal\r\nBEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT5M\r\nDESCRIPTION:Soon\r\nEND:VALARM\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nUID:standup\r\nRECURRENCE-ID;TZID=Europe/Berlin:20260115T090000\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;TZID=Europe/Berlin:20260115T110000\r\nDTEND;TZID=Europe/Berlin:20260115T111500\r\nSUMMARY:Stand-up\r\nX-QUARTERDECK-BOOKED-BY:ann\r\nEND:VEVENT\r\n";
const WEEK: (&str, &str) = ("2026-01-12T00:00:00Z", "2026-01-17T00:00:00Z");

#[tokio::test]
async fn a_series_has_its_exceptions_and_keeps_its_hour_when_the_clocks_change() {
    let Some(server) = Radicale::start().await else { return };
    server.put("standup", STANDUP).await;
    let ann = Caller::new(&calendars(config(server.url(&format!("/{USER}/work/")))), "ann", "1");
    assert_eq!(
        starts(&ann.events(WEEK.0, WEEK.1).await.unwrap()),
        ["2026-01-12T08:00:00Z", "2026-01-13T08:00:00Z", "2026-01-15T10:00:00Z", "2026-01-16T08:00:00Z"]
    );
    let summer = ann.events("2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z").await.unwrap();
    assert_eq!(starts(&summer), ["2026-06-01T07:00:00Z"]);
}

#[tokio::test]
async fn one_occurrence_is_moved_and_another_cancelled_and_the_rest_of_the_object_stays() {
    let Some(server) = Radicale::start().await else { return };
    server.put("standup", STANDUP).await;
    let ann = Caller::new(&calendars(config(server.url(&format!("/{USER}/work/")))), "ann", "1");
    let to = |id: &str, day: u32| json!({ "id": id, "start": format!("2026-01-{day}T15:00:00Z"), "end": format!("2026-01-{day}T15:15:00Z") });
    // One that keeps to the series, and one that has been moved before.
    ann.ask("moveEvent", to("standup#20260113T080000Z", 13)).await.unwrap();
    ann.ask("moveEvent", to("standup#20260115T080000Z", 15)).await.unwrap();
    ann.ask("cancelEvent", json!({ "id": "standup#20260116T080000Z" })).await.unwrap();
    assert_eq!(
        starts(&ann.events(WEEK.0, WEEK.1).await.unwrap()),
        ["2026-01-12T08:00:00Z", "2026-01-13T15:00:00Z", "2026-01-15T15:00:00Z"]
    );
    let kept = server.objects().await;
    for part in [
        "EXDATE;TZID=Europe/Berlin:20260116T090000",
        "RECURRENCE-ID;TZID=Europe/Berlin:20260113T090000",
        "X-COLOUR:teal",
        "TRIGGER:-PT5M",
        "RRULE:FREQ=WEEKLY",
    ] {
        assert!(kept.contains(part), "{part} is not in {kept}");
    }
}
