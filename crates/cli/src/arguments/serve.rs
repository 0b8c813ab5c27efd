//! The command line of `quarterdeck serve` and `quarterdeck config`.

use clap::Args;

use super::Format;

/// Flags win over the environment and the file.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServeOptions {
    /// Where to listen [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The data folder [default: .quarterdeck]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// The folder that holds the tool folders [default: tools]
    #[arg(long, value_name = "DIR")]
    pub(crate) tools: Option<String>,
    /// The folder that holds the records of the knowledge base [default: kb]
    #[arg(long, value_name = "DIR")]
    pub(crate) kb: Option<String>,
    /// Serve the artifact in the tools folder as it is; compile nothing
    #[arg(long)]
    pub(crate) locked: bool,
    /// The digest that the artifact must have, as `quarterdeck build` prints it; implies `--locked`
    #[arg(long, value_name = "SHA256")]
    pub(crate) artifact_digest: Option<String>,
    /// Digests of artifacts that operators may activate while the server runs, separated by commas
    #[arg(long, value_name = "SHA256,…")]
    pub(crate) allow_digests: Option<String>,
    /// Follow the folders: tools, prompts, records and page settings are live as soon as they are saved
    #[arg(long)]
    pub(crate) watch: bool,
    /// Create a new store where the old one was lost, and keep what is left of it
    #[arg(long)]
    pub(crate) new_store: bool,
    /// The configuration file [default: quarterdeck.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// A file with the calls that the rehearsal model makes
    #[arg(long, value_name = "FILE")]
    pub(crate) rehearsal_script: Option<String>,
}

impl ServeOptions {
    /// Key, flag and value of every flag that is set.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
        let all = [
            ("server.listen", "--listen", self.listen.as_deref()),
            ("data.folder", "--data", self.data.as_deref()),
            ("tools.folder", "--tools", self.tools.as_deref()),
            ("tools.locked", "--locked", self.locked.then_some("true")),
            ("tools.artifact_digest", "--artifact-digest", self.artifact_digest.as_deref()),
            ("tools.allowed_digests", "--allow-digests", self.allow_digests.as_deref()),
            ("kb.folder", "--kb", self.kb.as_deref()),
            ("text.rehearsal.script", "--rehearsal-script", self.rehearsal_script.as_deref()),
        ];
        all.into_iter().filter_map(|(key, flag, value)| Some((key, flag, value?)))
    }
}

#[derive(Debug, Args)]
pub(crate) struct ConfigOptions {
    #[command(flatten)]
    pub(crate) serving: ServeOptions,
    /// Print an example file with every key and its default
    #[arg(long, conflicts_with_all = ["format", "json"])]
    pub(crate) example: bool,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}
