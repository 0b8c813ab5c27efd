//! What the tests share: times, clients, an overlay, and a calendar that is connected to a stand-in.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quarterdeck_contracts::{BookingOrigin, EventQuery, NewEvent, Overlay, Store};
use quarterdeck_remote_calendar::{
    Credential, GoogleCalendar, GoogleConfig, GoogleCredentials, SendUpdates, WallClock,
};
use quarterdeck_store::MemoryStore;
use serde_json::json;

/// A key of a service account, made for this run: a private key has no place in a repository.
pub(crate) fn private_key() -> &'static str {
    static KEY: OnceLock<String> = OnceLock::new();
    KEY.get_or_init(|| openssl(&["genpkey", "-algorithm", "RSA", "-quiet"], ""))
}

/// What signatures of [`private_key`] are checked with.
pub(crate) fn public_key() -> String {
    openssl(&["pkey", "-pubout"], private_key())
}

fn openssl(arguments: &[&str], input: &str) -> String {
    let mut child = Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl makes the key of these tests; `scripts/setup` installs it");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "openssl {arguments:?} failed");
    String::from_utf8(output.stdout).unwrap()
}

/// 10:00 UTC on 12 January 2026.
pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_768_212_000)
}

pub(crate) fn clock() -> WallClock {
    Arc::new(now)
}

pub(crate) fn origin(call: &str) -> BookingOrigin {
    BookingOrigin { client_id: "client-1".into(), call_key: call.into(), now: now() }
}

pub(crate) fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

pub(crate) fn overlay() -> Arc<Overlay> {
    Arc::new(Overlay::new(store()))
}

pub(crate) fn booking(start: &str, end: &str) -> NewEvent {
    NewEvent {
        summary: "Review, 2nd round".into(),
        start: start.into(),
        end: end.into(),
        attendees: vec!["ada@example.com".into(), "bob@example.org".into()],
        description: "Bring the figures.".into(),
        conference: false,
        calendar: "primary".into(),
        only_if_free: true,
        conference_url: None,
    }
}

/// The whole of 13 January 2026.
pub(crate) fn the_day() -> EventQuery {
    EventQuery {
        time_min: "2026-01-13T00:00:00Z".into(),
        time_max: "2026-01-14T00:00:00Z".into(),
        calendars: vec!["primary".into()],
    }
}

pub(crate) fn service_account(url: &str) -> GoogleCredentials {
    let key = json!({
        "type": "service_account",
        "project_id": "project",
        "private_key_id": "key-1",
        "private_key": private_key(),
        "client_email": "deck@project.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": format!("{url}/token"),
    });
    GoogleCredentials::ServiceAccount { key: Credential::new(key.to_string()), subject: None }
}

pub(crate) fn refresh_token(url: &str) -> GoogleCredentials {
    GoogleCredentials::RefreshToken {
        client_id: "app".into(),
        client_secret: Credential::new("GOCSPX-planted"),
        refresh_token: Credential::new("1//planted-refresh"),
        token_url: Some(format!("{url}/token")),
    }
}

pub(crate) fn config(url: &str) -> GoogleConfig {
    GoogleConfig {
        name: "primary".into(),
        calendar_id: "team@group.calendar.google.com".into(),
        base_url: format!("{url}/calendar/v3"),
        credentials: refresh_token(url),
        time_zone: "Europe/Berlin".into(),
        timeout: Duration::from_secs(30),
        send_updates: SendUpdates::All,
        meet: false,
    }
}

pub(crate) fn calendar(url: &str) -> GoogleCalendar {
    GoogleCalendar::new(&config(url), clock()).unwrap()
}
