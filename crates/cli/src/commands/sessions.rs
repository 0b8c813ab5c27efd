//! `quarterdeck sessions`.

use quarterdeck_contracts::Mode;
use quarterdeck_runtime::{SessionSummary, end_stored_session, list_sessions};
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::operator::{SessionsCommand, SessionsEndOptions, SessionsListOptions, SessionsOptions};
use crate::config::LocalConfig;
use crate::operator::OperatorSession;
use crate::terminal::{info, plain, print, titled_table};
use crate::times::show_ms;
use crate::{ExitStatus, wire};

const COLUMNS: [&str; 8] = ["session", "client", "mode", "active", "turns", "calls", "began", "last seen"];

pub(crate) fn run(options: &SessionsOptions) -> anyhow::Result<ExitStatus> {
    match &options.command {
        None => list(&options.list),
        Some(SessionsCommand::List(options)) => list(options),
        Some(SessionsCommand::End(options)) => wire::block_on(end(options))?,
    }
}

fn list(options: &SessionsListOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let node = options.data.node(&config);
    let mut found = wire::block_on(async {
        let store = wire::find_store(&node).await?;
        anyhow::Ok(list_sessions(&*store).await?)
    })??;
    found.retain(|session| {
        options.client.as_ref().is_none_or(|client| session.client_id == *client)
            && (session.is_active || !options.active)
    });
    match options.format {
        Format::Json => print(&format!("{:#}\n", json!({ "sessions": found })))?,
        Format::Human if found.is_empty() => info("there are no such sessions"),
        Format::Human => print(&titled_table(&COLUMNS, found.iter().map(row)))?,
    }
    Ok(ExitStatus::Success)
}

fn row(session: &SessionSummary) -> Vec<String> {
    vec![
        plain(&session.id),
        plain(&session.client_id),
        if session.mode == Mode::Voice { "voice".into() } else { "text".into() },
        if session.is_active { "yes".into() } else { "no".into() },
        session.turns.to_string(),
        session.calls.to_string(),
        show_ms(session.created_ms),
        show_ms(session.seen_ms),
    ]
}

async fn end(options: &SessionsEndOptions) -> anyhow::Result<ExitStatus> {
    let id = &options.id;
    let config = LocalConfig::load()?;
    let operator = OperatorSession::open(&options.data.node(&config)).await?;
    let store = operator.store();
    // The client goes into the audit record; read before the session ends.
    let session = list_sessions(&*store).await?.into_iter().find(|session| session.id == *id);
    if !end_stored_session(&*store, id).await? {
        info(&match session {
            Some(_) => format!("{id} has ended already"),
            None => format!("there is no session {id}; `quarterdeck sessions` lists them"),
        });
        return Ok(ExitStatus::Problems);
    }
    let client = session.map(|session| session.client_id);
    operator.record("end_session", json!({ "sessionId": id, "clientId": client })).await?;
    info(&format!("{id} has ended"));
    Ok(ExitStatus::Success)
}
