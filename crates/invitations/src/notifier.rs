//! Puts invitations into the outbox.

use std::future::ready;
use std::sync::Arc;

use lettre::Address;
use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Notice, NoticeStatus, Notified, Notifier, Overlay, Table, sha256};
use tokio::sync::Notify;

use crate::outbox::OutboxRow;

const HOW: &str = "email";

/// Invites by e-mail. What it accepts is sent by the [`InvitationSender`](crate::InvitationSender) that shares its outbox.
#[derive(Debug, Clone, Default)]
pub struct MailNotifier {
    /// Wakes the sender.
    pub(crate) written: Arc<Notify>,
}

impl Notifier for MailNotifier {
    fn how(&self) -> &'static str {
        HOW
    }

    fn notify(&self, notice: Notice, overlay: Arc<Overlay>) -> BoxFuture<Vec<Notified>> {
        let mut notified = Vec::new();
        let mut to: Vec<String> = Vec::new();
        for address in &notice.event.attendees {
            let is_new = !to.iter().any(|known| known.eq_ignore_ascii_case(address));
            let status = if is_mail_address(address) { NoticeStatus::Queued } else { NoticeStatus::Failed };
            if is_new && status == NoticeStatus::Queued {
                to.push(address.clone());
            }
            notified.push(Notified { address: address.clone(), how: HOW.into(), status });
        }
        if !to.is_empty() {
            let row = outbox_row(notice, to);
            // The same for every attempt of one call, so that it invites once.
            overlay.put(Table::Outbox, row.message_id.clone(), row.to_value());
            self.written.notify_one();
        }
        Box::pin(ready(notified))
    }
}

/// Whether any mail server takes it. Addresses beyond ASCII need an extension that few have.
fn is_mail_address(address: &str) -> bool {
    address.is_ascii() && !address.contains(char::is_control) && address.parse::<Address>().is_ok()
}

fn outbox_row(notice: Notice, to: Vec<String>) -> OutboxRow {
    let Notice { kind, event, ics, call_key } = notice;
    let seed = format!("{call_key}\n{}\n{}\n{}", kind.method(), event.id, event.sequence);
    OutboxRow {
        kind,
        to,
        title: event.summary,
        start: event.start,
        end: event.end,
        description: event.description,
        conference: event.conference,
        ics,
        message_id: sha256(seed.as_bytes())[..32].to_owned(),
        attempts: 0,
        next_ms: 0,
    }
}
