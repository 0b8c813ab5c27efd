//! The command line of `quarterdeck top`.

use clap::Args;

use super::operator::RunningServer;

#[derive(Debug, Args)]
pub(crate) struct TopOptions {
    #[command(flatten)]
    pub(crate) server: RunningServer,
    /// Print it once, as plain text; also what happens when standard output is no terminal
    #[arg(long)]
    pub(crate) once: bool,
}
