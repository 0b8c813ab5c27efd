//! `quarterdeck mcp call`.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use quarterdeck_contracts::parse_json;
use quarterdeck_host_mcp::{UpstreamConfig, VisitAnswer};
use serde_json::Value;

use super::imported::ToolsFolderContent;
use crate::arguments::CallOptions;
use crate::arguments::mcp::McpCallOptions;
use crate::config::LocalConfig;
use crate::terminal::{info, print, warn};
use crate::{ExitStatus, commands, wire};

const RAW_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn run(options: &McpCallOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let server = super::find(&config, &options.server)?;
    if options.raw {
        return call_raw(server, &options.call);
    }
    let content = ToolsFolderContent::read(options.call.tools.or(&config))?;
    let name = &options.call.tool;
    let tool = content.find(&server.name, name).or_else(|| {
        // By the id that it has here.
        content.of_server(&server.name).find(|tool| tool.id.as_str() == name.replace('-', "_"))
    });
    let Some(tool) = tool else {
        bail!(
            "{name:?} of {0} is not imported\nhelp: `quarterdeck mcp import {0} {name}`, or call it with `--raw`, past every gate",
            server.name
        );
    };
    commands::call::run_tool(tool.id.as_str(), &options.call)
}

fn call_raw(server: &UpstreamConfig, options: &CallOptions) -> anyhow::Result<ExitStatus> {
    let text = commands::call::read_arguments(options)?;
    let arguments = match parse_json(&text).context("the arguments are not a JSON object")? {
        Value::Object(arguments) => arguments,
        _ => bail!("the arguments are not a JSON object"),
    };
    info("raw: what the server itself answers; no gate, no pin and no audit trail saw this call");
    let answer = wire::block_on(async {
        let visit = super::visit(server).await?;
        let answer = visit.call(&options.tool, arguments, RAW_TIMEOUT).await;
        visit.close().await;
        answer.map_err(|reason| anyhow!("{} did not answer the call: {reason}", server.name))
    })??;
    match answer {
        VisitAnswer::Data(data) => print(&format!("{data:#}\n"))?,
        VisitAnswer::Failed(words) => {
            warn(&format!("the tool says that it failed: {words}"));
            return Ok(ExitStatus::Problems);
        }
    }
    Ok(ExitStatus::Success)
}
