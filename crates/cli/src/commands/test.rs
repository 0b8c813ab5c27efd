//! `quarterdeck test`.

use std::fmt::Write;
use std::sync::Arc;

use anyhow::bail;
use serde_json::{Value, json};

use crate::arguments::{Format, TestOptions};
use crate::cases::{Report, run_tool};
use crate::config::LocalConfig;
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
    };
    let Some(registry) = wire::load_folder(tools, &access)? else { return Ok(ExitStatus::Problems) };
    let snapshot = registry.snapshot();
    let world = LocalWorld { snapshot: snapshot.clone(), recorded };
    let only = options.tool.as_ref().map(|tool| tool.replace('-', "_"));
    if let Some(id) = only.as_deref().filter(|id| snapshot.find(id).is_none()) {
        bail!("there is no tool {id}; `quarterdeck list` shows them all");
    }
    let reports = wire::block_on(async {
        let mut reports = Vec::new();
        for tool in snapshot.tools() {
            if only.as_deref().is_none_or(|only| only == tool.metadata().tool_id.as_str()) {
                reports.extend(run_tool(&world, tool, tools).await);
            }
        }
        reports
    })?;
    let failed = reports.iter().filter(|report| report.difference.is_some()).count();
    match options.format {
        Format::Json => print(&format!("{:#}\n", as_json(&reports, failed)))?,
        Format::Human => print(&as_text(&reports, failed))?,
    }
    Ok(if failed == 0 { ExitStatus::Success } else { ExitStatus::Problems })
}

fn as_text(reports: &[Report], failed: usize) -> String {
    let style = environment::style_of_stdout();
    let mut text = String::new();
    for report in reports {
        let mark = match &report.difference {
            None => paint("pass", "32", style),
            Some(_) => paint("FAIL", "31", style),
        };
        let _ = writeln!(text, "{mark}  {}  {}", report.tool, report.name);
        if let Some(difference) = &report.difference {
            let _ = writeln!(text, "      {difference}");
        }
    }
    let _ = writeln!(text, "{} passed, {failed} failed", reports.len() - failed);
    text
}

fn as_json(reports: &[Report], failed: usize) -> Value {
    let cases: Vec<_> = reports
        .iter()
        .map(|report| {
            let mut case =
                json!({ "tool": report.tool, "name": report.name, "ok": report.difference.is_none() });
            if let Some(difference) = &report.difference {
                case["difference"] = json!(difference);
            }
            case
        })
        .collect();
    json!({ "passed": reports.len() - failed, "failed": failed, "cases": cases })
}
