//! The command line of `quarterdeck health`.

use clap::Args;

use super::operator::RunningServer;

#[derive(Debug, Args)]
pub(crate) struct HealthOptions {
    /// Ask whether it takes requests (`/readyz`), not only whether it runs (`/healthz`)
    #[arg(long)]
    pub(crate) ready: bool,
    #[command(flatten)]
    pub(crate) server: RunningServer,
}
