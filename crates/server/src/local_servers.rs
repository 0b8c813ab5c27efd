//! Model servers on this machine that could answer instead of the built-in model, for the page.

use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;

/// A model server on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct LocalServer {
    /// The program, such as Ollama.
    pub name: String,
    /// Where it speaks OpenAI's protocol.
    pub url: String,
    pub models: Vec<String>,
    /// The environment variable that uses it from the next start, with its value.
    pub variable: String,
}

/// Those that were found last.
#[derive(Debug, Default)]
pub(crate) struct LocalServers(Mutex<Vec<LocalServer>>);

impl LocalServers {
    pub(crate) fn list(&self) -> Vec<LocalServer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, found: Vec<LocalServer>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }
}
