//! One file for each command.

pub(crate) mod build;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod describe;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod list;
pub(crate) mod new;
pub(crate) mod test;

mod watch;
