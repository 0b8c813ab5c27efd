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
pub mod openai_compatible;
mod openai_strict;
mod place;
mod renaming;
mod walk;

use quarterdeck_contracts::{Definition, Loss, Provider};
use serde_json::Value;

use self::renaming::RenamedParameters;

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
    /// Which property names it takes. Others are renamed.
    takes_name: fn(&str) -> bool,
    /// An extra: a tool that cannot be said in this form is declared in another one, and that is no problem.
    pub(crate) is_optional: bool,
    /// How many tools the provider takes at once, and its name for a message about that.
    pub(crate) max_tools: Option<(usize, &'static str)>,
}

impl Form {
    pub(crate) fn of(provider: Provider) -> Self {
        let plain = |adapt| Self {
            adapt,
            has_nullable: false,
            takes_name: |_| true,
            is_optional: false,
            max_tools: None,
        };
        match provider {
            Provider::Openai => plain(openai::adapt),
            Provider::OpenaiStrict => Self { is_optional: true, ..plain(openai_strict::adapt) },
            Provider::OpenaiCompatible => plain(openai_compatible::adapt),
            Provider::GeminiNative => {
                Self { has_nullable: true, takes_name: names::gemini_native, ..plain(gemini_native::adapt) }
            }
            Provider::GeminiJsonSchema => {
                Self { max_tools: Some((512, "Gemini")), ..plain(gemini_json_schema::adapt) }
            }
            Provider::Anthropic => Self { takes_name: names::anthropic, ..plain(anthropic::adapt) },
            Provider::Mcp => plain(mcp::adapt),
        }
    }
}

/// The declaration of a tool in a provider's form, or every reason why there is none.
pub fn adapt(provider: Provider, definition: &Definition) -> Result<AdaptedTool, Vec<Refusal>> {
    let form = Form::of(provider);
    let parameters = match form.has_nullable {
        true => definition.parameters.clone(),
        false => nullable::spell_out(&definition.parameters),
    };
    let RenamedParameters { schema, renames, loss } = renaming::rename(parameters, form.takes_name);
    let definition = Definition { metadata: definition.metadata.clone(), parameters: schema };
    let adapted = (form.adapt)(&definition);
    // Places are told as they stand in the original.
    let restore = |at: &str| renames.pointer_to_original(at);
    let mut adapted = adapted.map_err(|refusals| -> Vec<Refusal> {
        refusals.into_iter().map(|refusal| Refusal { at: restore(&refusal.at), ..refusal }).collect()
    })?;
    for place in adapted.losses.iter_mut().flat_map(|loss| &mut loss.at) {
        *place = restore(place);
    }
    adapted.losses.extend(loss.and_then(|loss| renaming::without_dropped(loss, &adapted.declaration)));
    Ok(adapted)
}
