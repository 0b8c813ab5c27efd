//! The services of the calendars: Google, Zoom and the mail server.

use expect_test::expect;
use quarterdeck_invitations::Encryption;
use quarterdeck_testkit::tree;

use super::super::CalendarBackend;
use super::{config, refused};

const USER: &str = r#"{"type":"authorized_user","client_id":"app","client_secret":"planted-client","refresh_token":"planted-refresh"}"#;

#[test]
fn a_calendar_at_google_takes_its_credentials_from_a_variable_or_a_file() {
    let file =
        "[calendar.backend.team]\nkind = 'google'\ncalendar = 'c_1@group.calendar.google.com'\nmeet = true";
    let read = config(file, &[("QUARTERDECK_CALENDAR_SECRET_TEAM", USER)]);
    let CalendarBackend::Google(google) = &read.calendar.backends["team"] else { panic!("not Google") };
    assert_eq!(google.calendar_id, "c_1@group.calendar.google.com");
    assert_eq!(google.base_url, "https://www.googleapis.com/calendar/v3");
    assert!(google.meet);
    assert!(!format!("{read:?}").contains("planted"));

    let files = tree(&format!("//- google.json\n{USER}\n"));
    let named = format!("{file}\npassword_file = {:?}", files.join("google.json"));
    assert!(matches!(config(&named, &[]).calendar.backends["team"], CalendarBackend::Google(_)));
}

#[test]
fn credentials_that_cannot_work_are_refused_and_not_repeated() {
    refused(
        "[calendar.backend.team]\nkind = 'google'",
        &[],
        expect![[r#"
        the configuration has 1 problem
        quarterdeck.toml:2: the calendar team at Google needs credentials
          help: set QUARTERDECK_CALENDAR_SECRET_TEAM to the JSON of a service account's key or of an authorised user, or name a file that holds it in `calendar.backend.team.password_file`
    "#]],
    );
    refused(
        "[calendar.backend.team]\nkind = 'google'",
        &[("QUARTERDECK_CALENDAR_SECRET_TEAM", "planted-password")],
        expect![[r#"
            the configuration has 1 problem
            `calendar.backend.team.password_file`: this is not the JSON of a service account's key or of an authorised user
        "#]],
    );
}

const SMTP: &str = "[calendar.owner]\nname = 'Ann \"A.\" Lee'\nemail = 'ann@example.com'\n[calendar.smtp]\nhost = 'mail.example.com'\n";

#[test]
fn a_mail_server_takes_its_password_from_a_variable_and_the_owner_is_the_sender() {
    let file = format!("{SMTP}user = 'deck'");
    let read = config(&file, &[("QUARTERDECK_SMTP_PASSWORD", "planted-mail")]);
    let smtp = read.calendar.smtp.as_ref().unwrap();
    assert_eq!(smtp.encryption, Encryption::StartTls);
    assert_eq!(smtp.from, "\"Ann A. Lee\" <ann@example.com>");
    assert!(smtp.credentials.is_some());
    assert!(!format!("{read:?}").contains("planted"));
    assert!(config("", &[]).calendar.smtp.is_none(), "without one no invitation is sent");
}

#[test]
fn a_mail_server_that_would_not_work_is_refused() {
    refused(
        "[calendar.smtp]\nhost = 'mail.example.com'",
        &[],
        expect![[r#"
        the configuration has 1 problem
        quarterdeck.toml:2: `calendar.owner.email` is needed: an invitation names its organiser
    "#]],
    );
    refused(
        &format!("{SMTP}encryption = 'none'"),
        &[],
        expect![[r#"
        the configuration has 1 problem
        quarterdeck.toml:6: `calendar.smtp.encryption`: mail travels unencrypted to a server on loopback only; use TLS or STARTTLS
    "#]],
    );
    refused(
        &format!("{SMTP}from = 'calendar'"),
        &[],
        expect![[r#"
        the configuration has 1 problem
        quarterdeck.toml:6: `calendar.smtp.from`: "calendar" is not an e-mail address; write it like `Calendar <calendar@example.com>`
    "#]],
    );
    refused(
        &format!("{SMTP}user = 'deck'"),
        &[],
        expect![[r#"
        the configuration has 1 problem
        quarterdeck.toml:6: `calendar.smtp.user` needs a password
          help: set QUARTERDECK_SMTP_PASSWORD, or name a file that holds it in `calendar.smtp.password_file`
    "#]],
    );
}

#[test]
fn zoom_needs_an_app_and_no_template_beside_it() {
    let app = "[calendar.zoom]\naccount_id = 'account'\nclient_id = 'app'";
    let read = config(app, &[("QUARTERDECK_ZOOM_CLIENT_SECRET", "planted-zoom")]);
    assert_eq!(read.calendar.zoom.as_ref().unwrap().user, "me");
    assert!(!format!("{read:?}").contains("planted"));
    assert!(config("", &[]).calendar.zoom.is_none());

    refused(
        app,
        &[],
        expect![[r#"
        the configuration has 1 problem
        quarterdeck.toml:2: the app at Zoom needs `calendar.zoom.client_id` and its secret
          help: set QUARTERDECK_ZOOM_CLIENT_SECRET, or name a file that holds it in `calendar.zoom.client_secret_file`
    "#]],
    );
    refused(
        &format!("calendar.conference_url = 'https://meet.example.com'\n{app}"),
        &[("QUARTERDECK_ZOOM_CLIENT_SECRET", "planted-zoom")],
        expect![[r#"
            the configuration has 1 problem
            quarterdeck.toml:3: links come from Zoom or from `calendar.conference_url`, not from both
              help: leave one of them out
        "#]],
    );
}
