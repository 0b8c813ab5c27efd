//! The command line of operators.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;

use super::Format;
use crate::config::LocalConfig;
use crate::node_data::NodeData;
use crate::times::parse_time;

#[derive(Debug, Args)]
pub(crate) struct DataFolder {
    /// The folder that holds the store and the audit trail [default: `data.folder` of the configuration, or
    /// .quarterdeck]
    #[arg(id = "data", long = "data", value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
}

impl DataFolder {
    /// The folder of the flag, or else of the configuration.
    pub(crate) fn or<'a>(&'a self, config: &'a LocalConfig) -> &'a Path {
        self.path.as_deref().unwrap_or(&config.folders.data)
    }

    /// That folder, and the store of the configuration.
    pub(crate) fn node(&self, config: &LocalConfig) -> NodeData {
        NodeData::new(self.or(config), &config.store, &config.cluster)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Show the last lines of the trail, and follow it
    #[command(after_help = "Example:\n  quarterdeck audit tail -n 50 --follow")]
    Tail(AuditTailOptions),
    /// Find lines of the trail
    #[command(
        after_help = "Times are RFC 3339 (without an offset: UTC), a date, or how long ago: 90s, 15m, 2h, 7d.\n\n\
                      Example:\n  quarterdeck audit query --tool kb_search --error TRANSIENT --since 2h\n  \
                      quarterdeck audit query --event operator --since 2026-01-13 --format json"
    )]
    Query(AuditQueryOptions),
    /// Copy lines of the trail, byte for byte as JSON lines, or as OCSF events
    #[command(
        after_help = "Example:\n  quarterdeck audit export --since 2026-01-01 --until 2026-02-01 --out january.jsonl\n  \
                      quarterdeck audit export --format ocsf --since 24h"
    )]
    Export(AuditExportOptions),
    /// Verify that the trail is complete and unchanged
    #[command(
        after_help = "The trails of all nodes that share the store are verified: those of this machine from their files, those that \
                      nodes keep in the store from there, others with `--file`. One that was not seen is named, and is no fault.\n\n\
                      Exit codes: 0 whole, 1 a fault was found, 2 could not run.\n\n\
                      Example:\n  quarterdeck audit verify\n  quarterdeck audit verify --file two=/tmp/two.jsonl"
    )]
    Verify(AuditVerifyOptions),
}

#[derive(Debug, Args)]
pub(crate) struct AuditTailOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// How many lines
    #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 10)]
    pub(crate) lines: u64,
    /// Print new lines as they are written, until Ctrl-C
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
    /// How to show a line
    #[arg(long, value_enum, default_value_t = LineFormat::Text)]
    pub(crate) format: LineFormat,
}

#[derive(Debug, Args)]
pub(crate) struct AuditQueryOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// The event, such as `tool_execution`, `confirmation`, `session_start` or `operator`
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// The client
    #[arg(long, value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    /// The session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The tool's id
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// The error type, such as `VALIDATION`
    #[arg(long, value_name = "TYPE")]
    pub(crate) error: Option<String>,
    #[command(flatten)]
    pub(crate) period: Period,
    /// How to show a line
    #[arg(long, value_enum, default_value_t = LineFormat::Text)]
    pub(crate) format: LineFormat,
}

#[derive(Debug, Args)]
pub(crate) struct AuditExportOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
    #[command(flatten)]
    pub(crate) period: Period,
    /// How to write a line
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,
    /// A new file to write to [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The lines as they were written, byte for byte
    Jsonl,
    /// Events of the Open Cybersecurity Schema Framework, class API Activity, one per line
    Ocsf,
}

#[derive(Debug, Args)]
pub(crate) struct AuditVerifyOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// The trail of another node, copied from its data folder, with its folder of closed segments beside it; may be given for
    /// several
    #[arg(long = "file", value_name = "NODE=FILE", value_parser = parse_node_file)]
    pub(crate) files: Vec<NodeFile>,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Period {
    /// Not before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) since: Option<Timestamp>,
    /// Before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) until: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineFormat {
    /// Columns: time, event, tool, result, duration, session, client
    Text,
    /// The line as it was written
    Json,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BlocksOptions {
    #[command(subcommand)]
    pub(crate) command: Option<BlocksCommand>,
    #[command(flatten)]
    pub(crate) list: BlocksListOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BlocksCommand {
    /// List the blocks that have not run out
    #[command(after_help = "Example:\n  quarterdeck blocks list --format json")]
    List(BlocksListOptions),
    /// Lift a client's block
    #[command(after_help = "Example:\n  quarterdeck blocks lift web-4711")]
    Lift(BlocksLiftOptions),
}

#[derive(Debug, Args)]
pub(crate) struct BlocksListOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct BlocksLiftOptions {
    /// The client
    #[arg(value_parser = parse_id)]
    pub(crate) client: String,
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// List what tools have stored for clients
    #[command(
        after_help = "What a tool's definition declares as sensitive is hidden, as in the audit trail.\n\n\
                      Example:\n  quarterdeck store list --tool set_reminder --json\n  \
                      quarterdeck store list --session ses_0f3a"
    )]
    List(StoreListOptions),
    /// Print one value
    #[command(after_help = "Example:\n  quarterdeck store get web-4711 set_reminder next")]
    Get(StoreGetOptions),
    /// Bring the schema of the database up to date
    #[command(
        after_help = "A server does so when it starts, unless `store.migrate` is \"manual\". Nodes of the version before may go on \
                      running meanwhile.\n\nExample:\n  quarterdeck store migrate"
    )]
    Migrate(StoreMigrateOptions),
    /// Copy everything into an empty store, of the same engine or the other
    #[command(
        after_help = "Every server on both stores must be stopped. The copy is read back and compared with the source. The audit \
                      trail, the tools, the knowledge base and the configuration are not part of the store. The password of a \
                      database may be left out of the URL where QUARTERDECK_STORE_PASSWORD or `store.password_file` has it.\n\n\
                      Example:\n  quarterdeck store copy --from sqlite:.quarterdeck/quarterdeck.db --to postgres://qd@db.example/qd"
    )]
    Copy(StoreCopyOptions),
    /// Read every row and say whether the store is sound (exit code 1 if it is not)
    #[command(after_help = "Example:\n  quarterdeck store check --format json")]
    Check(StoreCheckOptions),
    /// Remove expired rows and give what they used back to the disk
    #[command(
        after_help = "A file is rewritten, for which the server must be stopped and the disk needs as much room again. A database \
                      is vacuumed and analysed while the nodes run.\n\nExample:\n  quarterdeck store vacuum"
    )]
    Vacuum(StoreVacuumOptions),
}

#[derive(Debug, Args)]
pub(crate) struct StoreMigrateOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

#[derive(Debug, Args)]
pub(crate) struct StoreCopyOptions {
    /// The store to read: postgres://USER@HOST/DATABASE, sqlite:///PATH or sqlite:RELATIVE/PATH
    // Not parsed by clap, which repeats what it refuses, and this may hold a password.
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    /// The store to write, which must be empty
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

#[derive(Debug, Args)]
pub(crate) struct StoreCheckOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct StoreVacuumOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

#[derive(Debug, Args)]
pub(crate) struct StoreListOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// Only values for this client
    #[arg(long, value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    /// Only values for the client of this session
    #[arg(long, value_name = "ID", conflicts_with = "client")]
    pub(crate) session: Option<String>,
    /// Only values of this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) limit: usize,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

impl StoreListOptions {
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

#[derive(Debug, Args)]
pub(crate) struct StoreGetOptions {
    /// The client
    #[arg(value_parser = parse_id)]
    pub(crate) client: String,
    /// The tool's id
    #[arg(value_parser = parse_id)]
    pub(crate) tool: String,
    /// The key that the tool has given it
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// Print client, tool and key too
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TasksOptions {
    #[command(subcommand)]
    pub(crate) command: Option<TasksCommand>,
    #[command(flatten)]
    pub(crate) list: TasksListOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List background tasks, those that run first
    #[command(after_help = "Example:\n  quarterdeck tasks list --running")]
    List(TasksListOptions),
    /// Cancel a background task
    #[command(after_help = "Example:\n  quarterdeck tasks cancel task_019a8b7c6d5e0a1b2c3d4e5f6071")]
    Cancel(TasksCancelOptions),
}

#[derive(Debug, Args)]
pub(crate) struct TasksListOptions {
    #[command(flatten)]
    pub(crate) server: RunningServer,
    /// Only those of this client
    #[arg(long, value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    /// Only those that run
    #[arg(long)]
    pub(crate) running: bool,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct TasksCancelOptions {
    /// The task
    #[arg(value_parser = parse_id)]
    pub(crate) task: String,
    #[command(flatten)]
    pub(crate) server: RunningServer,
}

#[derive(Debug, Args)]
pub(crate) struct RunningServer {
    /// Where the server listens [default: `server.listen` of the configuration]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) server: Option<std::net::SocketAddr>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SessionsOptions {
    #[command(subcommand)]
    pub(crate) command: Option<SessionsCommand>,
    #[command(flatten)]
    pub(crate) list: SessionsListOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions that are stored, the latest first
    #[command(after_help = "Example:\n  quarterdeck sessions list --client web-4711 --active")]
    List(SessionsListOptions),
    /// End a session
    #[command(after_help = "Example:\n  quarterdeck sessions end ses_0f3a")]
    End(SessionsEndOptions),
}

#[derive(Debug, Args)]
pub(crate) struct SessionsListOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// Only those of this client
    #[arg(long, value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    /// Only those that have not ended
    #[arg(long)]
    pub(crate) active: bool,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct SessionsEndOptions {
    /// The session's id
    #[arg(value_parser = parse_id)]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ClientsOptions {
    #[command(subcommand)]
    pub(crate) command: Option<ClientsCommand>,
    #[command(flatten)]
    pub(crate) list: ClientsListOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientsCommand {
    /// List the clients that have sessions, the latest first
    #[command(after_help = "Example:\n  quarterdeck clients list")]
    List(ClientsListOptions),
    /// Erase the data of a client; a block and the audit trail stay
    #[command(
        after_help = "Erased are the client's sessions, calls, open confirmations, values, images and rate limits. A block, the audit \
                      trail, appointments in the calendar and earlier backups stay.\n\n\
                      Example:\n  quarterdeck clients erase web-4711\n  quarterdeck clients erase web-4711 --yes"
    )]
    Erase(ClientsEraseOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ClientsListOptions {
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ClientsEraseOptions {
    /// The client
    #[arg(value_parser = parse_id)]
    pub(crate) client: String,
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupOptions {
    /// A new folder
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreOptions {
    /// The folder that `quarterdeck backup` has made
    #[arg(value_name = "BACKUP")]
    pub(crate) backup: PathBuf,
    /// Only read the backup and compare every file with its digest
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CalendarCommand {
    /// Import the events of an .ics file
    #[command(after_help = "Example:\n  quarterdeck calendar import holidays.ics --calendar team")]
    Import(CalendarImportOptions),
    /// Write a calendar as an .ics file
    #[command(after_help = "Example:\n  quarterdeck calendar export --calendar team --out team.ics")]
    Export(CalendarExportOptions),
    /// List the events that take up time
    #[command(after_help = "Example:\n  quarterdeck calendar list --from 2026-01-12 --to 2026-01-17")]
    List(CalendarListOptions),
}

#[derive(Debug, Args)]
pub(crate) struct CalendarImportOptions {
    /// The file
    pub(crate) file: PathBuf,
    /// The calendar to import into [default: the first of `calendar.calendars`]
    #[arg(long, value_name = "NAME")]
    pub(crate) calendar: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

#[derive(Debug, Args)]
pub(crate) struct CalendarExportOptions {
    /// Which calendar [default: the first of `calendar.calendars`]
    #[arg(long, value_name = "NAME")]
    pub(crate) calendar: Option<String>,
    /// A new file to write to [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

#[derive(Debug, Args)]
pub(crate) struct CalendarListOptions {
    /// Start of the period [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) from: Option<Timestamp>,
    /// End of the period, exclusive [default: a week after its start]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) to: Option<Timestamp>,
    /// Only this calendar [default: all of them]
    #[arg(long, value_name = "NAME")]
    pub(crate) calendar: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

/// The audit trail of a node.
#[derive(Debug, Clone)]
pub(crate) struct NodeFile {
    pub(crate) node: String,
    pub(crate) path: PathBuf,
}

fn parse_node_file(text: &str) -> Result<NodeFile, String> {
    match text.split_once('=') {
        Some((node, path)) if !node.is_empty() && !path.is_empty() => {
            Ok(NodeFile { node: node.to_owned(), path: path.into() })
        }
        _ => Err("give the name of a node and its file, as in `two=two.jsonl`".into()),
    }
}

/// Ids become parts of keys in the store, so nothing else may pass for one: `a/b` would reach into what `a` has.
fn parse_id(text: &str) -> Result<String, String> {
    let is_valid_id = (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte));
    match is_valid_id {
        true => Ok(text.to_owned()),
        false => Err("an id has 1 to 128 letters, digits, `-`, `_`, `.`, `:` or `@`".into()),
    }
}
