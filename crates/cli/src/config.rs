//! The configuration: file, environment and flags, read into one [`Config`] of the libraries' own settings.
//!
//! A key is declared once, where it is read (`settings!` in `reader.rs`): its name, what it takes, the library's
//! field that it sets and that holds its default, and its description. The list of `quarterdeck config`, the
//! reference page, the example and the search for unknown keys follow from that. Secrets come from variables and
//! files, and are never printed.

mod alerts;
mod audit;
mod auth;
mod calendars;
pub(crate) mod edit;
mod endpoint;
mod fallback;
mod file;
mod folders;
mod grants;
mod images;
mod invitations;
mod kinds;
mod listing;
mod mcp;
mod mcp_server;
mod origin;
mod page;
mod policy;
mod problem;
mod raw;
mod reader;
mod reference;
mod secret;
mod server;
mod speech;
mod store;
mod telemetry;
#[cfg(test)]
mod tests;
mod text;
mod topics;
mod transcripts;
mod unknown;
mod value;
mod voice;
mod zoom;

use std::collections::BTreeSet;
use std::path::PathBuf;

use quarterdeck_runtime::{Policy, Topics, VersionSettings};
use quarterdeck_server::PageSettingsHandle;

use crate::arguments::serve::ServeOptions;
use crate::environment;
use crate::handler_access::Grants;
use crate::node_data::NodeData;

pub(crate) use alerts::Alerts;
pub(crate) use audit::AuditConfig;
pub(crate) use auth::{Algorithm, Auth, TokenKey};
pub(crate) use calendars::{CalendarBackend, CalendarSettings};
pub(crate) use folders::{ArtifactRule, Folders, LogFormat, Logs};
pub(crate) use images::{ImageModel, Images};
pub(crate) use listing::Listing;
pub(crate) use mcp::{McpServers, TABLE as MCP_TABLE, sounds_secret};
pub(crate) use mcp_server::McpServing;
pub(crate) use problem::Problems;
pub(crate) use raw::Variables;
pub(crate) use server::{CookieSecret, Server};
pub(crate) use speech::{HearingEngine, SpeakingEngine, Speech};
pub(crate) use store::{Cluster, MigrateSchema, StoreConfig};
pub(crate) use telemetry::TelemetryConfig;
pub(crate) use text::{ChatProvider, Text};
pub(crate) use topics::{default_topics, warn_about_missing_lists};
pub(crate) use voice::{LiveProvider, Voice};

use file::ConfigFile;
use origin::Origin;
use raw::RawConfig;
use reader::Reader;
use value::Value;

/// The whole configuration, for a server.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) server: Server,
    pub(crate) store: StoreConfig,
    pub(crate) cluster: Cluster,
    pub(crate) auth: Auth,
    pub(crate) text: Text,
    pub(crate) speech: Speech,
    pub(crate) voice: Voice,
    pub(crate) images: Images,
    pub(crate) mcp_serving: McpServing,
    pub(crate) policy: Policy,
    pub(crate) folders: Folders,
    /// What tools are granted.
    pub(crate) grants: Grants,
    /// MCP servers whose tools are imported.
    pub(crate) mcp: McpServers,
    pub(crate) versions: VersionSettings,
    pub(crate) calendar: CalendarSettings,
    pub(crate) logs: Logs,
    pub(crate) alerts: Alerts,
    pub(crate) telemetry: TelemetryConfig,
    /// Lists of topics about which tools ask the user.
    pub(crate) topics: Topics,
    /// Configuration keys that tools may require.
    pub(crate) config_keys: BTreeSet<String>,
}

/// The part of the configuration that commands without a server need, so that all of them use the same folders.
#[derive(Debug, Clone)]
pub(crate) struct LocalConfig {
    /// Where a running server is reached.
    pub(crate) server: Server,
    pub(crate) store: StoreConfig,
    pub(crate) cluster: Cluster,
    pub(crate) folders: Folders,
    /// What tools are granted; secrets that this environment does not have are missing.
    pub(crate) grants: Grants,
    /// MCP servers whose tools are imported; headers that this environment does not have are missing.
    pub(crate) mcp: McpServers,
    pub(crate) calendar: CalendarSettings,
    pub(crate) topics: Topics,
    pub(crate) alerts: Alerts,
    pub(crate) policy: Policy,
}

/// A configuration, and where each of its values came from.
#[derive(Debug)]
pub(crate) struct LoadedConfig {
    pub(crate) config: Config,
    pub(crate) listing: Listing,
    /// Why the configured chat model cannot be used. The built-in one answers instead.
    pub(crate) model_problems: Problems,
    /// Why a configured speech engine cannot be used. The server starts without it.
    pub(crate) voice_problems: Problems,
}

impl Config {
    /// Loads the configuration of the working directory, the environment and these flags.
    pub(crate) fn load(options: &ServeOptions) -> Result<LoadedConfig, Problems> {
        load(options, environment::variables())
    }

    /// The data folder and the store of this node.
    pub(crate) fn node_data(&self) -> NodeData {
        NodeData::new(&self.folders.data, &self.store, &self.cluster)
    }

    fn read(from: &mut Reader) -> Self {
        let mut server = server::server(from);
        server.settings.page = PageSettingsHandle::new(page::page(from));
        let mut store = store::store(from);
        let cluster = store::cluster(from, server.listen, store.is_shared());
        let auth = auth::auth(from, &mut server.settings.required);
        let mut text = text::text(from, server.listen.port());
        fallback::fallback(from, &mut text);
        let speech = speech::speech(from);
        let voice = voice::voice(from, server.settings.voice_connections, &speech);
        let images = images::images(from);
        let mcp_serving = mcp_server::mcp_server(from, server.settings.max_body_bytes);
        let mut policy = policy::policy(from);
        store.keys = transcripts::transcripts(from, &mut policy);
        let folders = folders::folders(from);
        let grants = grants::grants(from);
        let mcp = mcp::servers(from);
        let versions = folders::versions(from, &mut policy.organisation_claim);
        let calendar = calendars::calendar(from);
        let logs = folders::logs(from);
        let name = cluster.node.clone();
        let alerts = alerts::alerts(from, name);
        let telemetry = telemetry::telemetry(from);
        let topics = topics::topics(from);
        let config_keys = folders::config_keys(from);
        Self {
            server,
            store,
            cluster,
            auth,
            text,
            speech,
            voice,
            images,
            mcp_serving,
            policy,
            folders,
            grants,
            mcp,
            versions,
            calendar,
            logs,
            alerts,
            telemetry,
            topics,
            config_keys,
        }
    }
}

/// The configuration file that these flags, or else the environment, name.
pub(crate) fn file_of(options: &ServeOptions) -> PathBuf {
    match chosen_file(options, &environment::variables()) {
        ConfigFile::Default => file::DEFAULT_PATH.into(),
        ConfigFile::Named(path, _) => path.into(),
    }
}

impl LocalConfig {
    /// Loads the configuration of the working directory. What only a server needs may be missing: its keys and tokens
    /// are in its own environment, not in an operator's shell.
    pub(crate) fn load() -> Result<Self, Problems> {
        let (variables, options) = (environment::variables(), ServeOptions::default());
        load_local(load_raw(&options, &variables)?, variables)
    }
}

fn load(options: &ServeOptions, variables: Variables) -> Result<LoadedConfig, Problems> {
    merge(load_raw(options, &variables)?, variables, options)
}

fn load_raw(options: &ServeOptions, variables: &Variables) -> Result<RawConfig, Problems> {
    let mut raw = RawConfig::default();
    file::load_file(&chosen_file(options, variables), &mut raw).map_err(Problems::new)?;
    Ok(raw)
}

fn chosen_file(options: &ServeOptions, variables: &Variables) -> ConfigFile {
    let by_variable = || {
        let path = variables.get(raw::CONFIG_FILE)?;
        Some(ConfigFile::Named(path.into(), Origin::Variable(raw::CONFIG_FILE.into())))
    };
    let by_flag =
        options.config.as_ref().map(|path| ConfigFile::Named(path.clone(), Origin::Flag("--config")));
    by_flag.or_else(by_variable).unwrap_or(ConfigFile::Default)
}

/// Adds the environment and the flags to the file.
fn merge(raw: RawConfig, variables: Variables, options: &ServeOptions) -> Result<LoadedConfig, Problems> {
    let (config, mut reader) = read(raw, variables, options);
    reader.problems.append(&mut reader.serve_problems);
    if !reader.problems.is_empty() {
        reader.problems.append(&mut reader.model_problems);
        reader.problems.append(&mut reader.voice_problems);
        return Err(Problems::new(reader.problems));
    }
    let listing = Listing::new(reader.rows, reader.sections);
    let model_problems = Problems::new(reader.model_problems);
    Ok(LoadedConfig { config, listing, model_problems, voice_problems: Problems::new(reader.voice_problems) })
}

fn load_local(raw: RawConfig, variables: Variables) -> Result<LocalConfig, Problems> {
    let (
        Config { server, store, cluster, folders, grants, mcp, calendar, topics, alerts, policy, .. },
        reader,
    ) = read(raw, variables, &ServeOptions::default());
    match reader.problems.is_empty() {
        true => {
            Ok(LocalConfig { server, store, cluster, folders, grants, mcp, calendar, topics, alerts, policy })
        }
        false => Err(Problems::new(reader.problems)),
    }
}

fn read(mut raw: RawConfig, variables: Variables, options: &ServeOptions) -> (Config, Reader) {
    raw.add_variables(&variables);
    for (key, flag, value) in options.settings() {
        raw.set(key, Value::Untyped(value.into()), Origin::Flag(flag));
    }
    let mut reader = Reader::new(raw, variables);
    let config = Config::read(&mut reader);
    reader.reject_unknown();
    (config, reader)
}
