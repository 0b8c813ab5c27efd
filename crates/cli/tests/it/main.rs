//! The command as it is used: exit code, standard output, standard error.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod calls;
mod commands;
mod five_mistakes;
mod permissions;
mod readme;
mod scaffold;
mod terminal;
mod watch;
