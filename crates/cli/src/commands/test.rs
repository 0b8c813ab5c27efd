//! `quarterdeck test`.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use quarterdeck_compiler::render_fault;
use quarterdeck_runtime::Snapshot;
use serde_json::{Value, json};

use crate::arguments::{Format, TestOptions};
use crate::cases::{Difference, Report, run_tool};
use crate::config::{LocalConfig, McpServers};
use crate::handler_access::{LocalAccess, SecretSource};
use crate::local_session::LocalWorld;
use crate::recorded_fetches::RecordedFetches;
use crate::terminal::{paint, print};
use crate::{ExitStatus, environment, wire};

pub(crate) fn run(options: &TestOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let tools = options.tools.or(&config);
    let recorded = Arc::new(RecordedFetches::default());
    let access = LocalAccess {
        grants: config.grants.clone(),
        private_hosts: options.private_hosts.hosts.clone(),
        secrets: SecretSource::StandIn,
        recorded: recorded.clone(),
        servers: McpServers::new(),
    };
    let Some(registry) = wire::load_folder(tools, &access)? else { return Ok(ExitStatus::Problems) };
    let snapshot = registry.snapshot();
    let world = LocalWorld { snapshot: snapshot.clone(), recorded };
    let only = options.tool.as_ref().map(|tool| tool.replace('-', "_"));
    let is_wanted = |id: &str| only.as_deref().is_none_or(|only| only == id);
    let mut reports: Vec<_> = left_out(&snapshot).filter(|report| is_wanted(&report.tool)).collect();
    if let Some(id) = only.as_deref().filter(|id| snapshot.find(id).is_none() && reports.is_empty()) {
        bail!("there is no tool {id}; `quarterdeck list` shows them all");
    }
    let reports = wire::block_on(async {
        for tool in snapshot.tools() {
            if is_wanted(tool.metadata().tool_id.as_str()) {
                reports.extend(run_tool(&world, tool, tools).await);
            }
        }
        reports
    })?;
    let failed = reports.iter().filter(|report| report.difference.is_some()).count();
    match options.format {
        Format::Json => print(&format!("{:#}\n", as_json(&reports, failed)))?,
        Format::Human => print(&as_text(&reports, failed, tools))?,
    }
    Ok(if failed == 0 { ExitStatus::Success } else { ExitStatus::Problems })
}

/// A tool that cannot run has failed, whatever its cases are.
fn left_out(snapshot: &Snapshot) -> impl Iterator<Item = Report> {
    snapshot.left_out().iter().filter_map(|problem| {
        let fault = problem.fault().cloned();
        let text = match fault {
            Some(_) => "the handler cannot be loaded".to_owned(),
            None => problem.reason(),
        };
        let tool = problem.left_out_tool()?.to_owned();
        Some(Report { tool, name: "the handler".into(), difference: Some(Difference { text, fault }) })
    })
}

fn as_text(reports: &[Report], failed: usize, tools: &Path) -> String {
    let style = environment::style_of_stdout();
    let mut text = String::new();
    for report in reports {
        let mark = match &report.difference {
            None => paint("pass", "32", style),
            Some(_) => paint("FAIL", "31", style),
        };
        let _ = writeln!(text, "{mark}  {}  {}", report.tool, report.name);
        if let Some(Difference { text: difference, fault }) = &report.difference {
            indent(difference, &mut text);
            if let Some(fault) = fault {
                indent(&render_fault(fault, &tools.to_string_lossy(), style), &mut text);
            }
        }
    }
    let _ = writeln!(text, "{} passed, {failed} failed", reports.len() - failed);
    text
}

fn indent(lines: &str, text: &mut String) {
    for line in lines.lines() {
        let _ = writeln!(text, "      {line}");
    }
}

fn as_json(reports: &[Report], failed: usize) -> Value {
    let cases: Vec<_> = reports
        .iter()
        .map(|report| {
            let mut case =
                json!({ "tool": report.tool, "name": report.name, "ok": report.difference.is_none() });
            if let Some(difference) = &report.difference {
                case["difference"] = json!(difference.text);
                if let Some(fault) = &difference.fault {
                    case["fault"] = json!(fault);
                }
            }
            case
        })
        .collect();
    json!({ "passed": reports.len() - failed, "failed": failed, "cases": cases })
}
