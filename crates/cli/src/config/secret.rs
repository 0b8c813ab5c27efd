//! Secrets: read from the environment or from files, never printed.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::kinds::{BaseUrl, FILE, Kind, Optional};
use super::origin::Origin;
use super::problem::Problem;
use super::reader::{Detail, Reader, Row};
use super::value::Value;

/// A text that nobody may see. It has no way to be shown but [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

/// No key is longer.
const MAX_BYTES: u64 = 64 << 10;

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for whoever sends it or compares with it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Reads a secret that is the whole text of a file, but for white space around it.
    ///
    /// The message does not name the file: somebody may have written the secret where its file's name belongs.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let mut bytes = Vec::new();
        let file = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
        file.map_err(|error| format!("names a file that cannot be read: {error}"))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err("names a file that is too large to be a secret".into());
        }
        let text = String::from_utf8(bytes).map_err(|_| "names a file that is not UTF-8 text".to_owned())?;
        match text.trim() {
            "" => Err("names a file that is empty".into()),
            secret => Ok(Self::new(secret)),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Reader {
    /// Reads the name of a file that holds a secret. What was written is not repeated if it is wrong.
    pub(super) fn read_secret_path(&mut self, key: &str, about: &str) -> Option<PathBuf> {
        self.read(key, Optional(SecretPath), Value::Absent, about)
    }

    /// Takes a secret from the first variable that is set, or else from the file that `file_key` names.
    pub(crate) fn secret(
        &mut self,
        key: &str,
        variables: &[&str],
        (file_key, file): (&str, Option<&Path>),
        about: &str,
    ) -> Option<Secret> {
        let of_variable = self
            .variables
            .first(variables)
            .map(|(name, text)| (Secret::new(text.trim()), Origin::Variable(name.into())));
        if let (Some(_), Some(path)) = (&of_variable, file) {
            self.skip_secret_file(file_key, path);
        }
        let found = of_variable.or_else(|| {
            let path = file?;
            match Secret::read(path) {
                Ok(secret) => Some((secret, Origin::SecretFile(path.display().to_string()))),
                Err(error) => {
                    let help = "write the name of a file that holds the secret, not the secret itself";
                    self.block_serve(file_key, format!("`{file_key}` {error}"), Some(help.into()));
                    None
                }
            }
        });
        let (secret, origin) =
            found.map_or((None, Origin::Default), |(secret, origin)| (Some(secret), origin));
        let detail = Detail::Secret { is_set: secret.is_some(), fallback: "not set" };
        self.rows.push(Row { key: key.into(), detail, about: about.into(), origin });
        secret
    }

    /// A file that need not be read need not be there, but then what was written is perhaps not the name of one.
    pub(super) fn skip_secret_file(&mut self, file_key: &str, path: &Path) {
        if !path.is_file() {
            self.set_effective(file_key, "(no such file)", None);
        }
    }

    /// Puts down what happens without a secret.
    pub(super) fn set_fallback(&mut self, key: &str, instead: &'static str) {
        let row = self.rows.iter_mut().find(|row| row.key == key);
        if let Some(Row { detail: Detail::Secret { fallback, .. }, .. }) = row {
            *fallback = instead;
        }
    }

    /// Refuses a secret that somebody could guess, or that no header can carry.
    pub(super) fn check_strength(&mut self, key: &str, secret: Option<&Secret>, characters: usize) {
        if secret.is_some_and(|secret| secret.expose().contains(char::is_control)) {
            self.block_serve(key, format!("`{key}` has more than one line"), None);
        }
        if secret.is_some_and(|secret| secret.expose().len() < characters) {
            let message =
                format!("this secret is too short for `{key}`, which takes {characters} characters or more");
            self.block_serve(key, message, Some("`openssl rand -hex 32` makes a good one".into()));
        }
    }

    /// Refuses a provider's address that came from a variable of the provider's own tools.
    pub(super) fn check_url(&mut self, url: &str, origin: Origin) {
        let kind = BaseUrl(&["http", "https"]);
        if let Err(found) = kind.read(&Value::Untyped(url.into())) {
            let message = format!("it is {found}; it takes {}", kind.takes());
            self.serve_problems.push(Problem { origin, message, help: None });
        }
    }
}

/// The name of a file that holds a secret.
struct SecretPath;

impl Kind for SecretPath {
    type Out = PathBuf;

    fn takes(&self) -> String {
        "the path of a file that holds the secret".into()
    }

    fn read(&self, value: &Value) -> Result<PathBuf, String> {
        FILE.read(value).map_err(|_| "not a path".into())
    }

    fn show(&self, out: &PathBuf) -> Json {
        FILE.show(out)
    }
}
