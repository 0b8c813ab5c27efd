//! The result of a compilation, as text and as JSON.

use std::fmt::Write;
use std::path::Path;

use quarterdeck_compiler::{Compilation, Severity, Style, render, render_fault, to_json};
use quarterdeck_contracts::handler::HandlerFault;
use quarterdeck_contracts::{CompiledTool, Provider, estimate_tokens};
use quarterdeck_runtime::Snapshot;
use serde_json::{Value, json};

use crate::environment;
use crate::terminal::{are_messages_logged, count, info, paint, table, warn};

/// Prints every problem with its source excerpt.
pub(crate) fn problems(compilation: &Compilation, tools: &Path) {
    let style = environment::style_of_stderr();
    let folder = tools.to_string_lossy();
    for diagnostic in &compilation.diagnostics {
        match (are_messages_logged(), diagnostic.severity) {
            (false, _) => info(&format!("{}\n", render(diagnostic, &folder, style))),
            (true, Severity::Error) => tracing::error!("{}", render(diagnostic, &folder, Style::Plain)),
            (true, _) => tracing::warn!("{}", render(diagnostic, &folder, Style::Plain)),
        }
    }
}

/// Prints what went wrong inside a handler, as problems of a build are printed.
pub(crate) fn fault(fault: &HandlerFault, tools: &Path) {
    info(&format!("{}\n", render_fault(fault, &tools.to_string_lossy(), environment::style_of_stderr())));
}

/// Warns of the tools that cannot run here.
pub(crate) fn left_out(snapshot: &Snapshot, tools: &Path) {
    for problem in snapshot.left_out() {
        let tool = problem.left_out_tool().unwrap_or_default();
        match problem.fault() {
            Some(found) => {
                warn(&format!("{tool} is left out, because its handler cannot be loaded:"));
                fault(found, tools);
            }
            None => warn(&format!("{tool} is left out: {}", problem.reason())),
        }
    }
}

/// A line for each tool.
pub(crate) fn lines(compilation: &Compilation) -> String {
    let style = environment::style_of_stdout();
    let rows: Vec<_> = compilation
        .tools
        .iter()
        .map(|tool| {
            let compiled = compiled(compilation, &tool.folder);
            let (mark, colour) = match (tool.errors, tool.warnings) {
                (0, 0) => ("ok", "32"),
                (0, _) => ("warn", "33"),
                _ => ("fail", "31"),
            };
            let found = match (tool.errors, tool.warnings) {
                (0, 0) => String::new(),
                (0, warnings) => count(warnings, "warning"),
                (errors, 0) => count(errors, "error"),
                (errors, warnings) => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
            };
            vec![
                paint(&format!("{mark:4}"), colour, style),
                compiled.map_or(tool.folder.clone(), |tool| tool.metadata.tool_id.to_string()),
                compiled.map_or(String::new(), |tool| tool.metadata.version.clone()),
                compiled.map_or(String::new(), |tool| format!("{} tokens", cost(tool))),
                found,
            ]
        })
        .collect();
    table(&rows)
}

pub(crate) fn totals(compilation: &Compilation) -> String {
    let of = |severity| compilation.diagnostics.iter().filter(|problem| problem.severity == severity).count();
    let lossy = compilation.artifact.iter().flat_map(|artifact| &artifact.tools);
    let lossy = lossy.filter(|tool| !tool.lossy.is_empty()).count();
    let mut line = format!(
        "{}, {}, {}",
        count(compilation.tools.len(), "tool"),
        count(of(Severity::Error), "error"),
        count(of(Severity::Warning), "warning"),
    );
    if lossy > 0 {
        let _ = write!(line, ", {lossy} with a lossy conversion (`quarterdeck describe TOOL` shows it)");
    }
    line
}

pub(crate) fn as_json(compilation: &Compilation, written_to: Option<&Path>) -> Value {
    let of = |severity| compilation.diagnostics.iter().filter(|problem| problem.severity == severity).count();
    let tools: Vec<_> = compilation
        .tools
        .iter()
        .map(|tool| {
            let compiled = compiled(compilation, &tool.folder);
            json!({
                "folder": tool.folder,
                "toolId": compiled.map(|tool| &tool.metadata.tool_id),
                "version": compiled.map(|tool| &tool.metadata.version),
                "hash": compiled.map(|tool| &tool.hash),
                "errors": tool.errors,
                "warnings": tool.warnings,
                "lossy": compiled.map(|tool| &tool.lossy),
            })
        })
        .collect();
    let artifact = compilation.artifact.as_ref();
    json!({
        "ok": artifact.is_some(),
        "errors": of(Severity::Error),
        "warnings": of(Severity::Warning),
        "version": artifact.map(|artifact| &artifact.version),
        "contentHash": artifact.map(|artifact| &artifact.content_hash),
        "gitCommit": artifact.and_then(|artifact| artifact.git_commit.as_ref()),
        "written": written_to,
        "tools": tools,
        "diagnostics": compilation.diagnostics.iter().map(to_json).collect::<Vec<_>>(),
    })
}

/// Estimated tokens of a tool's declaration and guide together.
fn cost(tool: &CompiledTool) -> usize {
    declaration_tokens(tool) + estimate_tokens(tool.documentation.chars().count())
}

/// Estimated tokens of a tool's declaration, in the plainest form.
pub(crate) fn declaration_tokens(tool: &CompiledTool) -> usize {
    tool.provider_schemas
        .get(&Provider::Openai)
        .map_or(0, |declaration| estimate_tokens(declaration.to_string().chars().count()))
}

fn compiled<'a>(compilation: &'a Compilation, folder: &str) -> Option<&'a CompiledTool> {
    let tools = compilation.artifact.as_ref()?.tools.iter();
    tools.into_iter().find(|tool| tool.handler.path.split('/').next() == Some(folder))
}
