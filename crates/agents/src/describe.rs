//! `describe_tool`: one guide at a time, for prompts that carry only summaries.

use std::sync::Arc;
use std::time::SystemTime;

use quarterdeck_contracts::{CallArguments, ErrorType, ModelCall, ToolError, ToolResponse};
use quarterdeck_runtime::Session;
use serde_json::{Value, json};

pub(crate) const NAME: &str = "describe_tool";

/// How often the same guide is given in a turn.
const MAX_REPEATS: usize = 2;

/// Its declaration, in the form of the model whose `declare` is given.
pub(crate) fn declaration(declare: impl FnOnce(&str, &str, &Value) -> Value) -> Value {
    let description =
        "Returns the guide of one tool: what it is for, its parameters, examples and mistakes to avoid.";
    let parameters = json!({
        "type": "object",
        "properties": { "tool_id": { "type": "string", "description": "The id of the tool." } },
        "required": ["tool_id"],
        "additionalProperties": false,
    });
    declare(NAME, description, &parameters)
}

/// Answers a call of it. `before` are the guides that were given in this turn.
pub(crate) fn answer(
    session: &Session,
    call: &ModelCall,
    before: &mut Vec<String>,
    now: SystemTime,
) -> Arc<ToolResponse> {
    let snapshot = session.snapshot();
    let refuse = |error: ToolError| Arc::new(snapshot.refuse(NAME, error, now));
    let id = match &call.arguments {
        CallArguments::Json(arguments) => arguments["tool_id"].as_str(),
        CallArguments::Broken(_) => None,
    };
    let Some(id) = id else {
        return refuse(ToolError::new(ErrorType::Validation, "Say which tool, as `tool_id`."));
    };
    if before.iter().filter(|given| *given == id).count() >= MAX_REPEATS {
        let error = ToolError::new(ErrorType::LoopDetected, format!("The guide of {id} was given already."));
        return refuse(error.with_suggestion("Use what it says, or answer without the tool."));
    }
    before.push(id.to_owned());
    let found = session.available_tools().find(|tool| tool.metadata().tool_id.as_str() == id);
    let Some(tool) = found else {
        let known: Vec<_> = session.available_tools().map(|tool| tool.metadata().tool_id.as_str()).collect();
        let error = ToolError::new(ErrorType::NotFound, format!("There is no tool called {id} here."));
        return refuse(error.with_suggestion(format!("The tools are: {}.", known.join(", "))));
    };
    let data = json!({ "tool_id": id, "guide": tool.documentation() });
    Arc::new(snapshot.answer(NAME, data, now))
}
