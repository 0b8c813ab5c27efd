//! Gemini's own schema dialect.
//!
//! The dialect has upper-case types and few keywords. Sixteen rules say what becomes of all others; where they are
//! silent, the choice is written beside the code that makes it. What the dialect cannot say is noted, so that
//! nothing is dropped in silence, and arguments are always checked against the original schema: a form that admits
//! more is safe.

mod convert;
mod converter;
mod form;
mod limits;
mod node;
mod notes;
mod plain;
mod root;
mod union;
mod values;

use std::collections::BTreeMap;

use quarterdeck_contracts::Definition;
use serde_json::{Value, json};

use self::converter::Converter;
pub use self::plain::to_json_schema;
use super::{AdaptedTool, Refusal, losses};

/// Parameters in Gemini's dialect.
#[derive(Debug, Clone, PartialEq)]
pub struct GeminiParameters {
    /// Absent when the tool takes no arguments.
    pub parameters: Option<Value>,
    /// What was lost, by name, with the places in the original.
    pub notes: BTreeMap<&'static str, Vec<String>>,
    /// Names in it that the provider would refuse.
    pub refusals: Vec<Refusal>,
}

/// Converts `parameters`, or says why that is impossible.
pub fn convert(parameters: &Value) -> Result<GeminiParameters, Refusal> {
    let mut converter = Converter::new(parameters);
    let root = converter.convert_root()?;
    Ok(GeminiParameters {
        parameters: root.map(form::Single::into_json),
        notes: converter.notes.into_places(),
        refusals: converter.refusals,
    })
}

pub(super) fn adapt(definition: &Definition) -> Result<AdaptedTool, Vec<Refusal>> {
    let converted = convert(&definition.parameters).map_err(|refusal| vec![refusal])?;
    if !converted.refusals.is_empty() {
        return Err(converted.refusals);
    }
    let mut declaration = json!({
        "name": definition.metadata.tool_id,
        "description": definition.metadata.description,
    });
    // A declaration without parameters admits whatever an object is.
    let mut admitting = json!({ "type": "object" });
    if let Some(parameters) = converted.parameters {
        admitting = to_json_schema(&parameters);
        declaration["parameters"] = parameters;
    }
    let losses = losses::with_counter_examples(converted.notes, &definition.parameters, &admitting);
    Ok(AdaptedTool { declaration, losses })
}
