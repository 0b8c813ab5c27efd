//! Provider adapters: each a pure function from a definition to the provider's JSON, in its own file.
//!
//! A form of declarations is one file, and one entry in `Form::of`.

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

type Adapter = fn(&Definition) -> Result<AdaptedTool, Vec<Refusal>>;

/// What is known about a form. Nothing else asks which provider it is.
pub(crate) struct Form {
    adapt: Adapter,
    /// Whether its dialect has the word `nullable`, which plain JSON Schema has not.
    has_nullable: bool,
    /// An extra: a tool that cannot be said in this form is declared in another one, and that is no problem.
    pub(crate) is_optional: bool,
    /// How many tools the provider takes at once, and its name for a message about that.
    pub(crate) max_tools: Option<(usize, &'static str)>,
}

impl Form {
    pub(crate) fn of(provider: Provider) -> Self {
        let plain = |adapt| Self { adapt, has_nullable: false, is_optional: false, max_tools: None };
        match provider {
            Provider::Openai => plain(openai::adapt),
            Provider::OpenaiStrict => Self { is_optional: true, ..plain(openai_strict::adapt) },
            Provider::GeminiNative => Self { has_nullable: true, ..plain(gemini_native::adapt) },
            Provider::GeminiJsonSchema => {
                Self { max_tools: Some((512, "Gemini")), ..plain(gemini_json_schema::adapt) }
            }
            Provider::Anthropic => plain(anthropic::adapt),
            Provider::Mcp => plain(mcp::adapt),
        }
    }
}

/// The declaration of a tool in a provider's form, or every reason why there is none.
pub fn adapt(provider: Provider, definition: &Definition) -> Result<AdaptedTool, Vec<Refusal>> {
    let form = Form::of(provider);
    if form.has_nullable {
        return (form.adapt)(definition);
    }
    let parameters = nullable::spell_out(&definition.parameters);
    (form.adapt)(&Definition { metadata: definition.metadata.clone(), parameters })
}
