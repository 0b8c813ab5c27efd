//! `quarterdeck quarantines`: unlike what lies in the data folder, a quarantine is a running server's, so that is asked.

use serde_json::Value;

use crate::Verdict;
use crate::arguments::Format;
use crate::arguments::operating::{
    QuarantinesCommand, QuarantinesLiftOptions, QuarantinesListOptions, QuarantinesOptions,
};
use crate::config::Site;
use crate::running::Server;
use crate::terminal::{plain, print, say, titled_table};

const COLUMNS: [&str; 4] = ["tool", "stuck threads", "times", "next trial in"];

pub(crate) fn run(options: &QuarantinesOptions) -> anyhow::Result<Verdict> {
    match &options.command {
        None => list(&options.list),
        Some(QuarantinesCommand::List(options)) => list(options),
        Some(QuarantinesCommand::Lift(options)) => lift(options),
    }
}

fn list(options: &QuarantinesListOptions) -> anyhow::Result<Verdict> {
    let answer = Server::of(&Site::load()?, &options.server).ask("GET", "/api/deck/quarantines")?;
    let found = answer.success()?;
    let tools = found["quarantines"].as_array().cloned().unwrap_or_default();
    match options.format {
        Format::Json => print(&format!("{found:#}\n"))?,
        Format::Human if tools.is_empty() => say("every tool is in service"),
        Format::Human => print(&titled_table(&COLUMNS, tools.iter().map(row)))?,
    }
    Ok(Verdict::Fine)
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

fn lift(options: &QuarantinesLiftOptions) -> anyhow::Result<Verdict> {
    let tool = &options.tool;
    let server = Server::of(&Site::load()?, &options.server);
    let answer = server.ask("DELETE", &format!("/api/deck/quarantines/{tool}"))?;
    if answer.status == 404 {
        say(&format!("{tool} is not in quarantine; `quarterdeck quarantines` lists what is"));
        return Ok(Verdict::Problems);
    }
    answer.success()?;
    say(&format!("{tool} is in service again"));
    Ok(Verdict::Fine)
}
