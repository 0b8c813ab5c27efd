//! Invitations on their way: written with a booking, sent to a mail server, read by other programs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mail;
mod mail_server;
mod outbox;
mod real_server;
mod world;
