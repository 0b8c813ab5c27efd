//! Reads keys one by one, and remembers of each what it is, what it came to and where that came from. So the list of
//! all keys, the reference page and the search for unknown keys need no second declaration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value as Json;

use super::kinds::Kind;
use super::origin::Origin;
use super::problem::Problem;
use super::raw::{RawConfig, Variables};
use super::value::Value;

/// One key, as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) key: String,
    pub(crate) detail: Detail,
    pub(crate) about: String,
    pub(crate) origin: Origin,
}

/// What a row holds.
#[derive(Debug, Clone)]
pub(crate) enum Detail {
    /// A value, the default as it would be written, and what else could stand there.
    Setting { value: Json, default: Json, takes: String },
    /// A secret, which is never in a row.
    Secret { is_set: bool, fallback: &'static str },
}

/// A table of the file.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) table: &'static str,
    pub(crate) about: &'static str,
    /// How many rows stand before it.
    pub(crate) from: usize,
}

/// Reads keys.
pub(crate) struct Reader {
    pub(super) raw: RawConfig,
    pub(crate) variables: Variables,
    pub(crate) rows: Vec<Row>,
    pub(crate) sections: Vec<Section>,
    /// What is wrong with what was said.
    pub(crate) problems: Vec<Problem>,
    /// What keeps a server from starting, though every word may be right: a key that is missing here, say.
    pub(crate) serve_problems: Vec<Problem>,
    /// Tables whose keys are names that people choose.
    pub(super) open: Vec<&'static str>,
}

impl Reader {
    pub(crate) fn new(raw: RawConfig, variables: Variables) -> Self {
        let damaged = variables.damaged().map(|name| Problem {
            origin: Origin::Variable(name.into()),
            message: "its value is not UTF-8 text".into(),
            help: None,
        });
        let problems = damaged.collect();
        Self {
            raw,
            variables,
            rows: Vec::new(),
            sections: Vec::new(),
            problems,
            serve_problems: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Begins a table.
    pub(crate) fn table(&mut self, table: &'static str, about: &'static str) {
        self.sections.push(Section { table, about, from: self.rows.len() });
    }

    /// Reads a key. What cannot be meant becomes a problem, and reading goes on with the default.
    pub(crate) fn read<K: Kind>(
        &mut self,
        key: &str,
        kind: K,
        default: impl Into<Value>,
        about: &str,
    ) -> K::Out {
        let default = default.into();
        let fallback = || match kind.read(&default) {
            Ok(out) => out,
            Err(found) => unreachable!("the default of {key} is {found}; it takes {}", kind.takes()),
        };
        let said = self.raw.keys.remove(key);
        let origin = said.as_ref().map_or(Origin::Default, |said| said.origin.clone());
        let out = match said.map(|said| kind.read(&said.value)) {
            None => fallback(),
            Some(Ok(out)) => out,
            Some(Err(found)) => {
                let message = format!("`{key}` is {found}; it takes {}", kind.takes());
                self.problems.push(Problem { origin: origin.clone(), message, help: None });
                fallback()
            }
        };
        let (value, default) = (kind.show(&out), kind.show(&fallback()));
        let detail = Detail::Setting { value, default, takes: kind.takes() };
        self.rows.push(Row { key: key.into(), detail, about: about.into(), origin });
        out
    }

    /// Reads a table whose keys are names that people choose, and whose values name files.
    pub(crate) fn read_named_files(&mut self, table: &'static str, about: &str) -> BTreeMap<String, PathBuf> {
        self.open.push(table);
        let prefix = format!("{table}.");
        let names: Vec<_> = self.raw.keys.keys().filter_map(|key| key.strip_prefix(&prefix)).collect();
        let names: Vec<String> = names.into_iter().map(String::from).collect();
        let mut files = BTreeMap::new();
        for name in names {
            let key = format!("{prefix}{name}");
            let before = self.problems.len();
            match self.read_secret_path(&key, about) {
                Some(path) if is_name(&name) => drop(files.insert(name, path)),
                _ if self.problems.len() > before => {}
                _ => self.add_problem(
                    &key,
                    format!("{name:?} cannot be a name in `{table}`"),
                    Some("use letters, digits, `-` and `_`".into()),
                ),
            }
        }
        files
    }

    /// Where the value of a key that was read came from.
    pub(crate) fn origin(&self, key: &str) -> Origin {
        self.rows.iter().find(|row| row.key == key).map_or(Origin::Default, |row| row.origin.clone())
    }

    /// Whether somebody said something about a key that was read.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.origin(key) != Origin::Default
    }

    /// Where somebody said something about a key that is yet to be read.
    pub(crate) fn raw_origin(&self, key: &str) -> Option<Origin> {
        self.raw.keys.get(key).map(|said| said.origin.clone())
    }

    /// Puts down what a key without a value came to.
    pub(crate) fn set_effective(&mut self, key: &str, value: impl Into<Json>, from: Option<Origin>) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.key == key) {
            if let Detail::Setting { value: settled, .. } = &mut row.detail {
                *settled = value.into();
            }
            row.origin = from.unwrap_or_else(|| row.origin.clone());
        }
    }

    /// The value of a key that was read cannot be meant.
    pub(crate) fn add_problem(&mut self, key: &str, message: String, help: Option<String>) {
        self.problems.push(Problem { origin: self.origin(key), message, help });
    }

    /// With a key that was read as it is, no server can start.
    pub(crate) fn block_serve(&mut self, key: &str, message: String, help: Option<String>) {
        self.serve_problems.push(Problem { origin: self.origin(key), message, help });
    }
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}
