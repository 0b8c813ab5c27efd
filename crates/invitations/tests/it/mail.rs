//! Invitations as they arrive at a mail server.

use icalendar::{Calendar as IcsFile, CalendarComponent, Component};
use mailparse::{MailHeaderMap, ParsedMail, parse_mail};
use quarterdeck_calendar::{Owner, invitation};
use quarterdeck_contracts::{Event, Notice, NoticeKind, Notified, Notifier, Overlay, Store};
use quarterdeck_invitations::InvitationSender;
use std::sync::Arc;

use crate::mail_server::MailServer;
use crate::world::{clock, now, store};

pub(crate) fn event() -> Event {
    Event {
        id: "4f2a@quarterdeck".into(),
        start: "2026-01-13T09:00:00Z".into(),
        end: "2026-01-13T09:30:00Z".into(),
        summary: "Überblick, 2nd round".into(),
        attendees: vec!["ada@example.com".into(), "bob@example.org".into()],
        calendar: "primary".into(),
        description: "Bring the figures;\nall of them.".into(),
        conference: Some("https://meet.example.com/abc".into()),
        ..Event::default()
    }
}

pub(crate) fn notice(kind: NoticeKind, event: Event, call: &str) -> Notice {
    let owner = Owner { name: "Grace Hopper".into(), email: "grace@example.com".into() };
    let ics = invitation(&event, kind, &owner, now());
    Notice { kind, event, ics, call_key: call.into() }
}

/// Accepts a notice and commits it, as the end of its call does.
pub(crate) async fn commit(store: &Arc<dyn Store>, notifier: &dyn Notifier, notice: Notice) -> Vec<Notified> {
    let overlay = Arc::new(Overlay::new(store.clone()));
    let notified = notifier.notify(notice, overlay.clone()).await;
    store.commit(overlay.take()).await.unwrap();
    notified
}

async fn sent(kind: NoticeKind, event: Event) -> (Vec<String>, String) {
    let server = MailServer::start().await;
    let store = store();
    let sender = InvitationSender::new(&server.config(), store.clone(), clock()).unwrap();
    commit(&store, &sender.notifier(), notice(kind, event, "call-1")).await;
    sender.send_due().await.unwrap();
    let messages = server.state().messages.clone();
    assert_eq!(messages.len(), 1);
    messages.into_iter().next().unwrap()
}

fn part<'a>(mail: &'a ParsedMail<'a>, kind: &str) -> &'a ParsedMail<'a> {
    let mut all = mail.parts();
    all.find(|part| part.ctype.mimetype == kind).unwrap_or_else(|| panic!("no {kind}"))
}

/// Reads the calendar part as another program does.
pub(crate) fn only_event(ics: &str) -> (IcsFile, icalendar::Event) {
    let file: IcsFile = ics.parse().unwrap();
    let event = file.components.iter().find_map(|component| match component {
        CalendarComponent::Event(event) => Some(event.clone()),
        _ => None,
    });
    (file.clone(), event.unwrap())
}

#[tokio::test]
async fn an_invitation_holds_words_and_a_calendar_object_that_other_programs_read() {
    let (to, text) = sent(NoticeKind::Invitation, event()).await;
    assert_eq!(to, ["ada@example.com", "bob@example.org"]);
    assert!(text.is_ascii(), "servers without 8BITMIME take it");
    let mail = parse_mail(text.as_bytes()).unwrap();
    assert_eq!(mail.headers.get_first_value("Subject").unwrap(), "Invitation: Überblick, 2nd round");
    assert_eq!(mail.headers.get_first_value("From").unwrap(), "Calendar <calendar@example.com>");
    assert_eq!(mail.headers.get_first_value("To").unwrap(), "ada@example.com, bob@example.org");
    assert_eq!(mail.headers.get_first_value("Date").unwrap(), "Mon, 12 Jan 2026 10:00:00 +0000");
    assert!(mail.headers.get_first_value("Message-ID").unwrap().ends_with("@example.com>"));

    let words = part(&mail, "text/plain").get_body().unwrap();
    assert!(words.contains("Tuesday, 13 January 2026, 10:00–10:30 (Europe/Berlin)"), "{words}");
    assert!(words.contains("https://meet.example.com/abc"), "{words}");

    let calendar = part(&mail, "text/calendar");
    assert_eq!(calendar.ctype.params["method"], "REQUEST");
    assert_eq!(calendar.ctype.charset, "utf-8");
    let (file, read) = only_event(&calendar.get_body().unwrap());
    assert_eq!(file.property_value("METHOD"), Some("REQUEST"));
    assert_eq!(read.get_uid(), Some("4f2a@quarterdeck"));
    assert_eq!(read.get_summary(), Some("Überblick, 2nd round"));
    assert_eq!(read.get_sequence(), Some(0));
    assert_eq!(read.property_value("ORGANIZER"), Some("mailto:grace@example.com"));
    let attendees = &read.multi_properties()["ATTENDEE"];
    let addresses: Vec<_> = attendees.iter().map(|attendee| attendee.value()).collect();
    assert!(attendees.iter().all(|attendee| attendee.params()["RSVP"].value() == "TRUE"), "they can answer");
    assert_eq!(addresses, ["mailto:ada@example.com", "mailto:bob@example.org"]);

    let attached = part(&mail, "application/ics");
    assert_eq!(attached.get_content_disposition().params["filename"], "invite.ics");
    assert_eq!(attached.get_body_raw().unwrap(), calendar.get_body_raw().unwrap());
}

#[tokio::test]
async fn a_change_and_a_cancellation_name_the_event_and_count_up() {
    let moved = Event { sequence: 1, ..event() };
    let (_, text) = sent(NoticeKind::Update, moved).await;
    let mail = parse_mail(text.as_bytes()).unwrap();
    assert_eq!(mail.headers.get_first_value("Subject").unwrap(), "Updated invitation: Überblick, 2nd round");
    let (_, read) = only_event(&part(&mail, "text/calendar").get_body().unwrap());
    assert_eq!((read.get_uid(), read.get_sequence()), (Some("4f2a@quarterdeck"), Some(1)));

    let cancelled = Event { sequence: 2, ..event() };
    let (_, text) = sent(NoticeKind::Cancellation, cancelled).await;
    let mail = parse_mail(text.as_bytes()).unwrap();
    let calendar = part(&mail, "text/calendar");
    assert_eq!(calendar.ctype.params["method"], "CANCEL");
    let (file, read) = only_event(&calendar.get_body().unwrap());
    assert_eq!(file.property_value("METHOD"), Some("CANCEL"));
    assert_eq!(read.property_value("STATUS"), Some("CANCELLED"));
    assert_eq!((read.get_uid(), read.get_sequence()), (Some("4f2a@quarterdeck"), Some(2)));
}

#[tokio::test]
async fn a_title_cannot_add_a_header_or_a_recipient() {
    let evil = Event {
        summary: "Hello\r\nBcc: eve@example.net\r\n\r\n.\r\nRCPT TO:<eve@example.net>".into(),
        description: "a\r\n.\r\nQUIT\r\n..b".into(),
        ..event()
    };
    let (to, text) = sent(NoticeKind::Invitation, evil).await;
    assert_eq!(to, ["ada@example.com", "bob@example.org"]);
    let mail = parse_mail(text.as_bytes()).unwrap();
    assert_eq!(mail.headers.get_first_value("Bcc"), None);
    assert!(mail.headers.get_first_value("Subject").unwrap().starts_with("Invitation: Hello"));
    assert!(part(&mail, "text/plain").get_body().unwrap().contains("QUIT"), "the text arrives whole");
}
