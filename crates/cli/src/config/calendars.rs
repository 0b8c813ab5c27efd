//! `[calendar]`: the calendars, where each of them is kept, and who may see and change what.

use std::collections::BTreeMap;
use std::time::Duration;

use quarterdeck_calendar::{CalendarConfig, ConfigError, LocalCalendar};
use quarterdeck_invitations::SmtpConfig;
use quarterdeck_remote_calendar::{
    CalDavConfig, Credential, GOOGLE_BASE_URL, GoogleConfig, GoogleCredentials, SendUpdates, ZoomConfig,
    check_address,
};
use quarterdeck_runtime::RequiredClaim;
use quarterdeck_transports::Secret;

use super::invitations::smtp;
use super::kinds::{base_url, boolean, choice, choices, claim, line, list, seconds};
use super::problem::Problem;
use super::raw::CALENDAR_SECRET;
use super::reader::{Reader, settings};
use super::zoom::zoom;

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
    /// Sends invitations.
    pub(crate) smtp: Option<SmtpConfig>,
    /// Makes links to video calls.
    pub(crate) zoom: Option<ZoomConfig>,
}

/// A backend, ready to be built.
#[derive(Debug, Clone)]
pub(crate) enum CalendarBackend {
    CalDav(CalDavConfig),
    Google(GoogleConfig),
}

choices! {
    enum BackendKind {
        Local = "local",
        CalDav = "caldav",
        Google = "google",
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
    let (smtp, zoom) = (smtp(from, &config), zoom(from, &config));
    CalendarSettings { calendars: config, backends, details_claim, manage_claim, smtp, zoom }
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

/// The keys of one calendar, whatever keeps it.
struct BackendKeys {
    kind: BackendKind,
    url: Option<String>,
    calendar: Option<String>,
    user: Option<String>,
    password: Option<Credential>,
    timeout: Duration,
    mirror: bool,
    send_updates: bool,
    meet: bool,
}

/// Reads the keys of one calendar, which begin with `prefix` in the current table.
fn read(from: &mut Reader, prefix: &str, name: &str, config: &CalendarConfig) -> Option<CalendarBackend> {
    let keys = read_keys(from, prefix, name);
    match keys.kind {
        BackendKind::Local => None,
        BackendKind::CalDav => caldav(from, keys, name, config),
        BackendKind::Google => google(from, keys, name, config),
    }
}

fn read_keys(from: &mut Reader, prefix: &str, name: &str) -> BackendKeys {
    let key = |key: &str| format!("{prefix}{key}");
    let mut kind = BackendKind::Local;
    from.set(&key("kind"), choice(), &mut kind, "What keeps it: \"local\" is our own store");
    let about = "The calendar's own address on a CalDAV server, or the server's; for Google the API, if it is elsewhere";
    let url = from.optional(&key("url"), base_url(&["http", "https"]), about);
    let about = "Which of the user's calendars, by its name or the last part of its path, where there are several; \
                 for Google its address [default there: primary]";
    let calendar = from.optional(&key("calendar"), line(), about);
    let about = "Who we are to the server; for Google the user on whose behalf a service account acts";
    let user = from.optional(&key("user"), line(), about);
    let variable = format!("{CALENDAR_SECRET}{}", name.to_uppercase());
    let about = "A file that holds the password, or for Google the JSON of a service account's key or of an authorised \
                 user; the variable QUARTERDECK_CALENDAR_SECRET_NAME wins over it";
    let way_out = format!("set {variable}, or name a file that holds it in `{TABLE}.{name}.password_file`");
    let (password, _) = from.secret(&key("password"), &[&variable], about, &way_out);
    let password = password.map(|password: Secret| Credential::new(password.expose()));
    let mut timeout = Duration::from_secs(5);
    from.set(&key("timeout_seconds"), seconds(1, 60), &mut timeout, "How long one request may take");
    let mut mirror = true;
    let about = "Keep a copy in memory and ask for what has changed; off for calendars that are very large";
    from.set(&key("mirror"), boolean(), &mut mirror, about);
    let (mut send_updates, mut meet) = (true, false);
    let about = "Whether Google tells attendees of bookings and changes";
    from.set(&key("send_updates"), boolean(), &mut send_updates, about);
    let about = "Whether Google adds a link to Meet to bookings that want a video call";
    from.set(&key("meet"), boolean(), &mut meet, about);
    BackendKeys { kind, url, calendar, user, password, timeout, mirror, send_updates, meet }
}

fn caldav(
    from: &mut Reader,
    keys: BackendKeys,
    name: &str,
    config: &CalendarConfig,
) -> Option<CalendarBackend> {
    let full = |key: &str| format!("{TABLE}.{name}.{key}");
    let Some(url) = keys.url else {
        let message = format!("`{}` is needed: where is the CalDAV server?", full("url"));
        from.add_serve_problem(&full("kind"), message, None);
        return None;
    };
    if let Err(error) = check_address(&url) {
        from.add_problem(&full("url"), format!("`{}`: {error}", full("url")), None);
        return None;
    }
    Some(CalendarBackend::CalDav(CalDavConfig {
        name: name.to_owned(),
        url,
        calendar: keys.calendar,
        user: keys.user.unwrap_or_default(),
        password: keys.password,
        time_zone: config.time_zone.clone(),
        timeout: keys.timeout,
        mirror: keys.mirror,
    }))
}

fn google(
    from: &mut Reader,
    keys: BackendKeys,
    name: &str,
    config: &CalendarConfig,
) -> Option<CalendarBackend> {
    let full = |key: &str| format!("{TABLE}.{name}.{key}");
    let Some(secret) = keys.password else {
        let message = format!("the calendar {name} at Google needs credentials");
        let help = format!(
            "set {CALENDAR_SECRET}{} to the JSON of a service account's key or of an authorised user, or name a file that \
             holds it in `{}`",
            name.to_uppercase(),
            full("password_file")
        );
        from.add_serve_problem(&full("kind"), message, Some(help));
        return None;
    };
    let credentials = match GoogleCredentials::parse(&secret, keys.user) {
        Ok(credentials) => credentials,
        Err(error) => {
            from.add_serve_problem(
                &full("password_file"),
                format!("`{}`: {error}", full("password_file")),
                None,
            );
            return None;
        }
    };
    let google = GoogleConfig {
        name: name.to_owned(),
        calendar_id: keys.calendar.unwrap_or_else(|| "primary".into()),
        base_url: keys.url.unwrap_or_else(|| GOOGLE_BASE_URL.into()),
        credentials,
        time_zone: config.time_zone.clone(),
        timeout: keys.timeout,
        send_updates: if keys.send_updates { SendUpdates::All } else { SendUpdates::None },
        meet: keys.meet,
    };
    if let Err(error) = check_address(&google.base_url) {
        from.add_problem(&full("url"), format!("`{}`: {error}", full("url")), None);
        return None;
    }
    Some(CalendarBackend::Google(google))
}
