//! The configuration: file, environment and flags, read into one [`Config`] of the libraries' own settings.
//!
//! A key is declared once, where it is read (`settings!` in `reader.rs`): its name, what it takes, the library's
//! field that it sets and that holds its default, and its description. The list of `quarterdeck config`, the
//! reference page, the example and the search for unknown keys follow from that. Secrets come from variables and
//! files, and are never printed.

mod auth;
mod calendars;
mod endpoint;
mod file;
mod folders;
mod grants;
mod images;
mod invitations;
mod kinds;
mod listing;
mod origin;
mod policy;
mod problem;
mod raw;
mod reader;
mod reference;
mod secret;
mod server;
#[cfg(test)]
mod tests;
mod text;
mod topics;
mod unknown;
mod value;
mod voice;
mod zoom;

use std::collections::BTreeSet;

use quarterdeck_runtime::{Policy, Topics, VersionSettings};

use crate::arguments::serve::ServeOptions;
use crate::environment;
use crate::handler_access::Grants;

pub(crate) use auth::{Algorithm, Auth, TokenKey};
pub(crate) use calendars::{CalendarBackend, CalendarSettings};
pub(crate) use folders::{ArtifactRule, Folders, LogFormat, Logs};
pub(crate) use images::{ImageModel, Images};
pub(crate) use listing::Listing;
pub(crate) use problem::Problems;
pub(crate) use raw::Variables;
pub(crate) use server::{CookieSecret, Server};
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
    pub(crate) auth: Auth,
    pub(crate) text: Text,
    pub(crate) voice: Voice,
    pub(crate) images: Images,
    pub(crate) policy: Policy,
    pub(crate) folders: Folders,
    /// What tools are granted.
    pub(crate) grants: Grants,
    pub(crate) versions: VersionSettings,
    pub(crate) calendar: CalendarSettings,
    pub(crate) logs: Logs,
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
    pub(crate) folders: Folders,
    /// What tools are granted; secrets that this environment does not have are missing.
    pub(crate) grants: Grants,
    pub(crate) calendar: CalendarSettings,
    pub(crate) topics: Topics,
}

/// A configuration, and where each of its values came from.
#[derive(Debug)]
pub(crate) struct LoadedConfig {
    pub(crate) config: Config,
    pub(crate) listing: Listing,
}

impl Config {
    /// Loads the configuration of the working directory, the environment and these flags.
    pub(crate) fn load(options: &ServeOptions) -> Result<LoadedConfig, Problems> {
        load(options, environment::variables())
    }

    fn read(from: &mut Reader) -> Self {
        let mut server = server::server(from);
        let auth = auth::auth(from, &mut server.settings.required);
        let text = text::text(from);
        let voice = voice::voice(from, server.settings.voice_connections);
        let images = images::images(from);
        let mut policy = policy::policy(from);
        let folders = folders::folders(from);
        let grants = grants::grants(from);
        let versions = folders::versions(from, &mut policy.organisation_claim);
        let calendar = calendars::calendar(from);
        let logs = folders::logs(from);
        let topics = topics::topics(from);
        let config_keys = folders::config_keys(from);
        Self {
            server,
            auth,
            text,
            voice,
            images,
            policy,
            folders,
            grants,
            versions,
            calendar,
            logs,
            topics,
            config_keys,
        }
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
    let by_variable = || {
        let path = variables.get(raw::CONFIG_FILE)?;
        Some(ConfigFile::Named(path.into(), Origin::Variable(raw::CONFIG_FILE.into())))
    };
    let by_flag =
        options.config.as_ref().map(|path| ConfigFile::Named(path.clone(), Origin::Flag("--config")));
    let file = by_flag.or_else(by_variable).unwrap_or(ConfigFile::Default);
    let mut raw = RawConfig::default();
    file::load_file(&file, &mut raw).map_err(Problems::new)?;
    Ok(raw)
}

/// Adds the environment and the flags to the file.
fn merge(raw: RawConfig, variables: Variables, options: &ServeOptions) -> Result<LoadedConfig, Problems> {
    let (config, mut reader) = read(raw, variables, options);
    reader.problems.append(&mut reader.serve_problems);
    match reader.problems.is_empty() {
        true => Ok(LoadedConfig { config, listing: Listing::new(reader.rows, reader.sections) }),
        false => Err(Problems::new(reader.problems)),
    }
}

fn load_local(raw: RawConfig, variables: Variables) -> Result<LocalConfig, Problems> {
    let (Config { server, folders, grants, calendar, topics, .. }, reader) =
        read(raw, variables, &ServeOptions::default());
    match reader.problems.is_empty() {
        true => Ok(LocalConfig { server, folders, grants, calendar, topics }),
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
