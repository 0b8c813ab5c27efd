//! The command line of `quarterdeck log-level`.

use std::time::Duration;

use clap::Args;

use super::Format;
use super::operator::RunningServer;
use crate::times::parse_duration;

#[derive(Debug, Args)]
pub(crate) struct LogLevelOptions {
    /// A level (off, error, warn, info, debug, trace), or a list such as `info,quarterdeck_server=debug`; without one,
    /// what is logged is shown
    #[arg(value_name = "LEVEL|FILTER")]
    pub(crate) filter: Option<String>,
    /// Go back by itself after this time, such as 90s, 10m or 2h
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, requires = "filter")]
    pub(crate) lifetime: Option<Duration>,
    /// Go back to what the server was started with
    #[arg(long, conflicts_with = "filter")]
    pub(crate) reset: bool,
    #[command(flatten)]
    pub(crate) server: RunningServer,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}
