//! OpenAI functions: the parameters as they are.

use quarterdeck_contracts::Definition;
use serde_json::json;

use super::{Adapted, Refusal};

pub(super) fn adapt(definition: &Definition) -> Result<Adapted, Vec<Refusal>> {
    let declaration = json!({
        "type": "function",
        "function": {
            "name": definition.metadata.tool_id,
            "description": definition.metadata.description,
            "parameters": definition.parameters,
        },
    });
    Ok(Adapted { declaration, losses: Vec::new() })
}
