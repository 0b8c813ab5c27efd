//! Folders in, diagnostics or an artifact out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod artifact;
mod confirm_when;
mod corpus;
mod definition;
mod diff;
mod documentation;
mod folders;
mod handlers;
mod hostile;
mod parameters;
mod providers;
mod troubleshooting;
mod world;
