//! The Model Context Protocol: the parameters as they are, and hints drawn from the metadata.

use quarterdeck_contracts::{Definition, Metadata, SideEffects};
use serde_json::{Value, json};

use super::{AdaptedTool, Refusal};

pub(super) fn adapt(definition: &Definition) -> Result<AdaptedTool, Vec<Refusal>> {
    let metadata = &definition.metadata;
    if definition.parameters.get("type").and_then(Value::as_str) != Some("object") {
        let reason = "MCP wants `\"type\": \"object\"` here".to_owned();
        return Err(vec![Refusal { at: String::new(), reason }]);
    }
    let mut declaration = json!({
        "name": metadata.tool_id,
        "title": title(metadata),
        "description": metadata.description,
        "inputSchema": definition.parameters,
    });
    // Structured content is always an object, so a schema of anything else cannot describe it.
    let returns = metadata.returns.as_ref();
    if let Some(returns) = returns.filter(|returns| returns.get("type").is_some_and(|kind| kind == "object"))
    {
        declaration["outputSchema"] = returns.clone();
    }
    declaration["annotations"] = annotations(metadata);
    Ok(AdaptedTool { declaration, losses: Vec::new() })
}

/// `kb_search` is `Kb search`.
fn title(metadata: &Metadata) -> String {
    let words: Vec<_> = metadata.tool_id.as_str().split('_').filter(|word| !word.is_empty()).collect();
    let mut title = words.join(" ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    title
}

/// A write counts as destructive: nothing in the metadata says that a tool only adds, and a client that is told so
/// wrongly would skip its warning.
fn annotations(metadata: &Metadata) -> Value {
    let writes = metadata.side_effects == SideEffects::Writes;
    json!({
        "readOnlyHint": !writes,
        "destructiveHint": writes,
        "idempotentHint": metadata.idempotent,
        "openWorldHint": !metadata.network.is_empty(),
    })
}
