//! Where calendars are kept.

use expect_test::expect;

use super::{config, loaded, refused};
use crate::config::CalendarBackend;

const WORK: &str = r#"
    [calendar.backend.team]
    kind = "caldav"
    url = "https://dav.example/team/"
    user = "ann"
    timeout_seconds = 9
"#;

#[test]
fn a_calendar_has_the_backend_of_its_table_and_others_are_local() {
    let config = config(WORK, &[("QUARTERDECK_CALENDAR_SECRET_TEAM", "hunter2")]);
    assert_eq!(config.calendar.backends.len(), 1);
    let CalendarBackend::CalDav(team) = &config.calendar.backends["team"] else { panic!("not CalDAV") };
    assert_eq!((team.name.as_str(), team.url.as_str()), ("team", "https://dav.example/team"));
    assert_eq!((team.timeout.as_secs(), team.password.is_some()), (9, true));
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn the_password_of_a_calendar_is_listed_as_set_and_never_shown() {
    let shown =
        loaded(WORK, &[("QUARTERDECK_CALENDAR_SECRET_TEAM", "hunter2")]).listing.to_json().to_string();
    assert!(shown.contains("calendar.backend.team.password") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_calendar_that_cannot_be_meant_is_refused_with_the_way_out() {
    refused(
        r#"
        [calendar.backend.office]
        kind = "local"
        [calendar.backend.team]
        kind = "caldav"
        url = "http://dav.example/team"
        password = "hunter2"
        [calendar.backend.personal]
        kind = "caldav"
        [calendar.backend.primary]
        kind = "outlook"
        "#,
        &[],
        expect![[r#"
            the configuration has 5 problems
            quarterdeck.toml:3: there is no calendar "office"; `calendar.calendars` has primary, team, personal
              help: call the table [calendar.backend.primary]
            quarterdeck.toml:6: `calendar.backend.team.url`: it is not encrypted; use https, except for a server on this machine
            quarterdeck.toml:7: `calendar.backend.team.password` is a secret, and secrets do not belong in this file
              help: set QUARTERDECK_CALENDAR_SECRET_TEAM, or name a file that holds it in `calendar.backend.team.password_file`
            quarterdeck.toml:9: `calendar.backend.personal.url` is needed: where is the CalDAV server?
            quarterdeck.toml:11: `calendar.backend.primary.kind` is "outlook"; it takes "local", "caldav" or "google"
        "#]],
    );
}
