//! OpenAI functions: the parameters as they are.

use quarterdeck_contracts::Definition;
use serde_json::json;

use super::{AdaptedTool, Refusal};

pub(super) fn adapt(definition: &Definition) -> Result<AdaptedTool, Vec<Refusal>> {
    let declaration = json!({
        "type": "function",
        "function": {
            "name": definition.metadata.tool_id,
            "description": definition.metadata.description,
            "parameters": definition.parameters,
        },
    });
    Ok(AdaptedTool { declaration, losses: Vec::new() })
}
