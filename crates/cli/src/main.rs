//! The `quarterdeck` command: flags, and how the parts are put together.

mod admin_client;
mod alert_webhook;
mod arguments;
mod audit_chain;
mod backup;
mod calendars;
mod cases;
mod certificates;
mod commands;
mod config;
mod data;
mod environment;
mod folder_watcher;
mod handler_access;
mod handler_kinds;
mod hot_reload;
mod listening_socket;
mod local_models;
mod local_session;
mod logs;
mod mcp_proxy;
mod models;
mod newer_files;
mod node_data;
mod operator;
mod output;
mod permissions;
mod previous_registry;
mod prompts;
mod recorded_fetches;
mod registry;
mod registry_changes;
mod report;
mod resident_code;
mod shutdown;
mod store_loss;
mod store_snapshot;
mod store_url;
mod telemetry;
mod terminal;
mod times;
mod wire;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::serve::ServeOptions;
use crate::arguments::{Arguments, Command};

#[global_allocator]
static ALLOCATOR: quarterdeck_allocator::Allocator = quarterdeck_allocator::Allocator;

/// How a command ended that could run. What keeps one from running is an error, and exit code 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExitStatus {
    /// Exit code 0.
    Success,
    /// Exit code 1: it ran, and found problems.
    Problems,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Some(command) => run(command),
        // `cargo run` without arguments serves.
        None => commands::serve::run(&ServeOptions::default()),
    };
    match outcome {
        Ok(ExitStatus::Success) => ExitCode::SUCCESS,
        Ok(ExitStatus::Problems) => ExitCode::from(1),
        // The reader of our output has closed the pipe.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::report_error(&error);
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitStatus> {
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
        Command::Man(options) => commands::man::run(&options),
        Command::Health(options) => commands::health::run(&options),
        Command::Audit(command) => commands::audit::run(&command),
        Command::Blocks(options) => commands::blocks::run(&options),
        Command::Alerts(options) => commands::alerts::run(&options),
        Command::LogLevel(options) => commands::log_level::run(&options),
        Command::Top(options) => commands::top::run(&options),
        Command::Registry(command) => commands::registry::run(&command),
        Command::Sessions(options) => commands::sessions::run(&options),
        Command::Tasks(options) => commands::tasks::run(&options),
        Command::Clients(options) => commands::clients::run(&options),
        Command::Transcripts(command) => commands::transcripts::run(&command),
        Command::Store(command) => commands::store::run(&command),
        Command::Backup(options) => commands::backup::run(&options),
        Command::Restore(options) => commands::restore::run(&options),
        Command::Calendar(command) => commands::calendar::run(&command),
        Command::Kb(command) => commands::kb::run(&command),
        Command::Mcp(command) => commands::mcp::run(&command),
        Command::Config(options) => commands::config::run(&options),
        Command::Simulate(command) => commands::simulate::run(&command),
        Command::Speech(command) => commands::speech::run(&command),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
