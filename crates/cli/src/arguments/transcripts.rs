//! The command line of `quarterdeck transcripts`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Format;
use super::operator::DataFolder;

#[derive(Debug, Subcommand)]
pub(crate) enum TranscriptsCommand {
    /// List kept conversations, without their words
    #[command(
        after_help = "Example:\n  quarterdeck transcripts list\n  quarterdeck transcripts list --client c_1"
    )]
    List(TranscriptsListOptions),
    /// Show a conversation; the audit trail says who did
    #[command(after_help = "Example:\n  quarterdeck transcripts show ses_4f2a")]
    Show(TranscriptsShowOptions),
    /// List questions that got no answer, or one that the user did not like; the audit trail says who did
    #[command(after_help = "Example:\n  quarterdeck transcripts unanswered --format json")]
    Unanswered(TranscriptsUnansweredOptions),
    /// Export those questions as records to be filled in, or as cases; the audit trail says who did
    #[command(
        after_help = "Example:\n  quarterdeck transcripts export --form records --out unanswered.jsonl\n  \
                      quarterdeck transcripts export --form cases --out tools/kb-search/unanswered.case.json"
    )]
    Export(TranscriptsExportOptions),
}

#[derive(Debug, Args)]
pub(crate) struct TranscriptsListOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// Only those of this client
    #[arg(long, value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct TranscriptsShowOptions {
    /// The session
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct TranscriptsUnansweredOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) limit: usize,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct TranscriptsExportOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// As what
    #[arg(long, value_enum)]
    pub(crate) form: ExportForm,
    /// How many questions
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) limit: usize,
    /// A new file to write to [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    /// JSON lines for `quarterdeck kb import`, once their texts are written
    Records,
    /// A case file for the folder of `kb_search`
    Cases,
}
