//! The configuration: what the file, the environment and the flags say, made into one [`Config`] without anything left
//! to interpret.
//!
//! Every key is declared once, where it is read; the list of `quarterdeck config`, the reference page, the example and
//! the search for unknown keys follow from that. Secrets come from variables and files, and nothing here prints them.

mod auth;
mod choices;
mod file;
mod given;
mod kinds;
mod listing;
mod nearest;
mod origin;
mod policy;
mod problem;
mod providers;
mod reader;
mod reference;
mod secret;
mod server;
mod site;
#[cfg(test)]
mod tests;
mod text;
mod unknown;
mod value;
mod voice;

use std::collections::BTreeSet;

use quarterdeck_calendar::CalendarConfig;
use quarterdeck_runtime::{Policy, RequiredClaim};

use crate::arguments::serving::ServeOptions;
use crate::environment;

pub(crate) use auth::{Algorithm, Auth, TokenCheck, TokenKey};
pub(crate) use given::Variables;
pub(crate) use listing::Listing;
pub(crate) use problem::Problems;
pub(crate) use providers::Endpoint;
pub(crate) use secret::Secret;
pub(crate) use server::{CookieSecret, Limits, SecureCookie, Server};
pub(crate) use site::{ArtifactRule, Folders, LogFormat, LogLevel, Logs, Prompts};
pub(crate) use text::{
    AnthropicDialect, AuthHeader, ChatProvider, Declare, MaxTokensField, OpenAiDialect, SystemRole, Text,
};
pub(crate) use voice::{LiveProvider, Voice};

use file::Which;
use given::Given;
use origin::Origin;
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
pub(crate) struct Site {
    /// Where a running server is asked.
    pub(crate) server: Server,
    pub(crate) folders: Folders,
    pub(crate) calendar: CalendarConfig,
}

/// A configuration, and where each of its values came from.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) listing: Listing,
}

impl Config {
    /// The configuration of the working directory, with what the environment and these flags say.
    pub(crate) fn load(options: &ServeOptions) -> Result<Loaded, Problems> {
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
            folders: site::folders(from),
            calendar: site::calendar(from),
            calendar_details_claim: site::calendar_details_claim(from),
            logs: site::logs(from),
            present: site::present(from),
        }
    }
}

impl Site {
    /// The site of the working directory. What only a server needs may be missing: its keys and tokens are in its own
    /// environment, and not in that of whoever reads its audit trail.
    pub(crate) fn load() -> Result<Self, Problems> {
        let (variables, options) = (environment::variables(), ServeOptions::default());
        site(said_by_file(&options, &variables)?, variables)
    }
}

fn load(options: &ServeOptions, variables: Variables) -> Result<Loaded, Problems> {
    merge(said_by_file(options, &variables)?, variables, options)
}

fn said_by_file(options: &ServeOptions, variables: &Variables) -> Result<Given, Problems> {
    let by_variable = || {
        let path = variables.get(given::CONFIG_FILE)?;
        Some(Which::Named(path.into(), Origin::Variable(given::CONFIG_FILE.into())))
    };
    let by_flag = options.config.as_ref().map(|path| Which::Named(path.clone(), Origin::Flag("--config")));
    let which = by_flag.or_else(by_variable).unwrap_or(Which::Usual);
    let mut given = Given::default();
    file::say_file(&which, &mut given).map_err(Problems::new)?;
    Ok(given)
}

/// What the file says, with the environment and the flags over it.
fn merge(given: Given, variables: Variables, options: &ServeOptions) -> Result<Loaded, Problems> {
    let (config, mut reader) = read(given, variables, options);
    reader.problems.append(&mut reader.unready);
    match reader.problems.is_empty() {
        true => Ok(Loaded { config, listing: Listing::new(reader.rows, reader.sections) }),
        false => Err(Problems::new(reader.problems)),
    }
}

/// The same, for whoever does not serve.
fn site(given: Given, variables: Variables) -> Result<Site, Problems> {
    let (Config { server, folders, calendar, .. }, reader) = read(given, variables, &ServeOptions::default());
    match reader.problems.is_empty() {
        true => Ok(Site { server, folders, calendar }),
        false => Err(Problems::new(reader.problems)),
    }
}

fn read(mut given: Given, variables: Variables, options: &ServeOptions) -> (Config, Reader) {
    given.say_variables(&variables);
    for (key, flag, value) in options.said() {
        given.say(key, Value::Words(value.into()), Origin::Flag(flag));
    }
    let mut reader = Reader::new(given, variables);
    let config = Config::read(&mut reader);
    reader.refuse_the_rest();
    (config, reader)
}
