//! Gemini with `parametersJsonSchema`: the same declaration, carrying JSON Schema as it is.

use quarterdeck_contracts::Definition;
use serde_json::json;

use super::{AdaptedTool, Refusal};

pub(super) fn adapt(definition: &Definition) -> Result<AdaptedTool, Vec<Refusal>> {
    let declaration = json!({
        "name": definition.metadata.tool_id,
        "description": definition.metadata.description,
        "parametersJsonSchema": definition.parameters,
    });
    Ok(AdaptedTool { declaration, losses: Vec::new() })
}
