//! The command line of `quarterdeck alerts`.

use clap::{Args, Subcommand};

use super::Format;
use super::operator::RunningServer;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AlertsOptions {
    #[command(subcommand)]
    pub(crate) command: Option<AlertsCommand>,
    #[command(flatten)]
    pub(crate) list: AlertsListOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AlertsCommand {
    /// List the alarms of a running server
    #[command(after_help = "Example:\n  quarterdeck alerts list --format json")]
    List(AlertsListOptions),
    /// Lift an alarm: it is quiet until it has ended and its rule holds again
    #[command(after_help = "Example:\n  quarterdeck alerts lift tool_errors:tool=kb_search")]
    Lift(AlertsLiftOptions),
    /// List the rules of the configuration
    #[command(after_help = "Example:\n  quarterdeck alerts rules --format json")]
    Rules(AlertsRulesOptions),
    /// Print the rules for Prometheus
    #[command(after_help = "Example:\n  quarterdeck alerts prometheus > quarterdeck.rules.yaml")]
    Prometheus,
    /// Print a dashboard for Grafana
    #[command(after_help = "Example:\n  quarterdeck alerts grafana > quarterdeck.json")]
    Grafana,
}

#[derive(Debug, Args)]
pub(crate) struct AlertsListOptions {
    #[command(flatten)]
    pub(crate) server: RunningServer,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct AlertsLiftOptions {
    /// The alarm, as `quarterdeck alerts` lists it
    pub(crate) alarm: String,
    #[command(flatten)]
    pub(crate) server: RunningServer,
}

#[derive(Debug, Args)]
pub(crate) struct AlertsRulesOptions {
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}
