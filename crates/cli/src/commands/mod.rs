//! One file for each command.

pub(crate) mod build;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod describe;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod new;
pub(crate) mod test;

pub(crate) mod alerts;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod blocks;
pub(crate) mod calendar;
pub(crate) mod clients;
pub(crate) mod health;
pub(crate) mod kb;
pub(crate) mod log_level;
pub(crate) mod mcp;
pub(crate) mod registry;
pub(crate) mod restore;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod simulate;
pub(crate) mod speech;
pub(crate) mod store;
pub(crate) mod tasks;
pub(crate) mod top;
pub(crate) mod transcripts;

mod watch;
