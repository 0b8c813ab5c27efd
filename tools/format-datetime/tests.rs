//! Moments and names that are easy to get wrong. The ordinary ones are in the case files.

use jiff::Zoned;
use jiff::civil::time;

use super::relative::{Unit, distance};
use super::spoken::time_in_english;
use super::{Args, Style, execute, locale, zone};
use crate::world::{at, ready};

const NOW: &str = "2026-01-13T09:00:00Z";

fn format(datetime: &str, timezone: &str, style: Style, locale: &str) -> String {
    let args = Args { datetime: datetime.into(), timezone: timezone.into(), style, locale: locale.into() };
    ready(execute(args, at(NOW))).map_or_else(|error| error.to_string(), |answer| answer.formatted)
}

#[test]
fn an_hour_that_the_clock_skips_is_shown_after_the_gap() {
    assert_eq!(
        format("2026-03-29T00:59:59Z", "Europe/Berlin", Style::Iso, "en"),
        "2026-03-29T01:59:59+01:00"
    );
    assert_eq!(
        format("2026-03-29T01:00:00Z", "Europe/Berlin", Style::Iso, "en"),
        "2026-03-29T03:00:00+02:00"
    );
}

#[test]
fn an_hour_that_happens_twice_is_told_apart_by_its_zone() {
    let first = format("2026-11-01T05:30:00Z", "America/New_York", Style::Full, "en");
    let second = format("2026-11-01T06:30:00Z", "America/New_York", Style::Full, "en");
    assert_eq!(first, "Sunday, November 1, 2026 at 1:30 AM EDT");
    assert_eq!(second, "Sunday, November 1, 2026 at 1:30 AM EST");
}

#[test]
fn every_form_of_date_time_that_the_schema_admits_is_read() {
    for datetime in [
        "2026-01-13T09:30:00Z",
        "2026-01-13t09:30:00z",
        "2026-01-13 15:00:00+05:30",
        "2026-01-13T15:00:00+0530",
    ] {
        assert_eq!(format(datetime, "UTC", Style::Iso, "en"), "2026-01-13T09:30:00+00:00", "{datetime}");
    }
    assert_eq!(format("2016-12-31T23:59:60Z", "UTC", Style::Iso, "en"), "2016-12-31T23:59:59+00:00");
}

#[test]
fn far_away_moments_are_shown_or_refused_but_never_wrong() {
    assert_eq!(format("0044-03-15T12:00:00Z", "UTC", Style::Date, "en"), "March 15, 44 AD");
    assert_eq!(format("9999-12-30T12:00:00Z", "UTC", Style::Date, "en"), "December 30, 9999");
    assert_eq!(format("9999-12-30T12:00:00Z", "UTC", Style::Relative, "en"), "in 7,974 years");
    assert!(format("9999-12-31T23:59:59Z", "UTC", Style::Date, "en").starts_with("VALIDATION"));
}

#[test]
fn locales_bring_their_own_digits_calendar_and_direction() {
    let date = |locale| format("2026-01-13T09:30:00Z", "UTC", Style::Date, locale);
    assert_eq!(date("ar-EG"), "١٣ يناير ٢٠٢٦");
    assert_eq!(date("he"), "13 בינואר 2026");
    assert_eq!(date("fa"), "۲۳ دی ۱۴۰۴");
    assert_eq!(date("th"), "13 มกราคม 2569");
    assert_eq!(date("th-u-ca-gregory"), "13 มกราคม ค.ศ. 2026");
    assert_eq!(format("2026-01-14T09:30:00Z", "UTC", Style::Relative, "ar"), "غدًا");
}

#[test]
fn spoken_time_uses_the_usual_words() {
    let said = |hour, minute| time_in_english(time(hour, minute, 0, 0));
    assert_eq!(said(0, 0), "midnight");
    assert_eq!(said(0, 5), "twelve oh five at night");
    assert_eq!(said(9, 0), "nine o'clock in the morning");
    assert_eq!(said(11, 45), "a quarter to twelve in the morning");
    assert_eq!(said(12, 0), "noon");
    assert_eq!(said(12, 15), "a quarter past twelve in the afternoon");
    assert_eq!(said(18, 42), "six forty-two in the evening");
    assert_eq!(said(23, 45), "a quarter to twelve at night");
}

#[test]
fn relative_time_is_in_the_usual_unit() {
    let from_now = |there: &str| {
        let zoned = |moment: &str| -> Zoned { format!("{moment}[Europe/Berlin]").parse().unwrap() };
        distance(&zoned(there), &zoned("2026-03-28T20:00:00+01:00"))
    };
    assert_eq!(from_now("2026-03-28T20:00:00+01:00"), (0, Unit::Second));
    assert_eq!(from_now("2026-03-28T19:59:01+01:00"), (-59, Unit::Second));
    assert_eq!(from_now("2026-03-28T20:59:40+01:00"), (1, Unit::Hour));
    assert_eq!(from_now("2026-03-29T01:00:00+01:00"), (5, Unit::Hour));
    // The night between has 23 hours; tomorrow is tomorrow all the same.
    assert_eq!(from_now("2026-03-29T20:00:00+02:00"), (1, Unit::Day));
    assert_eq!(from_now("2026-03-27T00:00:00+01:00"), (-1, Unit::Day));
    assert_eq!(from_now("2026-04-10T20:00:00+02:00"), (13, Unit::Day));
    assert_eq!(from_now("2026-04-11T20:00:00+02:00"), (2, Unit::Week));
    assert_eq!(from_now("2026-04-28T20:00:00+02:00"), (1, Unit::Month));
    assert_eq!(from_now("2025-03-28T20:00:00+01:00"), (-1, Unit::Year));
}

#[test]
fn an_unknown_zone_is_met_with_the_nearest_names() {
    assert_eq!(zone::nearest("Berlin"), ["Europe/Berlin"]);
    assert_eq!(zone::nearest("new york"), ["America/New_York"]);
    assert_eq!(zone::nearest("Europe/Berln")[0], "Europe/Berlin");
    assert_eq!(zone::nearest("PST"), ["America/Los_Angeles"]);
    assert_eq!(zone::nearest("qqqqqqqqqq"), Vec::<String>::new());
    assert!(zone::find("europe/berlin").is_ok(), "case does not matter");
}

#[test]
fn an_unknown_locale_is_met_with_the_nearest_tag() {
    assert_eq!(locale::nearest("en_US").as_deref(), Some("en-US"));
    assert_eq!(locale::nearest("german").as_deref(), Some("de"));
    assert_eq!(locale::nearest("Englisch").as_deref(), Some("en"));
    assert_eq!(locale::nearest("tlh"), None);
    assert!(locale::find("tlh").is_err(), "well-formed, but there is no data for it");
    assert!(locale::find("und").is_err());
    assert!(locale::find("en-XX").is_ok(), "an unknown region of a known language falls back");
}
