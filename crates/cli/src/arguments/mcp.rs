//! The command line of `quarterdeck mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use quarterdeck_outbound::PrivateHost;

use super::serve::ServeOptions;
use super::{CallOptions, ClientOptions, Format, ToolsFolder};

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Serve the tools, records and guides to an MCP client over standard input and output
    #[command(
        after_help = "For clients that start their servers themselves. A data folder has one process at a time: where a \
                      server runs, or several clients are used, give its address with `--url`.\n\n\
                      Example:\n  quarterdeck mcp serve\n  \
                      quarterdeck mcp serve --url http://127.0.0.1:8080 --key-env QUARTERDECK_KEY"
    )]
    Serve(McpServeOptions),
    /// Add an MCP server to the configuration file
    #[command(
        after_help = "The process of `--command` has an empty environment but for PATH and HOME, which are written into the file, and \
                      what `--env` names. Secrets are never written into the file: name the variable that holds one.\n\n\
                      Example:\n  quarterdeck mcp add time --command uvx -- mcp-server-time\n  \
                      quarterdeck mcp add github --command npx --env GITHUB_TOKEN -- -y @modelcontextprotocol/server-github\n  \
                      quarterdeck mcp add crm --url https://crm.example.com/mcp --bearer-env CRM_TOKEN"
    )]
    Add(McpAddOptions),
    /// Remove an MCP server from the configuration file
    #[command(
        after_help = "Example:\n  quarterdeck mcp remove time\n  quarterdeck mcp remove time --folders"
    )]
    Remove(McpRemoveOptions),
    /// List the configured servers, what is imported of each, and what has changed there
    #[command(
        after_help = "Example:\n  quarterdeck mcp list\n  quarterdeck mcp list --offline --format json"
    )]
    List(McpListOptions),
    /// List what a server offers, with digests
    #[command(after_help = "Example:\n  quarterdeck mcp tools time")]
    Tools(McpToolsOptions),
    /// Write a tool folder for each tool of a server, or for those that are named
    #[command(
        after_help = "A catalog is JSON with `mcpServers`, as desktop clients keep it; each server may list its `tools`. Servers that \
                      are not configured yet are added, then imported. docs/COMMANDS.md has the format.\n\n\
                      Example:\n  quarterdeck mcp import time\n  quarterdeck mcp import github create_issue list_issues\n  \
                      quarterdeck mcp import --catalog servers.json"
    )]
    Import(McpImportOptions),
    /// Show what has changed at a server since the import; `--accept` takes it over
    #[command(
        after_help = "Without `--accept` nothing is written, and the exit code is 1 if something has changed.\n\n\
                      Example:\n  quarterdeck mcp update time\n  quarterdeck mcp update time get_current_time --accept"
    )]
    Update(McpUpdateOptions),
    /// Call an imported tool through the gates, or any tool of a server with `--raw`
    #[command(
        after_help = "Example:\n  quarterdeck mcp call time get_current_time '{ \"timezone\": \"Europe/Oslo\" }'\n  \
                      quarterdeck mcp call time get_current_time '{ \"timezone\": \"Europe/Oslo\" }' --raw"
    )]
    Call(McpCallOptions),
}

#[derive(Debug, Args)]
pub(crate) struct McpAddOptions {
    /// What the server is called here: lower-case letters, digits, `-` and `_`
    pub(crate) name: String,
    /// Where the server is, if it speaks HTTP
    #[arg(long, value_name = "URL", required_unless_present = "command", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// The program that is the server; its arguments stand after `--`
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) command: Option<String>,
    /// The program's arguments
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<String>,
    /// The folder in which the program is started
    #[arg(long, value_name = "DIR", requires = "command")]
    pub(crate) cwd: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) values: McpValueOptions,
    #[command(flatten)]
    pub(crate) oauth: McpOAuthOptions,
    /// A host beyond the public internet that the URL may lead to, such as localhost:8080. Can be repeated
    #[arg(long = "private-host", value_name = "HOST:PORT", requires = "url")]
    pub(crate) private_hosts: Vec<PrivateHost>,
}

/// What the server is given.
#[derive(Debug, Args)]
pub(crate) struct McpValueOptions {
    /// A variable of the program: NAME=VALUE, or NAME for the value that it has where the server runs. Can be repeated
    #[arg(long, value_name = "NAME[=VALUE]", requires = "command")]
    pub(crate) env: Vec<String>,
    /// A header of requests that is no secret. Can be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// A header whose value a variable holds. Can be repeated
    #[arg(long, value_name = "NAME=VARIABLE", requires = "url")]
    pub(crate) header_env: Vec<String>,
    /// The variable that holds a bearer token
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    pub(crate) bearer_env: Option<String>,
}

/// OAuth client credentials.
#[derive(Debug, Args)]
pub(crate) struct McpOAuthOptions {
    /// Our client id at the server's token issuer
    #[arg(long, value_name = "ID", requires = "url", requires = "oauth_secret_env")]
    pub(crate) oauth_client_id: Option<String>,
    /// The variable that holds the client's secret
    #[arg(long, value_name = "VARIABLE", requires = "oauth_client_id")]
    pub(crate) oauth_secret_env: Option<String>,
    /// A scope of the token. Can be repeated
    #[arg(long, value_name = "SCOPE", requires = "oauth_client_id")]
    pub(crate) oauth_scope: Vec<String>,
    /// Where tokens are issued [default: what the server's metadata says]
    #[arg(long, value_name = "URL", requires = "oauth_client_id")]
    pub(crate) oauth_token_url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct McpRemoveOptions {
    /// The server
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) tools: ToolsFolder,
    /// Delete the folders of its tools as well
    #[arg(long)]
    pub(crate) folders: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpServeOptions {
    /// Pass the messages on to the server at this address instead; its path is /mcp unless the address has another
    #[arg(
        long,
        value_name = "URL",
        conflicts_with_all = ["data", "tools", "kb", "locked", "artifact_digest", "client", "claims"]
    )]
    pub(crate) url: Option<String>,
    /// The environment variable with the key for that server
    #[arg(long, value_name = "NAME", requires = "url")]
    pub(crate) key_env: Option<String>,
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
    /// The configuration file [default: quarterdeck.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    #[command(flatten)]
    pub(crate) caller: ClientOptions,
}

impl McpServeOptions {
    /// The same as options of a server.
    pub(crate) fn serving(&self) -> ServeOptions {
        ServeOptions {
            data: self.data.clone(),
            tools: self.tools.clone(),
            kb: self.kb.clone(),
            locked: self.locked,
            artifact_digest: self.artifact_digest.clone(),
            config: self.config.clone(),
            ..ServeOptions::default()
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct McpListOptions {
    #[command(flatten)]
    pub(crate) tools: ToolsFolder,
    /// Do not connect to the servers
    #[arg(long)]
    pub(crate) offline: bool,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct McpToolsOptions {
    /// The server
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) tools: ToolsFolder,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct McpImportOptions {
    /// The server
    #[arg(required_unless_present = "catalog", conflicts_with = "catalog")]
    pub(crate) name: Option<String>,
    /// Only these tools, by their names at the server
    #[arg(value_name = "TOOL")]
    pub(crate) only: Vec<String>,
    /// Several servers at once, from a file
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tools: ToolsFolder,
    /// Show what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpUpdateOptions {
    /// The server
    pub(crate) name: String,
    /// Only these tools, by their names at the server
    #[arg(value_name = "TOOL")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) tools: ToolsFolder,
    /// Write the new pins and the published parts; your own policy and words stay
    #[arg(long)]
    pub(crate) accept: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpCallOptions {
    /// The server
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) call: CallOptions,
    /// Ask the server directly: no gate, no limit of the tool, no pin
    #[arg(long)]
    pub(crate) raw: bool,
}
