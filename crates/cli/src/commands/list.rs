//! `quarterdeck list`.

use quarterdeck_contracts::{CompiledTool, estimate_tokens};
use serde_json::{Value, json};

use crate::arguments::{Format, ListOptions};
use crate::config::LocalConfig;
use crate::report::declaration_tokens;
use crate::terminal::{print, titled_table};
use crate::{ExitStatus, report, wire};

const COLUMNS: [&str; 9] =
    ["tool", "version", "category", "modes", "side effects", "confirm", "budget", "declaration", "guide"];

pub(crate) fn run(options: &ListOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let tools = options.tools.or(&config);
    let compilation = wire::compile_folder(tools, false)?;
    let Some(artifact) = &compilation.artifact else {
        report::problems(&compilation, tools);
        return Ok(ExitStatus::Problems);
    };
    match options.format {
        Format::Json => {
            let tools: Vec<_> = artifact.tools.iter().map(as_json).collect();
            print(&format!("{:#}\n", json!({ "version": artifact.version, "tools": tools })))?;
        }
        Format::Human => {
            print(&titled_table(&COLUMNS, artifact.tools.iter().map(row)))?;
        }
    }
    Ok(ExitStatus::Success)
}

fn row(tool: &CompiledTool) -> Vec<String> {
    let facts = as_json(tool);
    let word = |name: &str| match &facts[name] {
        Value::String(word) => word.clone(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    vec![
        word("toolId"),
        word("version"),
        word("category"),
        word("allowedModes"),
        word("sideEffects").replace('_', "-"),
        word("requiresConfirmation"),
        format!("{} ms", word("latencyBudgetMs")),
        format!("{} tokens", word("declarationTokens")),
        format!("{} tokens", word("guideTokens")),
    ]
}

fn as_json(tool: &CompiledTool) -> Value {
    let metadata = &tool.metadata;
    json!({
        "toolId": metadata.tool_id,
        "version": metadata.version,
        "category": metadata.category,
        "allowedModes": metadata.allowed_modes,
        "sideEffects": metadata.side_effects,
        "requiresConfirmation": metadata.requires_confirmation,
        "latencyBudgetMs": metadata.latency_budget_ms,
        "declarationTokens": declaration_tokens(tool),
        "guideTokens": estimate_tokens(tool.documentation.chars().count()),
        "summary": tool.summary,
    })
}
