//! Anthropic's Messages API: JSON Schema, but with names of its own rules and nothing composed at the root.
//!
//! References are written out, because some of its surfaces refuse `$ref` anywhere; a recursive one stays.

use quarterdeck_contracts::Definition;
use serde_json::{Value, json};

use super::inline::{Inlined, inline};
use super::{AdaptedTool, Refusal};

pub(super) fn adapt(definition: &Definition) -> Result<AdaptedTool, Vec<Refusal>> {
    let inlined = inline(&definition.parameters).map_err(|refusal| vec![refusal])?;
    let refusals = root_refusals(&inlined);
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let declaration = json!({
        "name": definition.metadata.tool_id,
        "description": definition.metadata.description,
        "input_schema": inlined.schema,
    });
    Ok(AdaptedTool { declaration, losses: Vec::new() })
}

fn root_refusals(inlined: &Inlined<'_>) -> Vec<Refusal> {
    let schema = &inlined.schema;
    let mut refusals = Vec::new();
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        refusals.push(Refusal {
            at: String::new(),
            reason: "Anthropic wants `\"type\": \"object\"` here".to_owned(),
        });
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        if schema.get(keyword).is_some() {
            let reason = format!("Anthropic takes no `{keyword}` at the root of the parameters");
            refusals.push(Refusal { at: inlined.origin(&format!("/{keyword}")), reason });
        }
    }
    refusals
}
