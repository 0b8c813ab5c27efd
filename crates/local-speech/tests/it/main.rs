//! The engines as their users see them: with stand-ins for their programs, and with the real ones where they are installed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod install;
#[cfg(unix)]
mod programs;
mod real;
