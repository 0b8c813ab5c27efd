//! Reads keys one by one, and keeps of each what it takes, its value and its origin. The list of all keys, the
//! reference page and the search for unknown keys follow from that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value as Json;

use super::kinds::{Kind, secret_file};
use super::origin::Origin;
use super::problem::Problem;
use super::raw::{RawConfig, Variables};

/// One key, as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) key: String,
    pub(crate) detail: Detail,
    pub(crate) about: String,
    pub(crate) origin: Origin,
}

#[derive(Debug, Clone)]
pub(crate) enum Detail {
    /// Value and default as they would be written; null where there is none.
    Setting { value: Json, default: Json, takes: String },
    /// A secret, which itself is never in a row.
    Secret { is_set: bool, fallback: &'static str },
}

/// A table of the file.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) table: &'static str,
    pub(crate) about: &'static str,
    /// Index of its first row.
    pub(crate) from: usize,
    /// How it is written when the operator chooses its keys.
    pub(crate) open: Option<OpenTable>,
}

/// A table whose keys, or whose own name, the operator chooses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenTable {
    /// A sentence for the reference page.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test writes the reference page"))]
    pub(crate) form: &'static str,
    /// Lines for the example file.
    pub(crate) example: &'static str,
    /// Whether the operator chooses its name; then the example has a table of its own.
    pub(crate) is_template: bool,
}

pub(crate) struct Reader {
    pub(super) raw: RawConfig,
    pub(crate) variables: Variables,
    pub(crate) rows: Vec<Row>,
    pub(crate) sections: Vec<Section>,
    pub(crate) problems: Vec<Problem>,
    /// What keeps a server from starting though every value is valid, such as a missing key. Other commands run.
    pub(crate) serve_problems: Vec<Problem>,
    /// What makes the configured chat model unusable. A server rehearses instead, and says so.
    pub(crate) model_problems: Vec<Problem>,
    /// What makes a configured speech engine unusable. A server starts without it, and says so.
    pub(crate) voice_problems: Vec<Problem>,
    /// Tables whose keys the operator chooses.
    pub(super) open: Vec<String>,
}

/// Declares the keys of the current table: name, what it takes, the field that it sets, and a description. The
/// default is the field's value, so a key of a library has the library's own.
macro_rules! settings {
    ($from:ident; $($name:literal: $kind:expr => $target:expr, $about:expr;)+) => {
        $($from.set($name, $kind, &mut $target, $about);)+
    };
}
pub(super) use settings;

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
            model_problems: Vec::new(),
            voice_problems: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Begins a table: names that follow are its keys.
    pub(crate) fn table(&mut self, table: &'static str, about: &'static str) {
        self.sections.push(Section { table, about, from: self.rows.len(), open: None });
    }

    /// Begins a table whose keys, or whose own name, the operator chooses.
    pub(crate) fn open_table(&mut self, table: &'static str, about: &'static str, open: OpenTable) {
        self.sections.push(Section { table, about, from: self.rows.len(), open: Some(open) });
    }

    /// Reads a key into `target`, which holds the default. A value that is refused becomes a problem.
    pub(crate) fn set<T>(&mut self, name: &str, kind: Kind<T>, target: &mut T, about: &str) {
        let default = (kind.show)(target);
        if let Some(value) = self.read(name, &kind, default, about) {
            *target = value;
        }
    }

    /// Reads a key that has no default.
    pub(crate) fn optional<T>(&mut self, name: &str, kind: Kind<T>, about: &str) -> Option<T> {
        self.read(name, &kind, Json::Null, about)
    }

    /// Reads a key by its whole name, for tables that the operator names.
    pub(crate) fn optional_key<T>(&mut self, key: &str, kind: Kind<T>, about: &str) -> Option<T> {
        self.read_key(key.to_owned(), &kind, Json::Null, about)
    }

    fn read<T>(&mut self, name: &str, kind: &Kind<T>, default: Json, about: &str) -> Option<T> {
        let table = self.sections.last().map_or("", |section| section.table);
        self.read_key(format!("{table}.{name}"), kind, default, about)
    }

    fn read_key<T>(&mut self, key: String, kind: &Kind<T>, default: Json, about: &str) -> Option<T> {
        let raw = self.raw.keys.remove(&key);
        let origin = raw.as_ref().map_or(Origin::Default, |raw| raw.origin.clone());
        let read = match raw.map(|raw| (kind.read)(&raw.value)) {
            None => None,
            Some(Ok(value)) => Some(value),
            Some(Err(found)) => {
                let message = format!("`{key}` is {found}; it takes {}", kind.takes);
                self.problems.push(Problem { origin: origin.clone(), message, help: None });
                None
            }
        };
        let value = read.as_ref().map_or_else(|| default.clone(), &kind.show);
        let detail = Detail::Setting { value, default, takes: kind.takes.clone() };
        self.rows.push(Row { key, detail, about: about.into(), origin });
        read
    }

    /// Reads the current table, whose keys the operator chooses and whose values are paths of secrets.
    pub(crate) fn named_secret_files(&mut self, about: &str) -> BTreeMap<String, PathBuf> {
        self.named(about, secret_file)
    }

    /// Reads what is left of the current table, whose keys the operator chooses.
    pub(crate) fn named<T>(&mut self, about: &str, kind: impl Fn() -> Kind<T>) -> BTreeMap<String, T> {
        let table = self.sections.last().map_or("", |section| section.table);
        self.open.push(table.to_owned());
        let prefix = format!("{table}.");
        let names = self.raw.keys.keys().filter_map(|key| key.strip_prefix(&prefix));
        let names: Vec<String> = names.map(String::from).collect();
        let mut named = BTreeMap::new();
        for name in names {
            if let Some(value) = self.optional(&name, kind(), about) {
                if is_name(&name) {
                    named.insert(name, value);
                } else {
                    let help = Some("use letters, digits, `-` and `_`".into());
                    let message = format!("{name:?} cannot be a name in `{table}`");
                    self.add_problem(&format!("{prefix}{name}"), message, help);
                }
            }
        }
        named
    }

    /// The tables of the file below one, whose names the operator chooses.
    pub(crate) fn tables_below(&self, table: &str) -> Vec<String> {
        let prefix = format!("{table}.");
        let below = self.raw.keys.keys().filter_map(|key| key.strip_prefix(&prefix)?.split_once('.'));
        let names: BTreeSet<&str> = below.map(|(name, _)| name).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Where the value of a key that was read came from.
    pub(crate) fn origin(&self, key: &str) -> Origin {
        self.rows.iter().find(|row| row.key == key).map_or(Origin::Default, |row| row.origin.clone())
    }

    /// Whether a key that was read has a value that is not the default.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.origin(key) != Origin::Default
    }

    /// The origin of a key that is yet to be read.
    pub(crate) fn raw_origin(&self, key: &str) -> Option<Origin> {
        self.raw.keys.get(key).map(|raw| raw.origin.clone())
    }

    /// Sets the value that is listed for a key whose default depends on others.
    pub(crate) fn set_effective(&mut self, key: &str, value: impl Into<Json>, from: Option<Origin>) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.key == key) {
            if let Detail::Setting { value: effective, .. } = &mut row.detail {
                *effective = value.into();
            }
            row.origin = from.unwrap_or_else(|| row.origin.clone());
        }
    }

    /// How many problems there are so far.
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.problems.len(), self.serve_problems.len())
    }

    /// Makes the problems since a mark ones of the model. What was asked for by a flag stays: it is not passed over.
    pub(crate) fn take_model_problems(&mut self, since: (usize, usize)) -> bool {
        let of_values = self.problems.split_off(since.0);
        let of_serving = self.serve_problems.split_off(since.1);
        let (asked, of_model): (Vec<_>, Vec<_>) = of_values
            .into_iter()
            .chain(of_serving)
            .partition(|problem| matches!(problem.origin, Origin::Flag(_)));
        self.serve_problems.extend(asked);
        let is_any = !of_model.is_empty();
        self.model_problems.extend(of_model);
        is_any
    }

    /// Makes what would keep a server from starting since a mark a problem of its voice alone.
    pub(crate) fn take_voice_problems(&mut self, since: (usize, usize)) -> bool {
        let of_serving = self.serve_problems.split_off(since.1);
        let is_any = !of_serving.is_empty();
        self.voice_problems.extend(of_serving);
        is_any
    }

    pub(crate) fn add_problem(&mut self, key: &str, message: String, help: Option<String>) {
        self.problems.push(Problem { origin: self.origin(key), message, help });
    }

    /// Adds a problem that keeps only a server from starting.
    pub(crate) fn add_serve_problem(&mut self, key: &str, message: String, help: Option<String>) {
        self.serve_problems.push(Problem { origin: self.origin(key), message, help });
    }
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}
