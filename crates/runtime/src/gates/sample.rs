//! Plain calls and plain facts, for the tests of the gates.

use quarterdeck_contracts::Mode;
use serde_json::json;

use super::*;
use crate::policy::Policy;

/// A tool as gates see it.
pub(super) struct Tool {
    pub(super) metadata: Metadata,
    pub(super) parameters: Schema,
    pub(super) source: Value,
}

/// A retrieval tool for both modes; `more` is put over its definition.
pub(super) fn tool(more: Value) -> Tool {
    let mut definition = json!({
        "toolId": "kb_search", "version": "1.0.0", "description": "d", "category": "retrieval",
        "sideEffects": "read_only", "idempotent": true, "requiresConfirmation": false,
        "allowedModes": ["text", "voice"], "latencyBudgetMs": 800,
    });
    let mut source = json!({
        "type": "object", "additionalProperties": false, "required": ["query"],
        "properties": {
            "query": { "type": "string", "minLength": 1, "description": "What." },
            "top_k": { "type": "integer", "minimum": 1, "maximum": 20, "default": 5, "description": "How many." },
        },
    });
    for (name, value) in more.as_object().unwrap() {
        match name.as_str() {
            "properties" => source["properties"] = value.clone(),
            _ => definition[name] = value.clone(),
        }
    }
    let metadata = serde_json::from_value(definition).unwrap();
    Tool { metadata, parameters: Schema::compile(&source).unwrap(), source }
}

/// A first call in a turn, which every gate passes.
pub(super) fn facts(mode: Mode) -> Facts {
    Facts {
        mode,
        redelivery: Redelivery::New,
        identical: 0,
        empty: 0,
        duplicate: Duplicate::No,
        calls: 0,
        retrieval: 0,
        budgets: *Policy::default().budgets(mode),
        client: Default::default(),
        present: Default::default(),
        is_nested: false,
        has_read_foreign_text: false,
        user_words: "".into(),
        topics: Default::default(),
    }
}

/// The names of the registry that samples are called in.
pub(super) fn known() -> Vec<String> {
    ["end_voice_session", "get_weather", "kb_read", "kb_search", "kb_search_all", "kb_search_old"]
        .map(str::to_owned)
        .to_vec()
}

/// Gives `with` the call as gates get it.
pub(super) fn subject<T>(
    name: &str,
    tool: Option<&Tool>,
    args: &mut Value,
    with: impl FnOnce(&mut Subject<'_>) -> T,
) -> T {
    let tool = tool.map(|tool| ToolView {
        metadata: &tool.metadata,
        parameters: &tool.parameters,
        source: &tool.source,
    });
    with(&mut Subject { name, args, tool, judged: None, known: &known })
}

/// One gate's decision about a call of `kb_search`, as text.
pub(super) fn decide(gate: &dyn Gate, tool: &Tool, args: &mut Value, facts: &Facts) -> String {
    subject("kb_search", Some(tool), args, |call| describe(&gate.judge(call, facts)))
}

pub(super) fn describe(decision: &Decision) -> String {
    match decision {
        Decision::Pass => "pass".into(),
        Decision::Change(it) => format!("{} from {} to {}", it.parameter, it.asked, it.given),
        Decision::Reserve(it) => format!("reserve one of {} in {} ms", it.calls, it.window_ms),
        Decision::Replay(which) => format!("replay {which:?}"),
        Decision::Refuse(error) => refusal(error),
        Decision::Confirm(_) => "ask".into(),
        Decision::Waive(_) => "waive".into(),
    }
}

/// A refusal in words. Nothing ran, so there is nothing to retry and nothing was changed.
pub(super) fn refusal(error: &ToolError) -> String {
    assert!(!error.retryable && error.partial_side_effects == Some(false), "{error:?}");
    let suggestion = error.suggestion.as_ref().map(|it| format!(" {it}")).unwrap_or_default();
    format!("{}: {}{suggestion}", error.kind, error.message)
}
