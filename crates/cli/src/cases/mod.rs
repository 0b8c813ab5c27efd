//! Runs the tests that a tool's author writes without writing code: `*.case.json` and the examples of the guide.

mod matching;
mod run;

pub(crate) use run::{Difference, Report, run_tool};
