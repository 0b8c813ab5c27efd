//! `quarterdeck clients`.

use anyhow::bail;
use quarterdeck_runtime::{ClientSummary, end_stored_session, erase_client, list_clients, list_session_ids};
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::operator::{ClientsCommand, ClientsEraseOptions, ClientsListOptions, ClientsOptions};
use crate::config::LocalConfig;
use crate::operator::OperatorSession;
use crate::terminal::{confirm, count, info, is_interactive, plain, print, titled_table};
use crate::times::show_ms;
use crate::{ExitStatus, wire};

const COLUMNS: [&str; 4] = ["client", "sessions", "active", "last seen"];

pub(crate) fn run(options: &ClientsOptions) -> anyhow::Result<ExitStatus> {
    match &options.command {
        None => list(&options.list),
        Some(ClientsCommand::List(options)) => list(options),
        Some(ClientsCommand::Erase(options)) => wire::block_on(erase(options))?,
    }
}

fn list(options: &ClientsListOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let node = options.data.node(&config);
    let found = wire::block_on(async {
        let store = wire::find_store(&node).await?;
        anyhow::Ok(list_clients(&*store).await?)
    })??;
    match options.format {
        Format::Json => print(&format!("{:#}\n", json!({ "clients": found })))?,
        Format::Human if found.is_empty() => info("no client has a session"),
        Format::Human => print(&titled_table(&COLUMNS, found.iter().map(row)))?,
    }
    Ok(ExitStatus::Success)
}

fn row(client: &ClientSummary) -> Vec<String> {
    vec![plain(&client.id), client.sessions.to_string(), client.active.to_string(), show_ms(client.seen_ms)]
}

async fn erase(options: &ClientsEraseOptions) -> anyhow::Result<ExitStatus> {
    let client = &options.client;
    if !options.yes && !is_interactive() {
        bail!("erasing cannot be undone, and there is no terminal to confirm at; add `--yes` to erase");
    }
    let config = LocalConfig::load()?;
    let operator = OperatorSession::open(&options.data.node(&config)).await?;
    let store = operator.store();
    let known =
        list_clients(&*store).await?.into_iter().find(|known| known.id == *client).unwrap_or_default();
    let sessions = many(known.sessions, "session");
    if !options.yes && !confirm(&format!("Erase {client}, with {sessions}, for good?"))? {
        info("nothing was erased");
        return Ok(ExitStatus::Success);
    }
    if store.is_shared() {
        // Nodes run, and one that goes on with a session would write its rows again.
        for id in list_session_ids(&*store, client).await? {
            end_stored_session(&*store, &id).await?;
        }
    }
    let rows = erase_client(&*store, client).await?;
    // Checked again: sessions that the erasure missed must be reported.
    let left = list_clients(&*store).await?.into_iter().find(|known| known.id == *client).unwrap_or_default();
    if rows == 0 && left.sessions == 0 {
        info(&format!("there is no data of {client}; `quarterdeck clients` lists the clients with sessions"));
        return Ok(ExitStatus::Problems);
    }
    let done = json!({ "clientId": client, "rows": rows, "sessionsLeft": left.sessions });
    operator.record("erase_client", done).await?;
    let rows = many(rows, "row");
    if left.sessions > 0 {
        let left = many(left.sessions, "session");
        info(&format!(
            "{client} was only partly erased: {left}, with calls, could not be erased ({rows} were)\n\
             help: `quarterdeck sessions --client {client}` shows what is left"
        ));
        return Ok(ExitStatus::Problems);
    }
    info(&format!(
        "{client} was erased: {sessions}, with calls, confirmations, values, images and rate limits ({rows})\n\
         a block, the audit trail, appointments in the calendar and earlier backups stay"
    ));
    Ok(ExitStatus::Success)
}

fn many(number: u64, noun: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}
