//! `quarterdeck tasks`. Tasks run in the server, so the running server is asked.

use serde_json::Value;

use crate::ExitStatus;
use crate::admin_client::AdminClient;
use crate::arguments::Format;
use crate::arguments::operator::{TasksCancelOptions, TasksCommand, TasksListOptions, TasksOptions};
use crate::config::LocalConfig;
use crate::terminal::{info, plain, print, titled_table};
use crate::times::show_ms;

const COLUMNS: [&str; 6] = ["task", "tool", "client", "status", "began", "ended"];

pub(crate) fn run(options: &TasksOptions) -> anyhow::Result<ExitStatus> {
    match &options.command {
        None => list(&options.list),
        Some(TasksCommand::List(options)) => list(options),
        Some(TasksCommand::Cancel(options)) => cancel(options),
    }
}

fn list(options: &TasksListOptions) -> anyhow::Result<ExitStatus> {
    let response =
        AdminClient::new(&LocalConfig::load()?, &options.server).request("GET", "/api/deck/tasks")?;
    let mut found = response.success()?;
    let mut tasks = found["tasks"].as_array().cloned().unwrap_or_default();
    tasks.retain(|task| {
        options.client.as_ref().is_none_or(|client| task["clientId"] == **client)
            && (task["status"] == "running" || !options.running)
    });
    match options.format {
        Format::Json => {
            found["tasks"] = tasks.into();
            print(&format!("{found:#}\n"))?;
        }
        Format::Human if tasks.is_empty() => info("there are no such tasks"),
        Format::Human => print(&titled_table(&COLUMNS, tasks.iter().map(row)))?,
    }
    Ok(ExitStatus::Success)
}

fn row(task: &Value) -> Vec<String> {
    let text = |name: &str| plain(task[name].as_str().unwrap_or_default());
    vec![
        text("id"),
        text("tool"),
        text("clientId"),
        text("status"),
        show_ms(task["startedMs"].as_u64().unwrap_or_default()),
        task["endedMs"].as_u64().map(show_ms).unwrap_or_default(),
    ]
}

fn cancel(options: &TasksCancelOptions) -> anyhow::Result<ExitStatus> {
    let id = &options.task;
    let client = AdminClient::new(&LocalConfig::load()?, &options.server);
    let response = client.request("DELETE", &format!("/api/deck/tasks/{id}"))?;
    if response.status == 404 {
        info(&format!("{id} does not run; `quarterdeck tasks --running` lists the tasks that do"));
        return Ok(ExitStatus::Problems);
    }
    response.success()?;
    info(&format!("{id} was told to stop"));
    Ok(ExitStatus::Success)
}
