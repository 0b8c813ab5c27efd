use super::*;
use crate::words::tokens;

/// A Wednesday in the morning.
fn now(zone: &str) -> Now {
    Now::parse(&format!(
        "## Now\n\nToday is Wednesday, 11 November 2026 (2026-11-11). The user's time zone is {zone} and their locale is en-GB.\n\nIt is 09:10 now."
    ))
}

fn start(text: &str) -> String {
    let now = now("Europe/Oslo");
    let when = read(&tokens(text, 100), &now);
    when.start(&now).map_or("–".into(), |moment| moment.strftime("%Y-%m-%dT%H:%M%:z").to_string())
}

fn range(text: &str) -> String {
    let now = now("Europe/Oslo");
    let when = read(&tokens(text, 100), &now);
    when.range(&now).map_or("–".into(), |(start, end)| {
        format!("{} to {}", start.strftime("%a %d %b %H:%M"), end.strftime("%a %d %b %H:%M"))
    })
}

fn length(text: &str) -> Option<i64> {
    read(&tokens(text, 100), &now("Europe/Oslo")).length.map(|length| length.as_mins())
}

fn date(text: &str) -> Option<String> {
    read(&tokens(text, 100), &now("Europe/Oslo")).date.map(|date| date.to_string())
}

#[test]
fn days_are_understood() {
    for (text, expected) in [
        ("today", "2026-11-11"),
        ("tomorrow", "2026-11-12"),
        ("the day after tomorrow", "2026-11-13"),
        ("on Friday", "2026-11-13"),
        ("next Friday", "2026-11-20"),
        ("this Wednesday", "2026-11-11"),
        ("on Wednesday", "2026-11-18"),
        ("next Monday", "2026-11-16"),
        ("on Fri", "2026-11-13"),
        ("in three days", "2026-11-14"),
        ("in 2 weeks", "2026-11-25"),
        ("2027-03-01", "2027-03-01"),
        ("1 March", "2027-03-01"),
        ("the 1st of March 2028", "2028-03-01"),
        ("December 24th", "2026-12-24"),
        ("Dec 24, 2027", "2027-12-24"),
        ("24.12.2026", "2026-12-24"),
        ("3/4/2027", "2027-04-03"),
    ] {
        assert_eq!(date(text).as_deref(), Some(expected), "{text}");
    }
    for text in [
        "the sun sat there",
        "you may march",
        "31 February",
        "2026-13-01",
        "1.2.3",
        "in infinite days",
        "99/99/9999",
    ] {
        assert_eq!(date(text), None, "{text}");
    }
}

#[test]
fn times_are_understood() {
    for (text, expected) in [
        ("tomorrow at 15:00", "2026-11-12T15:00+01:00"),
        ("tomorrow at 3pm", "2026-11-12T15:00+01:00"),
        ("tomorrow at 3 p.m.", "2026-11-12T15:00+01:00"),
        ("tomorrow 9:30am", "2026-11-12T09:30+01:00"),
        ("tomorrow at 3", "2026-11-12T15:00+01:00"),
        ("tomorrow at 03:00", "2026-11-12T03:00+01:00"),
        ("tomorrow at 15.30", "2026-11-12T15:30+01:00"),
        ("tomorrow at noon", "2026-11-12T12:00+01:00"),
        ("tomorrow at half past three", "2026-11-12T15:30+01:00"),
        ("tomorrow at quarter to ten", "2026-11-12T09:45+01:00"),
        ("tomorrow at 9 o'clock", "2026-11-12T09:00+01:00"),
        ("in two hours", "2026-11-11T11:10+01:00"),
        ("in half an hour", "2026-11-11T09:40+01:00"),
        ("in an hour and a half", "2026-11-11T10:40+01:00"),
        ("at 8", "2026-11-12T08:00+01:00"),
        ("at 15:30", "2026-11-11T15:30+01:00"),
        ("2026-12-01T09:30:00Z", "2026-12-01T10:30+01:00"),
        ("2026-12-01T09:30", "2026-12-01T09:30+01:00"),
        ("tomorrow at 15:00 New York time", "2026-11-12T15:00-05:00"),
        ("tomorrow at 15:00 UTC", "2026-11-12T15:00+00:00"),
        ("tomorrow at 15:00 Europe/London", "2026-11-12T15:00+00:00"),
        ("tomorrow", "–"),
        ("tomorrow at 25:00", "–"),
    ] {
        assert_eq!(start(text), expected, "{text}");
    }
}

#[test]
fn the_clocks_change_between_now_and_then() {
    assert_eq!(start("on 1 July 2027 at 10:00"), "2027-07-01T10:00+02:00");
    // The hour that is skipped is moved on, the one that comes twice is the first.
    assert_eq!(start("on 28 March 2027 at 02:30"), "2027-03-28T03:30+02:00");
    assert_eq!(start("on 31 October 2027 at 02:30"), "2027-10-31T02:30+02:00");
}

#[test]
fn ranges_are_understood() {
    for (text, expected) in [
        ("on Friday", "Fri 13 Nov 09:00 to Fri 13 Nov 17:00"),
        ("tomorrow afternoon", "Thu 12 Nov 12:00 to Thu 12 Nov 17:00"),
        ("this evening", "Wed 11 Nov 17:00 to Wed 11 Nov 21:00"),
        ("today", "Wed 11 Nov 09:10 to Wed 11 Nov 17:00"),
        ("next week", "Mon 16 Nov 09:00 to Fri 20 Nov 17:00"),
        ("this week", "Wed 11 Nov 09:10 to Fri 13 Nov 17:00"),
        ("from Monday to Wednesday", "Mon 16 Nov 09:00 to Wed 18 Nov 17:00"),
        ("tomorrow from 10 to 11", "Thu 12 Nov 10:00 to Thu 12 Nov 11:00"),
        ("tomorrow between 11 and 1", "Thu 12 Nov 11:00 to Thu 12 Nov 13:00"),
        ("tomorrow 2-3pm", "Thu 12 Nov 14:00 to Thu 12 Nov 15:00"),
        ("tomorrow 15:00-16:30", "Thu 12 Nov 15:00 to Thu 12 Nov 16:30"),
        ("tomorrow from 23:00 to 01:00", "Thu 12 Nov 23:00 to Fri 13 Nov 01:00"),
        ("tomorrow at 3pm", "Thu 12 Nov 15:00 to Thu 12 Nov 16:00"),
        ("sometime", "–"),
    ] {
        assert_eq!(range(text), expected, "{text}");
    }
}

#[test]
fn lengths_are_understood() {
    for (text, expected) in [
        ("for 30 minutes", 30),
        ("for half an hour", 30),
        ("for an hour", 60),
        ("for an hour and a half", 90),
        ("for 1.5 hours", 90),
        ("for 1 hour and 15 minutes", 75),
        ("a 45-minute meeting", 45),
        ("90min", 90),
    ] {
        assert_eq!(length(text), Some(expected), "{text}");
    }
    for text in ["wait a minute", "30 people", "for ever", "for 0 minutes"] {
        assert_eq!(length(text), None, "{text}");
    }
}

#[test]
fn without_a_date_in_the_system_text_tomorrow_means_nothing() {
    let now = Now::parse("");
    let when = read(&tokens("tomorrow at 15:00", 100), &now);
    assert_eq!((when.date, when.start(&now)), (None, None));
}
