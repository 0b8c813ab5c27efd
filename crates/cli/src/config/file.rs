//! The configuration file: TOML, with the line of every key.

use std::fs::File;
use std::io::{ErrorKind, Read};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::origin::Origin;
use super::problem::Problem;
use super::raw::RawConfig;
use super::value::Value;

pub(crate) const DEFAULT_PATH: &str = "quarterdeck.toml";

const MAX_BYTES: u64 = 1 << 20;

pub(crate) enum ConfigFile {
    /// `quarterdeck.toml`, which need not exist.
    Default,
    /// One that a variable or a flag names.
    Named(String, Origin),
}

pub(crate) fn load_file(file: &ConfigFile, raw: &mut RawConfig) -> Result<(), Vec<Problem>> {
    let (path, origin) = match file {
        ConfigFile::Default => (DEFAULT_PATH, Origin::Default),
        ConfigFile::Named(path, origin) => (path.as_str(), origin.clone()),
    };
    let problem = |message: String| vec![Problem { origin: origin.clone(), message, help: None }];
    match read(path) {
        Ok(text) => parse_text(path, &text, raw),
        Err(error) if error.kind() == ErrorKind::NotFound && matches!(file, ConfigFile::Default) => Ok(()),
        Err(error) => Err(problem(format!("cannot read the configuration file {path}: {error}"))),
    }
}

fn read(path: &str) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(std::io::Error::other("it has more than a mebibyte"));
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not UTF-8 text"))
}

pub(crate) fn parse_text(path: &str, text: &str, raw: &mut RawConfig) -> Result<(), Vec<Problem>> {
    let lines = Lines { path, text };
    // The parser goes on after a mistake, but further errors often only follow from the first.
    let table = DeTable::parse(text).map_err(|error| {
        let origin = lines.origin(error.span().map_or(0, |span| span.start));
        vec![Problem { origin, message: format!("this is not TOML: {}", error.message()), help: None }]
    })?;
    lines.add_table("", table.get_ref(), raw);
    Ok(())
}

struct Lines<'a> {
    path: &'a str,
    text: &'a str,
}

impl Lines<'_> {
    fn origin(&self, at: usize) -> Origin {
        let before = self.text.as_bytes().iter().take(at);
        Origin::File { path: self.path.into(), line: 1 + before.filter(|byte| **byte == b'\n').count() }
    }

    fn add_table(&self, prefix: &str, table: &DeTable<'_>, raw: &mut RawConfig) {
        for (name, value) in table {
            let key = join(prefix, name.get_ref());
            let origin = self.origin(name.span().start);
            match value.get_ref() {
                DeValue::Table(inner) => {
                    raw.tables.push((key.clone(), origin));
                    self.add_table(&key, inner, raw);
                }
                _ => raw.set(key, as_value(value), origin),
            }
        }
    }
}

/// A name with a dot in it is not the same as two names; quoted, it matches no key.
fn join(prefix: &str, name: &str) -> String {
    let name = if name.contains('.') { format!("{name:?}") } else { name.to_owned() };
    if prefix.is_empty() { name } else { format!("{prefix}.{name}") }
}

fn as_value(value: &Spanned<DeValue<'_>>) -> Value {
    match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::Other("a number that is too large"),
        },
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Array(items) => Value::List(items.iter().map(as_value).collect()),
        DeValue::Float(_) => Value::Other("a number with a fraction"),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Table(_) => Value::Other("a table"),
    }
}
