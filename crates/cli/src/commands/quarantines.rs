//! `quarterdeck quarantines`. Quarantines live in the server's memory, so the running server is asked.

use serde_json::Value;

use crate::ExitStatus;
use crate::admin_client::AdminClient;
use crate::arguments::Format;
use crate::arguments::operator::{
    QuarantinesCommand, QuarantinesLiftOptions, QuarantinesListOptions, QuarantinesOptions,
};
use crate::config::LocalConfig;
use crate::terminal::{info, plain, print, titled_table};

const COLUMNS: [&str; 4] = ["tool", "stuck threads", "times", "next trial in"];

pub(crate) fn run(options: &QuarantinesOptions) -> anyhow::Result<ExitStatus> {
    match &options.command {
        None => list(&options.list),
        Some(QuarantinesCommand::List(options)) => list(options),
        Some(QuarantinesCommand::Lift(options)) => lift(options),
    }
}

fn list(options: &QuarantinesListOptions) -> anyhow::Result<ExitStatus> {
    let response =
        AdminClient::new(&LocalConfig::load()?, &options.server).request("GET", "/api/deck/quarantines")?;
    let found = response.success()?;
    let tools = found["quarantines"].as_array().cloned().unwrap_or_default();
    match options.format {
        Format::Json => print(&format!("{found:#}\n"))?,
        Format::Human if tools.is_empty() => info("no tool is quarantined"),
        Format::Human => print(&titled_table(&COLUMNS, tools.iter().map(row)))?,
    }
    Ok(ExitStatus::Success)
}

fn row(tool: &Value) -> Vec<String> {
    let number = |name: &str| tool[name].as_u64().unwrap_or_default();
    vec![
        plain(tool["toolId"].as_str().unwrap_or_default()),
        number("stuckThreads").to_string(),
        number("strikes").to_string(),
        format!("{} s", number("retryAfterMs").div_ceil(1_000)),
    ]
}

fn lift(options: &QuarantinesLiftOptions) -> anyhow::Result<ExitStatus> {
    let tool = &options.tool;
    let client = AdminClient::new(&LocalConfig::load()?, &options.server);
    let response = client.request("DELETE", &format!("/api/deck/quarantines/{tool}"))?;
    if response.status == 404 {
        info(&format!("{tool} is not quarantined; `quarterdeck quarantines` lists the tools that are"));
        return Ok(ExitStatus::Problems);
    }
    response.success()?;
    info(&format!("{tool} is in service again"));
    Ok(ExitStatus::Success)
}
