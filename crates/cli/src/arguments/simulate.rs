//! The command line of `quarterdeck simulate`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum SimulateCommand {
    /// Speak the provider's side of the Gemini Live protocol
    #[command(
        after_help = "Without a scenario, the built-in rehearsal model answers what is written to it. docs/SIMULATOR.md says what a \
                      scenario may hold.\n\nExample:\n  quarterdeck simulate live\n  \
                      quarterdeck simulate live --scenario scenarios/barge-in.json --once"
    )]
    Live(SimulateLiveOptions),
}

#[derive(Debug, Args)]
pub(crate) struct SimulateLiveOptions {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090")]
    pub(crate) listen: SocketAddr,
    /// The scenario to play
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// The voice
    #[arg(long, value_enum, default_value_t = Speech::Auto)]
    pub(crate) speech: Speech,
    /// End after the scenario's last turn, when the last connection is closed
    #[arg(long, requires = "scenario")]
    pub(crate) once: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Speech {
    /// Speech where espeak-ng is installed, tones otherwise
    Auto,
    /// A tone for each word
    Tones,
    /// Speech, by espeak-ng
    Espeak,
}
