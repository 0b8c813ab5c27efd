//! An invitation as an e-mail: words for people, the same as `text/calendar` for their calendars, and as a file for those
//! whose mail program knows neither.

use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use lettre::Message;
use lettre::message::header::ContentType;
use lettre::message::{Attachment, Mailbox, MultiPart, SinglePart};
use quarterdeck_contracts::NoticeKind;

use crate::outbox::OutboxRow;

const MAX_SUBJECT_CHARS: usize = 250;

/// Builds the message; `None` if no address of it can be written, which the notifier has checked.
pub(crate) fn build(row: &OutboxRow, from: &Mailbox, zone: &TimeZone, now: SystemTime) -> Option<Message> {
    let method = row.kind.method();
    let calendar = ContentType::parse(&format!("text/calendar; charset=utf-8; method={method}")).ok()?;
    let file = ContentType::parse("application/ics").ok()?;
    let mut message = Message::builder()
        .from(from.clone())
        .date(now)
        .message_id(Some(format!("<{}@{}>", row.message_id, from.email.domain())))
        .subject(subject(row));
    for address in &row.to {
        message = message.to(Mailbox::new(None, address.parse().ok()?));
    }
    let words = MultiPart::alternative()
        .singlepart(SinglePart::plain(text(row, zone)))
        .singlepart(SinglePart::builder().content_type(calendar).body(row.ics.clone()));
    let attached = Attachment::new("invite.ics".into()).body(row.ics.clone(), file);
    message.multipart(MultiPart::mixed().multipart(words).singlepart(attached)).ok()
}

fn subject(row: &OutboxRow) -> String {
    let intro = match row.kind {
        NoticeKind::Invitation => "Invitation",
        NoticeKind::Update => "Updated invitation",
        NoticeKind::Cancellation => "Cancelled",
    };
    // A line feed would begin another header.
    let title = row.title.chars().map(|c| if c.is_control() { ' ' } else { c });
    format!("{intro}: {}", title.take(MAX_SUBJECT_CHARS).collect::<String>())
}

fn text(row: &OutboxRow, zone: &TimeZone) -> String {
    let intro = match row.kind {
        NoticeKind::Invitation => "You are invited to this meeting.",
        NoticeKind::Update => "This meeting has changed.",
        NoticeKind::Cancellation => "This meeting does not take place.",
    };
    let mut text = format!("{intro}\n\n{}\n{}\n", row.title, when(row, zone));
    if let (Some(url), true) = (&row.conference, row.kind != NoticeKind::Cancellation) {
        text.push_str(&format!("Video call: {url}\n"));
    }
    if !row.description.is_empty() {
        text.push_str(&format!("\n{}\n", row.description));
    }
    text
}

/// `Tuesday, 13 January 2026, 10:00–10:30 (Europe/Berlin)`.
fn when(row: &OutboxRow, zone: &TimeZone) -> String {
    let at = |text: &str| text.parse::<Timestamp>().ok().map(|instant| instant.to_zoned(zone.clone()));
    let (Some(start), Some(end)) = (at(&row.start), at(&row.end)) else {
        return format!("{} to {}", row.start, row.end);
    };
    let place = zone.iana_name().unwrap_or("UTC");
    let begins = start.strftime("%A, %-d %B %Y, %H:%M");
    if start.date() == end.date() {
        format!("{begins}–{} ({place})", end.strftime("%H:%M"))
    } else {
        format!("{begins} to {} ({place})", end.strftime("%A, %-d %B %Y, %H:%M"))
    }
}
