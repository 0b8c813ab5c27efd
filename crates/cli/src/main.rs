//! The `quarterdeck` command: flags, and how the parts are put together.

mod arguments;
mod calendars;
mod cases;
mod commands;
#[allow(dead_code, unused_imports, reason = "most of it is for the server")]
mod config;
mod environment;
mod handler_kinds;
mod live;
mod logs;
mod models;
mod registry;
mod report;
mod running;
mod stopping;
mod terminal;
mod wire;
mod world;

mod data;
mod operator;
mod output;
mod permissions;
mod previous;
mod store_loss;
mod times;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::serving::ServeOptions;
use crate::arguments::{Arguments, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a command ended, when it could run at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Nothing to complain about.
    Fine,
    /// It ran, and found problems.
    Problems,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Some(command) => run(command),
        // What somebody sees who just types `cargo run`.
        None => commands::serve::run(&ServeOptions::default()),
    };
    match outcome {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Problems) => ExitCode::from(1),
        // Whoever read our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::complain(&error);
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> anyhow::Result<Verdict> {
    match command {
        Command::Serve(options) => commands::serve::run(&options),
        Command::Build(options) => commands::build::run(&options),
        Command::Check(options) => commands::check::run(&options),
        Command::New(options) => commands::new::run(&options),
        Command::List(options) => commands::list::run(&options),
        Command::Describe(options) => commands::describe::run(&options),
        Command::Diff(options) => commands::diff::run(&options),
        Command::Call(options) => commands::call::run(&options),
        Command::Test(options) => commands::test::run(&options),
        Command::Explain(options) => commands::explain::run(&options),
        Command::Completions(options) => commands::completions::run(&options),
        Command::Audit(command) => commands::audit::run(&command),
        Command::Blocks(options) => commands::blocks::run(&options),
        Command::Quarantines(options) => commands::quarantines::run(&options),
        Command::Sessions(options) => commands::sessions::run(&options),
        Command::Clients(options) => commands::clients::run(&options),
        Command::Backup(options) => commands::backup::run(&options),
        Command::Calendar(command) => commands::calendar::run(&command),
        Command::Kb(command) => commands::kb::run(&command),
        Command::Config(options) => commands::config::run(&options),
        Command::Simulate(command) => commands::simulate::run(&command),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
