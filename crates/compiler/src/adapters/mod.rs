//! Provider adapters: each a pure function from a definition to the provider's JSON, in its own file.
//!
//! Adding a provider is adding one file and one line in [`adapt`].

mod anthropic;
pub mod counter_example;
mod gemini_json_schema;
pub mod gemini_native;
mod inline;
mod losses;
mod mcp;
mod names;
mod nullable;
mod openai;
mod openai_strict;
mod place;
mod walk;

use quarterdeck_contracts::{Definition, Loss, Provider};
use serde_json::Value;

/// A declaration in a provider's form.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptedTool {
    /// What the provider is sent.
    pub declaration: Value,
    /// What that form does not say.
    pub losses: Vec<Loss>,
}

/// Why a provider cannot take a tool at all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// Where in the parameters, as a JSON pointer.
    pub at: String,
    /// One sentence.
    pub reason: String,
}

/// The declaration of a tool in a provider's form, or every reason why there is none.
pub fn adapt(provider: Provider, definition: &Definition) -> Result<AdaptedTool, Vec<Refusal>> {
    // Gemini's own dialect has the word `nullable`; all others read plain JSON Schema.
    if provider == Provider::GeminiNative {
        return gemini_native::adapt(definition);
    }
    let parameters = nullable::spell_out(&definition.parameters);
    let definition = &Definition { metadata: definition.metadata.clone(), parameters };
    match provider {
        Provider::Openai => openai::adapt(definition),
        Provider::OpenaiStrict => openai_strict::adapt(definition),
        Provider::GeminiNative => gemini_native::adapt(definition),
        Provider::GeminiJsonSchema => gemini_json_schema::adapt(definition),
        Provider::Anthropic => anthropic::adapt(definition),
        Provider::Mcp => mcp::adapt(definition),
    }
}
