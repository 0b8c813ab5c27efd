//! Secrets: read from the environment or from files, never printed.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use quarterdeck_transports::Secret;

use super::kinds::{base_url, secret_file};
use super::origin::Origin;
use super::problem::Problem;
use super::reader::{Detail, Reader, Row};
use super::value::Value;

const MAX_BYTES: u64 = 64 << 10;

/// Reads a secret that is the whole text of a file, without white space around it.
///
/// The error does not name the file: the operator may have written the secret where its path belongs.
fn read_file(path: &Path) -> Result<Secret, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    file.map_err(|error| format!("names a file that cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err("names a file that is too large to be a secret".into());
    }
    let text = String::from_utf8(bytes).map_err(|_| "names a file that is not UTF-8 text".to_owned())?;
    match Secret::from(text) {
        secret if secret.is_empty() => Err("names a file that is empty".into()),
        secret => Ok(secret),
    }
}

impl Reader {
    /// Declares a secret of the current table with the key `NAME_file`, which `about` describes. Answers with the
    /// secret and the path of the file.
    pub(super) fn secret(
        &mut self,
        name: &str,
        variables: &[&str],
        about: &str,
        way_out: &str,
    ) -> (Option<Secret>, Option<PathBuf>) {
        let file = self.optional(&format!("{name}_file"), secret_file(), about);
        let table = self.sections.last().map_or("", |section| section.table);
        let (key, file_key) = (format!("{table}.{name}"), format!("{table}.{name}_file"));
        (self.take_secret(&key, variables, (&file_key, file.as_deref()), way_out), file)
    }

    /// Takes a secret from the first variable that is set, or else from the file that `file_key` names.
    pub(super) fn take_secret(
        &mut self,
        key: &str,
        variables: &[&str],
        (file_key, file): (&str, Option<&Path>),
        way_out: &str,
    ) -> Option<Secret> {
        let from_variable = self
            .variables
            .first(variables)
            .map(|(name, text)| (Secret::from(text), Origin::Variable(name.into())));
        if let (Some(_), Some(path)) = (&from_variable, file) {
            self.skip_secret_file(file_key, path);
        }
        let found = from_variable.or_else(|| {
            let path = file?;
            match read_file(path) {
                Ok(secret) => Some((secret, Origin::SecretFile(path.display().to_string()))),
                Err(error) => {
                    let help = "write the name of a file that holds the secret, not the secret itself";
                    self.add_serve_problem(file_key, format!("`{file_key}` {error}"), Some(help.into()));
                    None
                }
            }
        });
        let (secret, origin) =
            found.map_or((None, Origin::Default), |(secret, origin)| (Some(secret), origin));
        let detail = Detail::Secret { is_set: secret.is_some(), fallback: "not set" };
        self.rows.push(Row { key: key.into(), detail, about: way_out.into(), origin });
        secret
    }

    /// A file that is not read need not exist; but then its key may hold the secret itself, and is not shown.
    pub(super) fn skip_secret_file(&mut self, file_key: &str, path: &Path) {
        if !path.is_file() {
            self.set_effective(file_key, "(no such file)", None);
        }
    }

    /// What is listed in place of a secret that is not set.
    pub(super) fn set_fallback(&mut self, key: &str, instead: &'static str) {
        let row = self.rows.iter_mut().find(|row| row.key == key);
        if let Some(Row { detail: Detail::Secret { fallback, .. }, .. }) = row {
            *fallback = instead;
        }
    }

    /// Refuses a secret that could be guessed, or that no header can carry.
    pub(super) fn check_strength(&mut self, key: &str, secret: Option<&Secret>, min_chars: usize) {
        let Some(text) = secret.map(Secret::expose) else { return };
        if text.contains(char::is_control) {
            self.add_serve_problem(key, format!("`{key}` has more than one line"), None);
        }
        if text.len() < min_chars {
            let message =
                format!("this secret is too short for `{key}`, which takes {min_chars} characters or more");
            self.add_serve_problem(key, message, Some("`openssl rand -hex 32` makes a good one".into()));
        }
    }

    /// Refuses a provider's address that came from a variable of the provider's own tools.
    pub(super) fn check_url(&mut self, url: &str, origin: Origin) {
        let kind = base_url(&["http", "https"]);
        if let Err(found) = (kind.read)(&Value::Untyped(url.into())) {
            let message = format!("it is {found}; it takes {}", kind.takes);
            self.serve_problems.push(Problem { origin, message, help: None });
        }
    }
}
