//! What was said, by whom: the file, over it the environment, over it the flags.

use std::collections::BTreeMap;

use super::origin::Origin;
use super::value::Value;

/// What was said about one key, and where. It may be a secret in the wrong place, so nothing prints it.
#[derive(Clone)]
pub(crate) struct RawValue {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// Everything that was said. A later word on a key replaces an earlier one.
#[derive(Default)]
pub(crate) struct RawConfig {
    pub(crate) keys: BTreeMap<String, RawValue>,
    /// What somebody else had the last word on. If there is no such key, that is wrong all the same.
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

    /// Adds what the environment says about keys.
    pub(crate) fn add_variables(&mut self, variables: &Variables) {
        for (name, value) in variables.of_keys() {
            let key = name.trim_start_matches(PREFIX).to_lowercase().replace("__", ".");
            self.set(key, Value::Untyped(value.into()), Origin::Variable(name.into()));
        }
    }
}

/// The variables that Quarterdeck looks at. They hold secrets, so nothing prints them.
#[derive(Clone, Default)]
pub(crate) struct Variables(BTreeMap<String, String>);

const PREFIX: &str = "QUARTERDECK_";

/// Names the configuration file.
pub(crate) const CONFIG_FILE: &str = "QUARTERDECK_CONFIG";
/// Begins the name of a variable that holds a key for `/v1`.
pub(crate) const API_KEY: &str = "QUARTERDECK_API_KEY_";
/// Variables of ours that are no keys, because they hold secrets or come before the file.
pub(crate) const SPECIAL: [&str; 3] = ["QUARTERDECK_ADMIN_TOKEN", "QUARTERDECK_AUTH_SECRET", CONFIG_FILE];
/// Variables that providers' own tools use.
const OF_PROVIDERS: [&str; 5] =
    ["GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"];
/// Variables of the repository's tests and scripts. Whoever has set one for `make` starts the program with it too, and
/// it must not pass for a misspelt key then.
pub(super) const OF_SCRIPTS: [&str; 6] = [
    "QUARTERDECK_FIXTURES",
    "QUARTERDECK_IR",
    "QUARTERDECK_KB",
    "QUARTERDECK_NO_MODEL",
    "QUARTERDECK_PEERS",
    "QUARTERDECK_REQUIRE_CLIENTS",
];

impl Variables {
    /// Keeps those that matter. An empty variable counts as one that is not set.
    pub(crate) fn from_all(all: impl IntoIterator<Item = (String, String)>) -> Self {
        let ours = |name: &str, value: &str| {
            OF_PROVIDERS.contains(&name)
                || name.starts_with(PREFIX) && !OF_SCRIPTS.contains(&name) && !is_service_link(name, value)
        };
        let set = |(name, value): &(String, String)| ours(name, value) && !value.trim().is_empty();
        Self(all.into_iter().filter(set).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The first of some variables that is set, with its value.
    pub(crate) fn first<'a>(&self, names: &[&'a str]) -> Option<(&'a str, &str)> {
        names.iter().find_map(|name| Some((*name, self.get(name)?)))
    }

    /// The keys for `/v1`: name of the key, name of the variable, secret.
    pub(crate) fn api_keys(&self) -> impl Iterator<Item = (String, &str, &str)> {
        self.0.iter().filter_map(|(variable, secret)| {
            let name = variable.strip_prefix(API_KEY).filter(|name| !name.is_empty())?;
            Some((name.to_lowercase(), variable.as_str(), secret.as_str()))
        })
    }

    /// Variables whose value was damaged when it was read.
    pub(crate) fn damaged(&self) -> impl Iterator<Item = &str> {
        let damaged = self.0.iter().filter(|(_, value)| value.contains(char::REPLACEMENT_CHARACTER));
        damaged.map(|(name, _)| name.as_str())
    }

    fn of_keys(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_api_key = |name: &str| name.strip_prefix(API_KEY).is_some_and(|name| !name.is_empty());
        let is_key =
            move |name: &str| name.starts_with(PREFIX) && !SPECIAL.contains(&name) && !is_api_key(name);
        let all = self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(move |(name, _)| is_key(name))
    }
}

/// Whether Kubernetes made this variable, as it does for every service: one that is called `quarterdeck` brings
/// `QUARTERDECK_SERVICE_HOST`, `QUARTERDECK_PORT_8080_TCP` and more.
fn is_service_link(name: &str, value: &str) -> bool {
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let of_port = name.split_once("_PORT_").is_some_and(|(_, rest)| digit(rest));
    let of_service = name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT");
    !name.contains("__") && (of_service || of_port || name.ends_with("_PORT") && value.contains("://"))
}
