//! The configuration: what the file, the environment and the flags say, made into one [`Config`] without anything left
//! to interpret.
//!
//! Every key is declared once, where it is read; the list of `quarterdeck config`, the reference page, the example and
//! the search for unknown keys follow from that. Secrets come from variables and files, and nothing here prints them.

mod auth;
mod choices;
mod file;
mod folders;
mod kinds;
mod listing;
mod nearest;
mod origin;
mod policy;
mod problem;
mod providers;
mod raw;
mod reader;
mod reference;
mod secret;
mod server;
#[cfg(test)]
mod tests;
mod text;
mod unknown;
mod value;
mod voice;

use std::collections::BTreeSet;

use quarterdeck_calendar::CalendarConfig;
use quarterdeck_runtime::{Policy, RequiredClaim};

use crate::arguments::serve::ServeOptions;
use crate::environment;

pub(crate) use auth::{Algorithm, Auth, TokenCheck, TokenKey};
pub(crate) use folders::{ArtifactRule, Folders, LogFormat, LogLevel, Logs, Prompts};
pub(crate) use listing::Listing;
pub(crate) use problem::Problems;
pub(crate) use providers::Endpoint;
pub(crate) use raw::Variables;
pub(crate) use secret::Secret;
pub(crate) use server::{CookieSecret, Limits, SecureCookie, Server};
pub(crate) use text::{
    AnthropicDialect, AuthHeader, ChatProvider, Declare, MaxTokensField, OpenAiDialect, SystemRole, Text,
};
pub(crate) use voice::{LiveProvider, Voice};

use file::ConfigFile;
use origin::Origin;
use raw::RawConfig;
use reader::Reader;
use value::Value;

/// What a site has configured.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) server: Server,
    pub(crate) limits: Limits,
    pub(crate) auth: Auth,
    pub(crate) text: Text,
    pub(crate) voice: Voice,
    pub(crate) policy: Policy,
    pub(crate) folders: Folders,
    pub(crate) calendar: CalendarConfig,
    /// What a client must have to see the details of all events.
    pub(crate) calendar_details_claim: Option<RequiredClaim>,
    pub(crate) logs: Logs,
    /// Configuration keys that tools may require.
    pub(crate) present: BTreeSet<String>,
}

/// What belongs to the place rather than to the server in it: where things are, and the calendars. Every command that
/// needs a folder looks here, so that all of them mean the same one.
#[derive(Debug, Clone)]
pub(crate) struct LocalConfig {
    /// Where a running server is asked.
    pub(crate) server: Server,
    pub(crate) folders: Folders,
    pub(crate) calendar: CalendarConfig,
}

/// A configuration, and where each of its values came from.
#[derive(Debug)]
pub(crate) struct LoadedConfig {
    pub(crate) config: Config,
    pub(crate) listing: Listing,
}

impl Config {
    /// The configuration of the working directory, with what the environment and these flags say.
    pub(crate) fn load(options: &ServeOptions) -> Result<LoadedConfig, Problems> {
        load(options, environment::variables())
    }

    fn read(from: &mut Reader) -> Self {
        Self {
            server: server::server(from),
            limits: server::limits(from),
            auth: auth::auth(from),
            text: text::text(from),
            voice: voice::voice(from),
            policy: policy::policy(from),
            folders: folders::folders(from),
            calendar: folders::calendar(from),
            calendar_details_claim: folders::calendar_details_claim(from),
            logs: folders::logs(from),
            present: folders::present(from),
        }
    }
}

impl LocalConfig {
    /// The site of the working directory. What only a server needs may be missing: its keys and tokens are in its own
    /// environment, and not in that of whoever reads its audit trail.
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

/// What the file says, with the environment and the flags over it.
fn merge(raw: RawConfig, variables: Variables, options: &ServeOptions) -> Result<LoadedConfig, Problems> {
    let (config, mut reader) = read(raw, variables, options);
    reader.problems.append(&mut reader.serve_problems);
    match reader.problems.is_empty() {
        true => Ok(LoadedConfig { config, listing: Listing::new(reader.rows, reader.sections) }),
        false => Err(Problems::new(reader.problems)),
    }
}

/// The same, for whoever does not serve.
fn load_local(raw: RawConfig, variables: Variables) -> Result<LocalConfig, Problems> {
    let (Config { server, folders, calendar, .. }, reader) = read(raw, variables, &ServeOptions::default());
    match reader.problems.is_empty() {
        true => Ok(LocalConfig { server, folders, calendar }),
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
