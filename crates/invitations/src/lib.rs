//! Invitations by e-mail (iMIP, RFC 6047).
//!
//! An invitation is written to the outbox with the record of the call that made it, and sent afterwards: a booking that is
//! not committed invites no one, and one that is committed invites its attendees even if the process ends in between. A
//! message that is sent twice, because the process ended between the two steps, is the same message to its reader: its
//! `Message-ID`, its `UID` and its `SEQUENCE` are the same.

mod config;
mod mailer;
mod message;
mod notifier;
mod outbox;
mod sender;

pub use lettre::transport::smtp::authentication::Credentials;

pub use config::{Encryption, SmtpConfig, SmtpConfigError};
pub use notifier::MailNotifier;
pub use sender::{InvitationSender, WallClock};
