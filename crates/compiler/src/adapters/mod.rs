//! Provider adapters: each a pure function from a definition to the provider's JSON, in its own file.
//!
//! Adding a provider is adding one file and one line in [`adapt`].

use quarterdeck_contracts::{Definition, Loss, Provider};
use serde_json::Value;

/// A declaration in a provider's form.
#[derive(Debug, Clone, PartialEq)]
pub struct Adapted {
    /// What the provider is sent.
    pub declaration: Value,
    /// What that form does not say.
    pub losses: Vec<Loss>,
}

/// Why a provider cannot take a tool at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where in the parameters, as a JSON pointer.
    pub at: String,
    /// One sentence.
    pub reason: String,
}
