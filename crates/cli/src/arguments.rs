//! The command line.

pub(crate) mod alerts;
pub(crate) mod health;
pub(crate) mod knowledge;
pub(crate) mod log_level;
pub(crate) mod mcp;
pub(crate) mod operator;
pub(crate) mod registry;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod speech;
pub(crate) mod top;
pub(crate) mod transcripts;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use quarterdeck_outbound::PrivateHost;

use alerts::AlertsOptions;
use health::HealthOptions;
use knowledge::{KbCommand, KbFolder};
use log_level::LogLevelOptions;
use mcp::McpCommand;
use operator::{
    AuditCommand, BackupOptions, BlocksOptions, CalendarCommand, ClientsOptions, DataFolder, RestoreOptions,
    SessionsOptions, StoreCommand, TasksOptions,
};
use registry::RegistryCommand;
use serve::{ConfigOptions, ServeOptions};
use simulate::SimulateCommand;
use speech::SpeechCommand;
use top::TopOptions;
use transcripts::TranscriptsCommand;

use crate::config::LocalConfig;

/// A tool runtime for text and voice agents.
#[derive(Debug, Parser)]
#[command(
    name = "quarterdeck",
    version,
    about,
    after_help = "Without a command: serve what is in this folder on 127.0.0.1:8080.\n\n\
                  Exit codes: 0 fine, 1 problems found, 2 could not run."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the agents over HTTP; compiles the tools first if they have changed
    #[command(
        after_help = "Example:\n  quarterdeck serve\n  quarterdeck serve --watch\n  quarterdeck serve --listen 127.0.0.1:9000 --data /var/lib/quarterdeck"
    )]
    Serve(ServeOptions),
    /// Compile tool folders into one artifact
    #[command(
        after_help = "Example:\n  quarterdeck build\n  quarterdeck build --tools my/tools --out registry.json --watch"
    )]
    Build(BuildOptions),
    /// Check tool folders and write nothing (for CI and editors)
    #[command(after_help = "Example:\n  quarterdeck check --format json")]
    Check(CheckOptions),
    /// Create a tool folder that builds and runs
    #[command(
        after_help = "Example:\n  quarterdeck new opening-hours --category retrieval\n  quarterdeck new word-count --rust\n  quarterdeck new word-count --language zig"
    )]
    New(NewOptions),
    /// List the tools with their requirements and token costs
    #[command(after_help = "Example:\n  quarterdeck list")]
    List(ListOptions),
    /// Show one tool: contract, guide, each provider's declaration and its losses
    #[command(
        after_help = "Example:\n  quarterdeck describe format_datetime\n  quarterdeck describe format_datetime --provider geminiNative"
    )]
    Describe(DescribeOptions),
    /// Compare two artifacts and say whether the change breaks callers (exit code 1 if it does)
    #[command(after_help = "Example:\n  quarterdeck diff old_registry.json tools/tool_registry.json")]
    Diff(DiffOptions),
    /// Run one call and print the envelope
    #[command(
        after_help = "Example:\n  quarterdeck call validate_email '{ \"email\": \"nansen@fram.no\" }'\n  echo '{ \"email\": \"x\" }' | quarterdeck call validate_email - --mode voice\n  quarterdeck call kb_search '{ \"query\": \"ice\", \"namespace\": \"personal\" }' --client ann --claims '{ \"role\": \"staff\" }'"
    )]
    Call(CallOptions),
    /// Run the example calls of the guides and the tools' case files
    #[command(after_help = "Example:\n  quarterdeck test\n  quarterdeck test rank_results --format json")]
    Test(TestOptions),
    /// Explain a diagnostic code
    #[command(after_help = "Example:\n  quarterdeck explain QD0104")]
    Explain(ExplainOptions),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  quarterdeck completions bash > ~/.local/share/bash-completion/completions/quarterdeck"
    )]
    Completions(CompletionsOptions),
    /// Write the manual pages, for packages
    #[command(hide = true, after_help = "Example:\n  quarterdeck man --out target/man")]
    Man(ManOptions),
    /// Ask a running server whether it is alive, or ready
    #[command(
        after_help = "Exit code 1 when it is not, or when no server answers. It needs no other program, so that containers \
                      without one can be probed.\n\nExample:\n  quarterdeck health\n  quarterdeck health --ready"
    )]
    Health(HealthOptions),
    /// Read or verify the audit trail
    #[command(
        subcommand,
        after_help = "Example:\n  quarterdeck audit tail --follow\n  quarterdeck audit verify"
    )]
    Audit(AuditCommand),
    /// List blocked clients, or lift a block
    #[command(after_help = "Example:\n  quarterdeck blocks\n  quarterdeck blocks lift web-4711")]
    Blocks(BlocksOptions),
    /// List the alarms of a running server, lift one, or print the rules for it, Prometheus and Grafana
    #[command(
        after_help = "Example:\n  quarterdeck alerts\n  quarterdeck alerts lift tool_errors:tool=kb_search\n  \
                            quarterdeck alerts prometheus > quarterdeck.rules.yaml"
    )]
    Alerts(AlertsOptions),
    /// Show or change what a running server logs
    #[command(
        name = "log-level",
        after_help = "Example:\n  quarterdeck log-level\n  quarterdeck log-level debug --for 10m\n  \
                      quarterdeck log-level info,quarterdeck_server=debug\n  quarterdeck log-level --reset"
    )]
    LogLevel(LogLevelOptions),
    /// Show a running server in this terminal: sessions, calls, refusals, times, models and alarms
    #[command(after_help = "q ends it.\n\nExample:\n  quarterdeck top\n  quarterdeck top --once")]
    Top(TopOptions),
    /// List, activate and retire versions of the registry on a running server, and set their rollout
    #[command(
        subcommand,
        after_help = "Example:\n  quarterdeck registry list\n  quarterdeck registry rollout --percent 30:1.0.287d0f29"
    )]
    Registry(RegistryCommand),
    /// List sessions, or end one
    #[command(after_help = "Example:\n  quarterdeck sessions --active\n  quarterdeck sessions end ses_0f3a")]
    Sessions(SessionsOptions),
    /// List the background tasks of a running server, or cancel one
    #[command(
        after_help = "Example:\n  quarterdeck tasks --running\n  quarterdeck tasks cancel task_019a8b7c6d5e0a1b2c3d4e5f6071"
    )]
    Tasks(TasksOptions),
    /// List clients, or erase the data of one
    #[command(after_help = "Example:\n  quarterdeck clients\n  quarterdeck clients erase web-4711")]
    Clients(ClientsOptions),
    /// Read kept conversations, and export questions that got no answer
    #[command(
        subcommand,
        after_help = "Example:\n  quarterdeck transcripts list\n  quarterdeck transcripts show ses_4f2a"
    )]
    Transcripts(TranscriptsCommand),
    /// Read what tools have stored, and check, copy, migrate or vacuum the store
    #[command(
        subcommand,
        after_help = "Example:\n  quarterdeck store list\n  quarterdeck store get web-4711 set_reminder next\n  \
                      quarterdeck store copy --from sqlite:.quarterdeck/quarterdeck.db --to postgres://qd@db.example/qd"
    )]
    Store(StoreCommand),
    /// Back up the state of a server to a new folder
    #[command(
        after_help = "The copy may be made while a server runs. It holds the store, the audit trail, the index of the knowledge \
                      base, the secret that signs cookies and tokens, and the stored versions of the tools, with a manifest of \
                      their digests; not the tools, the records and the configuration. A running server forgets what has had \
                      its retention time; a backup does not. Keep it as secret as the server's data: its key is in it.\n\n\
                      Example:\n  quarterdeck backup /var/backups/quarterdeck-monday"
    )]
    Backup(BackupOptions),
    /// Restore a backup into an empty data folder
    #[command(
        after_help = "Every file is compared with the digest in the backup's manifest first. A folder that holds something is left \
                      alone. docs/OPERATIONS.md has the steps.\n\n\
                      Example:\n  quarterdeck restore --check /var/backups/quarterdeck-monday\n  \
                      quarterdeck restore /var/backups/quarterdeck-monday"
    )]
    Restore(RestoreOptions),
    /// Import, export and list calendars
    #[command(
        subcommand,
        after_help = "Example:\n  quarterdeck calendar import holidays.ics --calendar team\n  quarterdeck calendar list"
    )]
    Calendar(CalendarCommand),
    /// Search the knowledge base, check it and measure it
    #[command(
        subcommand,
        after_help = "Example:\n  quarterdeck kb search \"who led the second expedition\"\n  quarterdeck kb check"
    )]
    Kb(KbCommand),
    /// Use tools of MCP servers: add a server, import its tools as folders, keep them current
    #[command(
        subcommand,
        after_help = "Example:\n  quarterdeck mcp add time --command uvx -- mcp-server-time\n  quarterdeck mcp import time"
    )]
    Mcp(McpCommand),
    /// Show the effective configuration and the origin of each value
    #[command(
        after_help = "Flags win over environment variables, which win over the file. docs/CONFIGURATION.md has every key.\n\n\
                      Example:\n  quarterdeck config\n  quarterdeck config --listen 127.0.0.1:9000 --json\n  \
                      quarterdeck config --example > quarterdeck.toml"
    )]
    Config(ConfigOptions),
    /// Simulate a provider, for tests and demonstrations without a key
    #[command(
        subcommand,
        after_help = "Example:\n  quarterdeck simulate live --scenario scenarios/tool-call.json"
    )]
    Simulate(SimulateCommand),
    /// Install, list, check and remove the engines that hear and speak on this machine
    #[command(subcommand, after_help = "Example:\n  quarterdeck speech install\n  quarterdeck speech check")]
    Speech(SpeechCommand),
}

#[derive(Debug, Args)]
pub(crate) struct ToolsFolder {
    /// The folder that holds the tool folders [default: `tools.folder` of the configuration, or tools]
    #[arg(long = "tools", value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
}

impl ToolsFolder {
    /// The folder of the flag, or else of the configuration.
    pub(crate) fn or<'a>(&'a self, config: &'a LocalConfig) -> &'a Path {
        self.path.as_deref().unwrap_or(&config.folders.tools)
    }
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    #[command(flatten)]
    pub(crate) tools: ToolsFolder,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
    /// Make a lossy conversion an error unless `schema.json` acknowledges it
    #[arg(long)]
    pub(crate) deny_lossy: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BuildOptions {
    #[command(flatten)]
    pub(crate) check: CheckOptions,
    /// Where to write the artifact [default: tool_registry.json in the tools folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Build again whenever a file changes
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NewOptions {
    /// The folder's name, such as `opening-hours`
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) tools: ToolsFolder,
    /// Write the handler in JavaScript (the default)
    #[arg(long, conflicts_with = "rust")]
    pub(crate) js: bool,
    /// Write the handler in Rust
    #[arg(long)]
    pub(crate) rust: bool,
    /// Write the handler in this language
    #[arg(long, value_enum, conflicts_with_all = ["js", "rust"])]
    language: Option<LanguageChoice>,
    /// What kind of tool it is
    #[arg(long, value_enum, default_value_t = CategoryChoice::Utility)]
    pub(crate) category: CategoryChoice,
}

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    #[command(flatten)]
    pub(crate) tools: ToolsFolder,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct DescribeOptions {
    /// The tool's id or folder
    pub(crate) tool: String,
    #[command(flatten)]
    pub(crate) tools: ToolsFolder,
    /// Show only what this provider will see
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct DiffOptions {
    /// The artifact that callers know
    pub(crate) old: PathBuf,
    /// The artifact that is to replace it
    pub(crate) new: PathBuf,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    /// The tool's id or folder
    pub(crate) tool: String,
    /// The arguments as JSON; `-` reads them from standard input
    #[arg(default_value = "{}")]
    pub(crate) args: String,
    #[command(flatten)]
    pub(crate) tools: ToolsFolder,
    /// The mode of the session
    #[arg(long, value_enum, default_value_t = ModeChoice::Text)]
    pub(crate) mode: ModeChoice,
    /// What the user says in this turn, for a tool that asks unless the user has asked for it
    #[arg(long, value_name = "WORDS")]
    pub(crate) said: Option<String>,
    /// Approve the call if the tool needs confirmation
    #[arg(long)]
    pub(crate) confirm: bool,
    #[command(flatten)]
    pub(crate) kb: KbFolder,
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// Show the verdict of each gate
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
    #[command(flatten)]
    pub(crate) private_hosts: PrivateHostOptions,
    /// Answer the handler's `fetch` from this file, a list as in `given.fetch` of a case file; nothing is sent
    #[arg(long, value_name = "FILE")]
    pub(crate) fetch: Option<PathBuf>,
}

/// Who calls.
#[derive(Debug, Args)]
pub(crate) struct ClientOptions {
    /// Call as a client of this id who has signed in
    #[arg(long, value_name = "ID")]
    pub(crate) client: Option<String>,
    /// Call as a client who has signed in, with these claims, a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) claims: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PrivateHostOptions {
    /// Let handlers reach this private host too, if their `network` names it; such as localhost:8080. Can be repeated
    #[arg(long = "private-host", value_name = "HOST:PORT")]
    pub(crate) hosts: Vec<PrivateHost>,
}

#[derive(Debug, Args)]
pub(crate) struct TestOptions {
    /// Only this tool
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) tools: ToolsFolder,
    #[command(flatten)]
    pub(crate) private_hosts: PrivateHostOptions,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeChoice {
    /// The user writes
    Text,
    /// The user speaks
    Voice,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// A code such as `QD0104`, or a rule's name; all of them when left out
    pub(crate) code: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// The folder to write them to; it is created
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text
    Human,
    /// JSON
    Json,
}

impl NewOptions {
    pub(crate) fn language(&self) -> LanguageChoice {
        let by_flag = if self.rust { LanguageChoice::Rust } else { LanguageChoice::Js };
        self.language.unwrap_or(by_flag)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LanguageChoice {
    /// JavaScript; needs no build
    Js,
    /// TypeScript; needs no build, its types are erased
    #[value(name = "typescript", alias = "ts")]
    TypeScript,
    /// Rust; part of the binary
    Rust,
    /// C, compiled to a WebAssembly module; utilities only
    C,
    /// Rust, compiled to a WebAssembly module; utilities only
    RustWasm,
    /// Zig, compiled to a WebAssembly module; utilities only
    Zig,
    /// AssemblyScript, compiled to a WebAssembly module; utilities only
    #[value(name = "assemblyscript")]
    AssemblyScript,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CategoryChoice {
    /// Looks something up; read-only and idempotent
    Retrieval,
    /// Does something
    Action,
    /// Computes something
    Utility,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn check_examples(command: &clap::Command, typed: &str) {
        for inner in command.get_subcommands() {
            let typed = format!("{typed} {}", inner.get_name());
            let help = inner.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("Example:\n  {typed}")), "{typed}: {help}");
            check_examples(inner, &typed);
        }
    }

    #[test]
    fn every_command_shows_an_example() {
        check_examples(&Arguments::command(), "quarterdeck");
    }
}
