//! The user's date, time, zone and locale, from the system text.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Now {
    /// Absent when the system text does not say: then “tomorrow” means nothing.
    pub(crate) today: Option<Date>,
    pub(crate) time: Option<Time>,
    pub(crate) zone: TimeZone,
    /// The zone's name as given.
    pub(crate) zone_name: String,
    pub(crate) locale: String,
    /// Whether the user listens instead of reading.
    pub(crate) is_spoken: Option<bool>,
}

impl Now {
    pub(crate) fn parse(system: &str) -> Self {
        let section = system.split_once("## Now").map_or("", |(_, after)| after);
        let section = section.split("\n## ").next().unwrap_or_default();
        let named =
            between(section, "time zone is ", " and ").or_else(|| between(section, "time zone is ", "."));
        let zone = named.and_then(|name| TimeZone::get(name).ok());
        let zone_name = named.filter(|_| zone.is_some()).unwrap_or("UTC").to_owned();
        let locale = between(section, "locale is ", ".").filter(|locale| !locale.is_empty()).unwrap_or("en");
        Self {
            today: between(section, "(", ")").and_then(|date| date.parse().ok()),
            time: last_time(system),
            zone: zone.unwrap_or(TimeZone::UTC),
            zone_name,
            locale: locale.to_owned(),
            is_spoken: between(section, "The conversation is ", ".").map(|how| how == "spoken"),
        }
    }

    /// This very moment, where it is known.
    pub(crate) fn moment(&self) -> Option<Zoned> {
        self.at(self.today?, self.time?)
    }

    /// A wall-clock time of the user. One that the clocks skip is moved on by what they skip.
    pub(crate) fn at(&self, date: Date, time: Time) -> Option<Zoned> {
        DateTime::from_parts(date, time).to_zoned(self.zone.clone()).ok()
    }

    /// A moment as the user's clocks show it.
    pub(crate) fn local(&self, moment: Timestamp) -> Zoned {
        moment.to_zoned(self.zone.clone())
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(inner, _)| inner.trim())
}

/// The last line is “It is 09:10 now.”, or “The conversation began at 09:10.” where notes tell the time later on.
fn last_time(system: &str) -> Option<Time> {
    let line = system.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let began = || line.strip_prefix("The conversation began at ")?.strip_suffix('.')?.parse().ok();
    told_time(line).or_else(began)
}

/// The time, if a text tells nothing else: “It is 09:10 now.”
pub(crate) fn told_time(text: &str) -> Option<Time> {
    text.strip_prefix("It is ")?.strip_suffix(" now.")?.parse().ok()
}

/// “Friday, 20 November 2026”.
pub(crate) fn day(date: Date) -> String {
    date.strftime("%A, %-d %B %Y").to_string()
}

/// “15:30”.
pub(crate) fn clock(time: Time) -> String {
    time.strftime("%H:%M").to_string()
}

/// “Friday, 20 November 2026, 15:00–15:30”, with the second day where it is another one.
pub(crate) fn period(start: &Zoned, end: &Zoned) -> String {
    let (from, to) = (clock(start.time()), clock(end.time()));
    if start.date() == end.date() {
        format!("{}, {from}–{to}", day(start.date()))
    } else {
        format!("{}, {from} to {}, {to}", day(start.date()), day(end.date()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "You are…\n\n## Now\n\nToday is Sunday, 15 November 2026 (2026-11-15). The user's time zone is Europe/Oslo and \
                          their locale is nb-NO.\n\n## Tools (registry 1.0.3fa9c2e1)\n\nIt is late now.\n\n## How to work\n\nIt is 09:10 now.\n";

    #[test]
    fn the_present_is_read_from_the_system_text() {
        let now = Now::parse(SYSTEM);
        assert_eq!(now.moment().unwrap().to_string(), "2026-11-15T09:10:00+01:00[Europe/Oslo]");
        assert_eq!(now.locale, "nb-NO");
    }

    #[test]
    fn what_the_system_text_does_not_say_is_unknown() {
        let now = Now::parse("You are an agent. Today is fine. It is 25:99 now.");
        assert_eq!(
            (now.today, now.time, now.zone_name.as_str(), now.locale.as_str()),
            (None, None, "UTC", "en")
        );
    }

    #[test]
    fn a_time_that_the_clocks_skip_is_moved_on() {
        let now = Now::parse(SYSTEM);
        let skipped = now.at("2027-03-28".parse().unwrap(), "02:30".parse().unwrap()).unwrap();
        assert_eq!(skipped.to_string(), "2027-03-28T03:30:00+02:00[Europe/Oslo]");
    }
}
