//! A backup: a folder with the state of a data folder, and a manifest that says what is in it.
//!
//! Everything in the data folder is state unless it is known not to be, so that a part that is added later is backed up
//! from its first day. Not in it are what operators keep elsewhere: the tools, the records of the knowledge base, the
//! configuration and the secrets that it names.

mod files;
mod manifest;
mod restore;
mod write;

pub(crate) use manifest::{Manifest, Part};
pub(crate) use restore::{Restore, refuse_unfinished};
pub(crate) use write::write;
