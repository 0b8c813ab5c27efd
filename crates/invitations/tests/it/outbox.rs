//! Invitations between the booking and the mail server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use quarterdeck_contracts::{Event, NoticeKind, NoticeStatus, Notifier, Overlay, Scan, Store, Table};
use quarterdeck_invitations::{InvitationSender, WallClock};

use crate::mail::{commit, event, notice};
use crate::mail_server::MailServer;
use crate::world::{clock, store};

/// A clock that is set by hand, and starts at a time that does not matter.
fn hand_clock() -> (Arc<AtomicU64>, WallClock) {
    let seconds = Arc::new(AtomicU64::new(1_768_212_000));
    let read = seconds.clone();
    (seconds, Arc::new(move || UNIX_EPOCH + Duration::from_secs(read.load(Ordering::Relaxed))))
}

async fn waiting(store: &Arc<dyn Store>) -> usize {
    store.scan(Table::Outbox, Scan::prefix("", 100)).await.unwrap().len()
}

#[tokio::test]
async fn a_booking_that_is_not_committed_invites_no_one() {
    let server = MailServer::start().await;
    let store = store();
    let sender = InvitationSender::new(&server.config(), store.clone(), clock()).unwrap();
    let overlay = Arc::new(Overlay::new(store.clone()));
    let told = sender.notifier().notify(notice(NoticeKind::Invitation, event(), "call-1"), overlay).await;
    assert!(told.iter().all(|told| told.status == NoticeStatus::Queued && told.how == "email"));
    sender.send_due().await.unwrap();
    assert!(server.state().messages.is_empty());
}

#[tokio::test]
async fn every_attempt_of_one_call_is_one_invitation() {
    let server = MailServer::start().await;
    let store = store();
    let sender = InvitationSender::new(&server.config(), store.clone(), clock()).unwrap();
    for _ in 0..3 {
        commit(&store, &sender.notifier(), notice(NoticeKind::Invitation, event(), "call-1")).await;
    }
    sender.send_due().await.unwrap();
    sender.send_due().await.unwrap();
    assert_eq!(server.state().messages.len(), 1);
    assert_eq!(waiting(&store).await, 0);
}

#[tokio::test]
async fn a_sender_that_runs_picks_up_what_is_committed() {
    let server = MailServer::start().await;
    let store = store();
    let sender = InvitationSender::new(&server.config(), store.clone(), clock()).unwrap();
    let notifier = sender.notifier();
    let running = tokio::spawn(sender.run());
    commit(&store, &notifier, notice(NoticeKind::Invitation, event(), "call-1")).await;
    while server.state().messages.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    running.abort();
}

#[tokio::test]
async fn one_refused_attendee_does_not_keep_it_from_the_others() {
    let server = MailServer::start().await;
    let store = store();
    let sender = InvitationSender::new(&server.config(), store.clone(), clock()).unwrap();
    server.fail("RCPT TO:<ada@example.com>", "550 no such user");
    commit(&store, &sender.notifier(), notice(NoticeKind::Invitation, event(), "call-1")).await;
    sender.send_due().await.unwrap();
    assert_eq!(server.state().messages[0].0, ["bob@example.org"]);
    assert_eq!(waiting(&store).await, 0, "a refusal is final");
}

#[tokio::test]
async fn what_a_server_takes_later_is_sent_later_and_to_those_who_lack_it_only() {
    let server = MailServer::start().await;
    let store = store();
    let (time, clock) = hand_clock();
    let sender = InvitationSender::new(&server.config(), store.clone(), clock).unwrap();
    server.fail("RCPT TO:<ada@example.com>", "451 try again later");
    commit(&store, &sender.notifier(), notice(NoticeKind::Invitation, event(), "call-1")).await;
    sender.send_due().await.unwrap();
    sender.send_due().await.unwrap();
    assert_eq!(server.state().messages.len(), 1, "not before its time");
    time.fetch_add(61, Ordering::Relaxed);
    sender.send_due().await.unwrap();
    let messages = server.state().messages.clone();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[1].0, ["ada@example.com"]);
    assert_eq!(waiting(&store).await, 0);
}

#[tokio::test]
async fn a_server_that_is_gone_is_tried_for_a_day_and_then_given_up() {
    let server = MailServer::start().await;
    let store = store();
    let (time, clock) = hand_clock();
    let unreachable = quarterdeck_invitations::SmtpConfig { port: Some(1), ..server.config() };
    let sender = InvitationSender::new(&unreachable, store.clone(), clock).unwrap();
    commit(&store, &sender.notifier(), notice(NoticeKind::Invitation, event(), "call-1")).await;
    let started = time.load(Ordering::Relaxed);
    while waiting(&store).await > 0 {
        sender.send_due().await.unwrap();
        time.fetch_add(600, Ordering::Relaxed);
    }
    let hours = (time.load(Ordering::Relaxed) - started) / 3_600;
    assert!((20..30).contains(&hours), "{hours} hours");
}

#[tokio::test]
async fn a_lost_answer_and_an_ended_process_repeat_the_same_message() {
    let server = MailServer::start().await;
    let store = store();
    let (time, clock) = hand_clock();
    let sender = InvitationSender::new(&server.config(), store.clone(), clock.clone()).unwrap();
    server.state().cut_after_message = true;
    commit(&store, &sender.notifier(), notice(NoticeKind::Invitation, event(), "call-1")).await;
    sender.send_due().await.unwrap();
    assert_eq!(waiting(&store).await, 1, "it is not known whether it was taken");
    drop(sender);
    let next = InvitationSender::new(&server.config(), store.clone(), clock).unwrap();
    time.fetch_add(3_600, Ordering::Relaxed);
    next.send_due().await.unwrap();
    let ids: Vec<String> = server.state().messages.iter().map(|(_, text)| message_id(text)).collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1], "its reader sees one");
}

fn message_id(text: &str) -> String {
    text.lines().find(|line| line.starts_with("Message-ID:")).unwrap().to_owned()
}

#[tokio::test]
async fn addresses_that_no_server_takes_are_reported_at_once() {
    let store = store();
    let server = MailServer::start().await;
    let sender = InvitationSender::new(&server.config(), store.clone(), clock()).unwrap();
    let odd = Event {
        attendees: [
            "ada@example.com",
            "jörg@example.com",
            "x\r\nDATA@example.com",
            "not-an-address",
            "ADA@example.com",
        ]
        .map(String::from)
        .into(),
        ..event()
    };
    let told = commit(&store, &sender.notifier(), notice(NoticeKind::Invitation, odd, "call-1")).await;
    let statuses: Vec<_> = told.iter().map(|told| told.status).collect();
    use NoticeStatus::{Failed, Queued};
    assert_eq!(statuses, [Queued, Failed, Failed, Failed, Queued]);
    sender.send_due().await.unwrap();
    assert_eq!(server.state().messages[0].0, ["ada@example.com"]);
}

#[tokio::test]
async fn a_wrong_password_keeps_the_invitation() {
    let server = MailServer::start().await;
    let store = store();
    let sender = InvitationSender::new(&server.config(), store.clone(), clock()).unwrap();
    server.fail("AUTH", "535 wrong");
    commit(&store, &sender.notifier(), notice(NoticeKind::Invitation, event(), "call-1")).await;
    sender.send_due().await.unwrap();
    assert!(server.state().messages.is_empty());
    assert_eq!(waiting(&store).await, 1);
}

#[tokio::test]
async fn without_starttls_nothing_is_sent_to_a_server_that_should_have_it() {
    let server = MailServer::start().await;
    let store = store();
    let encrypted = quarterdeck_invitations::SmtpConfig {
        encryption: quarterdeck_invitations::Encryption::StartTls,
        ..server.config()
    };
    let sender = InvitationSender::new(&encrypted, store.clone(), clock()).unwrap();
    commit(&store, &sender.notifier(), notice(NoticeKind::Invitation, event(), "call-1")).await;
    sender.send_due().await.unwrap();
    assert_eq!(waiting(&store).await, 1);
    let state = server.state();
    let leaked =
        state.commands.iter().any(|command| command.starts_with("AUTH") || command.starts_with("MAIL"));
    assert!(!leaked, "{:?}", state.commands);
}
