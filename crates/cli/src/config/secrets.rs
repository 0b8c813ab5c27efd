//! How secrets are read: from variables, and from files that keys name.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::kinds::{BaseUrl, FILE, Kind, Maybe};
use super::origin::Origin;
use super::problem::Problem;
use super::reader::{Reader, Row, What};
use super::secret::Secret;
use super::value::Value;

impl Reader {
    /// Reads the name of a file that holds a secret. What was written is not repeated if it is wrong.
    pub(super) fn read_hidden(&mut self, key: &str, about: &str) -> Option<PathBuf> {
        self.read(key, Maybe(HiddenFile), Value::Absent, about)
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
        let found = of_variable.or_else(|| {
            let path = file?;
            match Secret::read(path) {
                Ok(secret) => Some((secret, Origin::SecretFile(path.display().to_string()))),
                Err(error) => {
                    let help = "write the name of a file that holds the secret, not the secret itself";
                    self.problem(file_key, format!("`{file_key}` {error}"), Some(help.into()));
                    None
                }
            }
        });
        let (secret, origin) =
            found.map_or((None, Origin::Default), |(secret, origin)| (Some(secret), origin));
        let what = What::Secret { is_set: secret.is_some() };
        self.rows.push(Row { key: key.into(), what, about: about.into(), origin });
        secret
    }

    /// Refuses a secret that somebody could guess.
    pub(super) fn at_least(&mut self, key: &str, secret: Option<&Secret>, characters: usize) {
        if secret.is_some_and(|secret| secret.expose().len() < characters) {
            let message =
                format!("this secret is too short for `{key}`, which takes {characters} characters or more");
            self.problem(key, message, Some("`openssl rand -hex 32` makes a good one".into()));
        }
    }

    /// Refuses a provider's address that came from a variable of the provider's own tools.
    pub(super) fn check_url(&mut self, url: &str, origin: Origin) {
        let kind = BaseUrl(&["http", "https"]);
        if let Err(found) = kind.read(&Value::Words(url.into())) {
            let message = format!("it is {found}; it takes {}", kind.takes());
            self.problems.push(Problem { origin, message, help: None });
        }
    }
}

/// The name of a file that holds a secret.
struct HiddenFile;

impl Kind for HiddenFile {
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
