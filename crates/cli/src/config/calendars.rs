//! `[calendar]`: the calendars, where each of them is kept, and who may see and change what.

use std::collections::BTreeMap;
use std::time::Duration;

use quarterdeck_calendar::{CalendarConfig, ConfigError, LocalCalendar};
use quarterdeck_remote_calendar::{CalDavConfig, Credential, check_address};
use quarterdeck_runtime::RequiredClaim;
use quarterdeck_transports::Secret;

use super::kinds::{base_url, boolean, choice, choices, claim, line, list, seconds};
use super::problem::Problem;
use super::raw::CALENDAR_SECRET;
use super::reader::{Reader, settings};

/// Every calendar, and the claims that open more of them.
#[derive(Debug, Clone)]
pub(crate) struct CalendarSettings {
    pub(crate) calendars: CalendarConfig,
    /// The backends of calendars that are not in our own store, by name.
    pub(crate) backends: BTreeMap<String, CalendarBackend>,
    /// With this claim a client sees the details of all events.
    pub(crate) details_claim: Option<RequiredClaim>,
    /// With this claim a client may move and cancel all events.
    pub(crate) manage_claim: Option<RequiredClaim>,
}

/// A backend, ready to be built.
#[derive(Debug, Clone)]
pub(crate) enum CalendarBackend {
    CalDav(CalDavConfig),
}

choices! {
    enum BackendKind {
        Local = "local",
        CalDav = "caldav",
    }
}

/// The tables of the calendars, and the one that the reference shows.
const TABLE: &str = "calendar.backend";
const EXAMPLE_TABLE: &str = "calendar.backend.NAME";
const EXAMPLE_NAME: &str = "NAME";

pub(super) fn calendar(from: &mut Reader) -> CalendarSettings {
    let mut config = CalendarConfig::default();
    from.table("calendar", "The calendars.");
    settings! { from;
        "time_zone": line() => config.time_zone,
            "The zone in which whole days and times without a zone are meant, such as Europe/Oslo";
        "calendars": list(line()) => config.calendars,
            "Their names; a booking goes to the first unless it says otherwise";
    }
    let about = "Where video calls are held; {id} becomes the event's own part";
    config.conference_url = from.optional("conference_url", line(), about);
    let about =
        "The claim with which a client sees titles and attendees of all events, not only of its own bookings";
    let details_claim = from.optional("details_claim", claim(), about);
    let about = "The claim with which a client may move and cancel all events, not only its own bookings";
    let manage_claim = from.optional("manage_claim", claim(), about);
    from.table("calendar.owner", "Whose time is booked.");
    config.owner.name = from.optional("name", line(), "Their name").unwrap_or_default();
    config.owner.email = from.optional("email", line(), "Their address").unwrap_or_default();
    if let Err(error) = LocalCalendar::from_config(config.clone()) {
        let key = match error {
            ConfigError::TimeZone(_) => "calendar.time_zone",
            ConfigError::NoCalendar | ConfigError::Name(_) => "calendar.calendars",
        };
        from.add_problem(key, format!("`{key}`: {error}"), None);
    }
    let backends = backends(from, &config);
    CalendarSettings { calendars: config, backends, details_claim, manage_claim }
}

/// Reads a table for each calendar that has one.
fn backends(from: &mut Reader, config: &CalendarConfig) -> BTreeMap<String, CalendarBackend> {
    let about = "Where one calendar is kept; NAME is one of `calendar.calendars`.";
    let mut names = from.tables_below(TABLE);
    // The table of the example, in which nothing was filled in.
    names.retain(|name| name != EXAMPLE_NAME);
    if names.is_empty() {
        from.table(EXAMPLE_TABLE, about);
        if read(from, "", EXAMPLE_NAME, config).is_some() {
            refuse_name(from, EXAMPLE_NAME, config);
        }
        return BTreeMap::new();
    }
    from.table(TABLE, about);
    let mut backends = BTreeMap::new();
    for name in names {
        if !config.calendars.contains(&name) {
            refuse_name(from, &name, config);
        }
        if let Some(backend) = read(from, &format!("{name}."), &name, config) {
            backends.insert(name, backend);
        }
    }
    backends
}

fn refuse_name(from: &mut Reader, name: &str, config: &CalendarConfig) {
    let keys = from.rows.iter().map(|row| row.key.clone());
    let below = format!("{TABLE}.{name}.");
    let given = keys.chain(from.raw.keys.keys().cloned()).find(|key| key.starts_with(&below));
    let key = given.unwrap_or_default();
    let origin = from.raw_origin(&key).unwrap_or_else(|| from.origin(&key));
    let known = config.calendars.join(", ");
    let message = format!("there is no calendar {name:?}; `calendar.calendars` has {known}");
    let help =
        Some(format!("call the table [{TABLE}.{}]", config.calendars.first().map_or("NAME", |name| name)));
    from.problems.push(Problem { origin, message, help });
}

/// Reads the keys of one calendar, which begin with `prefix` in the current table.
fn read(from: &mut Reader, prefix: &str, name: &str, config: &CalendarConfig) -> Option<CalendarBackend> {
    let key = |key: &str| format!("{prefix}{key}");
    let mut kind = BackendKind::Local;
    from.set(&key("kind"), choice(), &mut kind, "What keeps it: \"local\" is our own store");
    let about = "The calendar's own address on a CalDAV server, or the server's";
    let url = from.optional(&key("url"), base_url(&["http", "https"]), about);
    let about =
        "Which of the user's calendars, by its name or the last part of its path, where there are several";
    let calendar = from.optional(&key("calendar"), line(), about);
    let user = from.optional(&key("user"), line(), "Who we are to the server").unwrap_or_default();
    let variable = format!("{CALENDAR_SECRET}{}", name.to_uppercase());
    let about = "A file that holds the password; the variable QUARTERDECK_CALENDAR_SECRET_NAME wins over it";
    let way_out = format!("set {variable}, or name a file that holds it in `{TABLE}.{name}.password_file`");
    let (password, _) = from.secret(&key("password"), &[&variable], about, &way_out);
    let mut timeout = Duration::from_secs(5);
    from.set(&key("timeout_seconds"), seconds(1, 60), &mut timeout, "How long one request may take");
    let mut mirror = true;
    let about = "Keep a copy in memory and ask for what has changed; off for calendars that are very large";
    from.set(&key("mirror"), boolean(), &mut mirror, about);
    match kind {
        BackendKind::Local => None,
        BackendKind::CalDav => {
            let full = |key: &str| format!("{TABLE}.{name}.{key}");
            let Some(url) = url else {
                let message = format!("`{}` is needed: where is the CalDAV server?", full("url"));
                from.add_serve_problem(&full("kind"), message, None);
                return None;
            };
            if let Err(error) = check_address(&url) {
                from.add_problem(&full("url"), format!("`{}`: {error}", full("url")), None);
                return None;
            }
            let password = password.as_ref().map(|password: &Secret| Credential::new(password.expose()));
            let (name, time_zone) = (name.to_owned(), config.time_zone.clone());
            Some(CalendarBackend::CalDav(CalDavConfig {
                name,
                url,
                calendar,
                user,
                password,
                time_zone,
                timeout,
                mirror,
            }))
        }
    }
}
