//! Who was told of a change, and how.

use quarterdeck_contracts::{CalendarInfo, Invitations, NoticeStatus, Notified};
use serde::Serialize;

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct InvitationReport {
    /// One sentence to say.
    pub summary: String,
    pub notified: Vec<Notified>,
    /// The event as a file to pass on, where no invitation was sent.
    pub ics: Option<String>,
}

impl InvitationReport {
    /// What the backend or the notifier did.
    pub(crate) fn new(invitations: Invitations) -> Self {
        let Invitations { notified, ics } = invitations;
        let count = |status: NoticeStatus| notified.iter().filter(|one| one.status == status).count();
        let failed = count(NoticeStatus::Failed);
        // An invitation that is queued is sent a moment after the answer.
        let told_by = if count(NoticeStatus::Queued) > 0 { "being told by" } else { "told by" };
        let summary = match notified.first() {
            None if ics.is_some() => "No invitation was sent; pass the .ics on to the attendees.".to_owned(),
            None => "No attendee was told.".to_owned(),
            Some(first) if failed == 0 => format!("{} {told_by} {}.", people(notified.len()), first.how),
            Some(first) => {
                let told = notified.len() - failed;
                format!("{} {told_by} {}; {} could not be reached.", people(told), first.how, failed)
            }
        };
        Self { summary, notified, ics }
    }
}

fn people(count: usize) -> String {
    if count == 1 { "1 attendee is".to_owned() } else { format!("{count} attendees are") }
}

/// What the user who approves must know about attendees.
pub(crate) fn notice_sentence(info: Option<&CalendarInfo>) -> String {
    match info.and_then(|info| info.notifies_by.as_deref()) {
        Some(how) => format!("They are told by {how}."),
        None => "No invitation is sent.".to_owned(),
    }
}
