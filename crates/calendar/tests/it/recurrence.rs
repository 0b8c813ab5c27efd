//! Events that come again.

use std::time::{Duration, Instant};

use expect_test::expect;
use proptest::prelude::*;
use quarterdeck_calendar::import;
use quarterdeck_contracts::Calendar;
use rrule::RRuleSet;

use crate::world::{calendar_in, holding, listing, query, ready};

#[test]
fn a_weekly_meeting_keeps_its_hour_when_the_clocks_change() {
    let body = "BEGIN:VEVENT\nUID:1\nDTSTART;TZID=Europe/Berlin:20260310T090000\nDTEND;TZID=Europe/Berlin:20260310T100000\nRRULE:FREQ=WEEKLY\nSUMMARY:Weekly\nEND:VEVENT";
    expect![[r#"
        2026-03-24T08:00:00Z 2026-03-24T09:00:00Z Weekly
        2026-03-31T07:00:00Z 2026-03-31T08:00:00Z Weekly
    "#]]
    .assert_eq(&listing(body, "UTC", "2026-03-20T00:00:00Z", "2026-04-02T00:00:00Z"));
}

#[test]
fn a_time_that_the_clocks_skip_is_not_lost() {
    let body = "BEGIN:VEVENT\nUID:1\nDTSTART;TZID=Europe/Berlin:20260328T023000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=3\nSUMMARY:Night\nEND:VEVENT";
    expect![[r#"
        2026-03-28T01:30:00Z 2026-03-28T02:30:00Z Night
        2026-03-29T01:30:00Z 2026-03-29T02:30:00Z Night
        2026-03-30T00:30:00Z 2026-03-30T01:30:00Z Night
    "#]]
    .assert_eq(&listing(body, "UTC", "2026-03-01T00:00:00Z", "2026-05-01T00:00:00Z"));
}

#[test]
fn exceptions_additions_and_changed_occurrences_are_respected() {
    let body = "BEGIN:VEVENT\nUID:1\nDTSTART:20260105T090000Z\nDTEND:20260105T100000Z\nRRULE:FREQ=DAILY;UNTIL=20260110T090000Z\nEXDATE:20260106T090000Z\nEXDATE;VALUE=DATE:20260107\nRDATE:20260120T150000Z\nSUMMARY:Daily\nEND:VEVENT\nBEGIN:VEVENT\nUID:1\nRECURRENCE-ID:20260108T090000Z\nDTSTART:20260108T140000Z\nDTEND:20260108T143000Z\nSUMMARY:Daily (moved)\nEND:VEVENT\nBEGIN:VEVENT\nUID:1\nRECURRENCE-ID:20260109T090000Z\nDTSTART:20260109T090000Z\nDTEND:20260109T100000Z\nSTATUS:CANCELLED\nEND:VEVENT";
    expect![[r#"
        2026-01-05T09:00:00Z 2026-01-05T10:00:00Z Daily
        2026-01-08T14:00:00Z 2026-01-08T14:30:00Z Daily (moved)
        2026-01-10T09:00:00Z 2026-01-10T10:00:00Z Daily
        2026-01-20T15:00:00Z 2026-01-20T16:00:00Z Daily
    "#]]
    .assert_eq(&listing(body, "UTC", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"));
}

#[test]
fn the_end_of_a_series_is_an_instant_in_its_zone() {
    // 03:30Z on the 4th is 22:30 on the 3rd in New York, before the meeting of the 4th and after that of the 3rd.
    let body = "BEGIN:VEVENT\nUID:1\nDTSTART;TZID=America/New_York:20260302T220000\nDURATION:PT15M\nRRULE:FREQ=DAILY;UNTIL=20260304T033000Z\nSUMMARY:Late\nEND:VEVENT";
    expect![[r#"
        2026-03-03T03:00:00Z 2026-03-03T03:15:00Z Late
        2026-03-04T03:00:00Z 2026-03-04T03:15:00Z Late
    "#]]
    .assert_eq(&listing(body, "UTC", "2026-03-01T00:00:00Z", "2026-03-30T00:00:00Z"));
}

#[test]
fn whole_days_are_those_of_the_owner() {
    let body = "BEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:20251230\nDTEND;VALUE=DATE:20260101\nRRULE:FREQ=YEARLY;COUNT=2\nSUMMARY:Holiday\nEND:VEVENT";
    expect![[r#"
        2025-12-29T23:00:00Z 2025-12-31T23:00:00Z Holiday
        2026-12-29T23:00:00Z 2026-12-31T23:00:00Z Holiday
    "#]]
    .assert_eq(&listing(body, "Europe/Berlin", "2025-12-31T00:00:00Z", "2030-01-01T00:00:00Z"));
}

#[test]
fn an_old_series_without_end_is_read_as_fast_as_a_new_one() {
    let daily = "BEGIN:VEVENT\nUID:1\nDTSTART:19000101T090000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;INTERVAL=3\nSUMMARY:Old\nEND:VEVENT";
    expect![[r#"
        2026-01-03T09:00:00Z 2026-01-03T10:00:00Z Old
        2026-01-06T09:00:00Z 2026-01-06T10:00:00Z Old
    "#]]
    .assert_eq(&listing(daily, "UTC", "2026-01-01T00:00:00Z", "2026-01-07T00:00:00Z"));
    let weekly = "BEGIN:VEVENT\nUID:1\nDTSTART:20000103T090000Z\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE\nSUMMARY:Fortnight\nEND:VEVENT";
    expect![[r#"
        2026-01-12T09:00:00Z 2026-01-12T10:00:00Z Fortnight
        2026-01-14T09:00:00Z 2026-01-14T10:00:00Z Fortnight
        2026-01-26T09:00:00Z 2026-01-26T10:00:00Z Fortnight
        2026-01-28T09:00:00Z 2026-01-28T10:00:00Z Fortnight
    "#]]
    .assert_eq(&listing(weekly, "UTC", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"));
}

#[test]
fn an_event_that_began_before_the_window_and_ends_in_it_is_found() {
    let body = "BEGIN:VEVENT\nUID:1\nDTSTART:20260101T220000Z\nDTEND:20260103T020000Z\nRRULE:FREQ=WEEKLY\nSUMMARY:Long\nEND:VEVENT";
    expect![[r#"
        2026-01-08T22:00:00Z 2026-01-10T02:00:00Z Long
    "#]]
    .assert_eq(&listing(body, "UTC", "2026-01-10T01:00:00Z", "2026-01-10T03:00:00Z"));
}

#[test]
fn what_is_cancelled_free_or_takes_no_time_is_not_busy() {
    let event = |more: &str| {
        format!("BEGIN:VEVENT\nUID:{}\nDTSTART:20260105T090000Z\n{more}\nEND:VEVENT\n", more.len())
    };
    let body = [
        event("DTEND:20260105T100000Z\nSTATUS:CANCELLED"),
        event("DTEND:20260105T100000Z\nTRANSP:TRANSPARENT"),
        event("DTEND:20260105T090000Z"),
        event("DTEND:20260105T100000Z\nSTATUS:TENTATIVE\nSUMMARY:Perhaps"),
    ];
    expect![[r#"
        2026-01-05T09:00:00Z 2026-01-05T10:00:00Z Perhaps
    "#]]
    .assert_eq(&listing(&body.concat(), "UTC", "2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z"));
}

#[test]
fn hostile_rules_end_in_an_error_and_not_in_a_spin() {
    let event = |index: usize| {
        let rule = "FREQ=HOURLY;COUNT=4000000;BYMONTH=2;BYMONTHDAY=29";
        format!(
            "BEGIN:VEVENT\nUID:{index}\nDTSTART:19700101T000000Z\nDURATION:PT1H\nRRULE:{rule}\nEND:VEVENT\n"
        )
    };
    let body: String = (0..20).map(event).collect();
    let begin = Instant::now();
    let window = query("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
    let answer = ready(calendar_in("UTC").events(window, holding(&body)));
    assert_eq!(
        answer.unwrap_err().message,
        "the calendar \"primary\" holds too much in this window; ask for a shorter one"
    );
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn rules_that_never_come_to_pass_are_not_taken_in() {
    let rules = ["FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "FREQ=WEEKLY;BYMONTH=2;BYSETPOS=5"];
    let event = |index: usize| {
        let rule = rules[index % 2];
        format!("BEGIN:VEVENT\nUID:{index}\nDTSTART:20260101T000000Z\nRRULE:{rule}\nEND:VEVENT\n")
    };
    let body: String = (0..200).map(event).collect();
    let begin = Instant::now();
    let import = import(&format!("BEGIN:VCALENDAR\n{body}END:VCALENDAR\n"), "primary").unwrap();
    assert_eq!((import.events, import.skipped.len()), (0, 200));
    assert_eq!(import.skipped[0], "the event \"\" of line 2 has a rule that never comes to pass");
    assert!(import.skipped[199].ends_with("has a rule, and the file has too many that take long to follow"));
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn skipping_ahead_gives_what_counting_from_the_beginning_gives(
        frequency in prop_oneof![Just("DAILY"), Just("WEEKLY"), Just("MONTHLY"), Just("YEARLY")],
        interval in 1..9_u8,
        days in prop_oneof![Just(""), Just(";BYDAY=MO,WE"), Just(";BYMONTH=1,3;BYHOUR=6,18"), Just(";BYDAY=TU;WKST=SU"), Just(";BYSETPOS=-1;BYDAY=MO,FR")],
        (year, month, day) in (1960..2026_i32, 1..=12_u8, 1..=28_u8),
    ) {
        let start = format!("{year}{month:02}{day:02}T060000Z");
        let rule = format!("FREQ={frequency};INTERVAL={interval}{days}");
        let plain: RRuleSet = format!("DTSTART:{start}\nRRULE:{rule}").parse().unwrap();
        // Every seventh day from a Wednesday on is never a Tuesday.
        prop_assume!((&plain.clone().limit()).into_iter().next().is_some());
        let body = format!("BEGIN:VEVENT\nUID:1\nDTSTART:{start}\nDURATION:PT1H\nRRULE:{rule}\nEND:VEVENT");
        let found = listing(&body, "UTC", "2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z");

        let in_window = |at: &String| ("2026-01-01".."2026-04-01").contains(&at.as_str());
        let expected: Vec<String> = (&plain)
            .into_iter()
            .map(|at| at.format("%Y-%m-%dT%H:%M:%SZ").to_string())
            .take_while(|at| at.as_str() < "2026-04-01")
            .filter(in_window)
            .collect();
        let found: Vec<&str> = found.lines().filter_map(|line| line.split(' ').next()).collect();
        prop_assert_eq!(found, expected);
    }
}
