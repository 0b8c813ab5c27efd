//! The configuration as given: the file, overridden by the environment, overridden by the flags.

use std::collections::BTreeMap;

use super::kinds::Choices;
use super::origin::Origin;
use super::text::TextProvider;
use super::value::Value;
use super::voice::VoiceProvider;

/// The value of a key and its origin. It may be a secret in the wrong place, so it has no `Debug`.
#[derive(Clone)]
pub(crate) struct RawValue {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// All keys as given. A later value replaces an earlier one.
#[derive(Default)]
pub(crate) struct RawConfig {
    pub(crate) keys: BTreeMap<String, RawValue>,
    /// Values that a later one replaced; an unknown key among them is still a problem.
    pub(crate) overridden: Vec<(String, RawValue)>,
    /// The tables of the file, so that an unknown one is found even when it is empty.
    pub(crate) tables: Vec<(String, Origin)>,
}

impl RawConfig {
    pub(crate) fn set(&mut self, key: impl Into<String>, value: Value, origin: Origin) {
        let key = key.into();
        if let Some(overridden) = self.keys.insert(key.clone(), RawValue { value, origin }) {
            self.overridden.push((key, overridden));
        }
    }

    pub(crate) fn add_variables(&mut self, variables: &Variables) {
        for (name, value) in variables.of_keys() {
            let key = name.trim_start_matches(PREFIX).to_lowercase().replace("__", ".");
            self.set(key, Value::Untyped(value.into()), Origin::Variable(name.into()));
        }
    }
}

/// The variables that Quarterdeck reads. They hold secrets, so there is no `Debug`.
#[derive(Clone, Default)]
pub(crate) struct Variables {
    /// Those that mean something by their own name.
    ours: BTreeMap<String, String>,
    /// All others, which mean something only if the configuration names them.
    others: BTreeMap<String, String>,
}

const PREFIX: &str = "QUARTERDECK_";

/// Names the configuration file.
pub(crate) const CONFIG_FILE: &str = "QUARTERDECK_CONFIG";
/// Begins the name of a variable that holds a key for `/v1`.
pub(crate) const API_KEY: &str = "QUARTERDECK_API_KEY_";
/// Begins the name of a variable that holds the password of a calendar.
pub(crate) const CALENDAR_SECRET: &str = "QUARTERDECK_CALENDAR_SECRET_";
/// Variables that set no key, because they hold secrets or name the file.
pub(crate) const SPECIAL_VARIABLES: [&str; 10] = [
    "QUARTERDECK_ADMIN_TOKEN",
    "QUARTERDECK_ALERTS_SECRET",
    "QUARTERDECK_AUTH_SECRET",
    "QUARTERDECK_CLUSTER_SECRET",
    "QUARTERDECK_SMTP_PASSWORD",
    "QUARTERDECK_STORE_PASSWORD",
    "QUARTERDECK_TRANSCRIPTS__KEY",
    "QUARTERDECK_TRANSCRIPTS__PREVIOUS_KEYS",
    "QUARTERDECK_ZOOM_CLIENT_SECRET",
    CONFIG_FILE,
];
/// Variables of the repository's build, tests and scripts. They may be set when `make` starts the program, and must not pass
/// for misspelt keys.
pub(super) const SCRIPT_VARIABLES: [&str; 11] = [
    "QUARTERDECK_BUILT",
    "QUARTERDECK_CLANG",
    "QUARTERDECK_ENGINE_CACHE",
    "QUARTERDECK_FIXTURES",
    "QUARTERDECK_IR",
    "QUARTERDECK_KB",
    "QUARTERDECK_NO_MODEL",
    "QUARTERDECK_PACKAGE_PROFILE",
    "QUARTERDECK_PEERS",
    "QUARTERDECK_REQUIRE_CLIENTS",
    "QUARTERDECK_TEST_STORE",
];

impl Variables {
    /// Keeps those that matter. An empty variable counts as one that is not set.
    pub(crate) fn from_all(all: impl IntoIterator<Item = (String, String)>) -> Self {
        let ours = |name: &str, value: &str| {
            is_provider_variable(name)
                || name.starts_with(PREFIX)
                    && !SCRIPT_VARIABLES.contains(&name)
                    && !is_service_link(name, value)
        };
        let set = all.into_iter().filter(|(_, value)| !value.trim().is_empty());
        let (ours, others) = set.partition(|(name, value)| ours(name, value));
        Self { ours, others }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.ours.get(name).or_else(|| self.others.get(name)).map(String::as_str)
    }

    /// The first of some variables that is set, with its value.
    pub(crate) fn first<'a>(&self, names: &[&'a str]) -> Option<(&'a str, &str)> {
        names.iter().find_map(|name| Some((*name, self.get(name)?)))
    }

    /// The keys for `/v1`: name of the key, name of the variable, secret.
    pub(crate) fn api_keys(&self) -> impl Iterator<Item = (String, &str, &str)> {
        self.ours.iter().filter_map(|(variable, secret)| {
            let name = variable.strip_prefix(API_KEY).filter(|name| !name.is_empty())?;
            Some((name.to_lowercase(), variable.as_str(), secret.as_str()))
        })
    }

    /// Variables whose value was damaged when it was read.
    pub(crate) fn damaged(&self) -> impl Iterator<Item = &str> {
        let damaged = self.ours.iter().filter(|(_, value)| value.contains(char::REPLACEMENT_CHARACTER));
        damaged.map(|(name, _)| name.as_str())
    }

    fn of_keys(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_api_key = |name: &str| {
            let of = |prefix| name.strip_prefix(prefix).is_some_and(|name: &str| !name.is_empty());
            of(API_KEY) || of(CALENDAR_SECRET)
        };
        let is_key = move |name: &str| {
            name.starts_with(PREFIX) && !SPECIAL_VARIABLES.contains(&name) && !is_api_key(name)
        };
        let all = self.ours.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(move |(name, _)| is_key(name))
    }
}

/// Whether providers' own tools use this variable.
fn is_provider_variable(name: &str) -> bool {
    let chat = TextProvider::ALL.iter().map(|(_, provider)| provider.defaults());
    let live = VoiceProvider::ALL.iter().map(|(_, provider)| provider.defaults());
    chat.chain(live).any(|defaults| defaults.keys.contains(&name) || defaults.base_url_variable == Some(name))
}

/// Whether Kubernetes made this variable, as it does for every service: one that is called `quarterdeck` brings
/// `QUARTERDECK_SERVICE_HOST`, `QUARTERDECK_PORT_8080_TCP` and more.
fn is_service_link(name: &str, value: &str) -> bool {
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let of_port = name.split_once("_PORT_").is_some_and(|(_, rest)| digit(rest));
    let of_service = name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT");
    !name.contains("__") && (of_service || of_port || name.ends_with("_PORT") && value.contains("://"))
}
