//! `quarterdeck clients`.

use anyhow::bail;
use quarterdeck_runtime::{ClientSummary, clients, erase_client};
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::operating::{ClientsCommand, ClientsEraseOptions, ClientsListOptions, ClientsOptions};
use crate::config::Site;
use crate::operator::Operator;
use crate::terminal::{ask, can_ask, count, plain, print, say, titled_table};
use crate::times::show_ms;
use crate::{Verdict, wire};

const COLUMNS: [&str; 4] = ["client", "sessions", "active", "last seen"];

pub(crate) fn run(options: &ClientsOptions) -> anyhow::Result<Verdict> {
    match &options.command {
        None => list(&options.list),
        Some(ClientsCommand::List(options)) => list(options),
        Some(ClientsCommand::Erase(options)) => wire::block_on(erase(options))?,
    }
}

fn list(options: &ClientsListOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let store = wire::find_store(options.data.or(&site))?;
    let found = wire::block_on(clients(&*store))??;
    match options.format {
        Format::Json => print(&format!("{:#}\n", json!({ "clients": found })))?,
        Format::Human if found.is_empty() => say("no client has a session"),
        Format::Human => print(&titled_table(&COLUMNS, found.iter().map(row)))?,
    }
    Ok(Verdict::Fine)
}

fn row(client: &ClientSummary) -> Vec<String> {
    vec![plain(&client.id), client.sessions.to_string(), client.active.to_string(), show_ms(client.seen_ms)]
}

async fn erase(options: &ClientsEraseOptions) -> anyhow::Result<Verdict> {
    let client = &options.client;
    if !options.yes && !can_ask() {
        bail!("erasing cannot be undone, and there is no terminal to ask at; say `--yes` if it is meant");
    }
    let site = Site::load()?;
    let operator = Operator::at(options.data.or(&site)).await?;
    let store = operator.store();
    let known = clients(&*store).await?.into_iter().find(|known| known.id == *client).unwrap_or_default();
    let sessions = many(known.sessions, "session");
    if !options.yes && !ask(&format!("Erase {client}, with {sessions}, for good?"))? {
        say("nothing was erased");
        return Ok(Verdict::Fine);
    }
    let rows = erase_client(&*store, client).await?;
    // Looked at again, because “erased” is a promise: what the erasing did not find is told, and not glossed over.
    let left = clients(&*store).await?.into_iter().find(|known| known.id == *client).unwrap_or_default();
    if rows == 0 && left.sessions == 0 {
        say(&format!("nothing is kept of {client}; `quarterdeck clients` lists who has sessions"));
        return Ok(Verdict::Problems);
    }
    let done = json!({ "clientId": client, "rows": rows, "sessionsLeft": left.sessions });
    operator.did("erase_client", done).await?;
    let rows = many(rows, "row");
    if left.sessions > 0 {
        let left = many(left.sessions, "session");
        say(&format!(
            "{client} was not erased as a whole: {left}, with calls, could not be erased ({rows} were)\n\
             help: `quarterdeck sessions --client {client}` shows what is left"
        ));
        return Ok(Verdict::Problems);
    }
    say(&format!(
        "{client} was erased: {sessions}, with calls, confirmations, values and rate limits ({rows})\n\
         a block, the audit trail, appointments in the calendar and earlier backups stay"
    ));
    Ok(Verdict::Fine)
}

fn many(number: u64, noun: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}
