//! `quarterdeck calendar`.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use jiff::SignedDuration;
use quarterdeck_calendar::{MAX_ICS_BYTES, export as to_ics, import as from_ics};
use quarterdeck_contracts::{Calendar, CommitError, Event, EventQuery, Overlay};
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::operator::{
    CalendarCommand, CalendarExportOptions, CalendarImportOptions, CalendarListOptions,
};
use crate::config::LocalConfig;
use crate::operator::OperatorSession;
use crate::output::Output;
use crate::terminal::{count, info, plain, print, titled_table};
use crate::{ExitStatus, times, wire};

const COLUMNS: [&str; 5] = ["start", "end", "calendar", "summary", "attendees"];

pub(crate) fn run(command: &CalendarCommand) -> anyhow::Result<ExitStatus> {
    wire::block_on(async {
        match command {
            CalendarCommand::Import(options) => import(options).await,
            CalendarCommand::Export(options) => export(options).await,
            CalendarCommand::List(options) => list(options).await,
        }
    })?
}

async fn import(options: &CalendarImportOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let known = &config.calendar.calendars.calendars;
    let calendar = named_or_first(&options.calendar, &config);
    if !known.contains(calendar) {
        bail!("there is no calendar {calendar:?}; there are {}", known.join(", "));
    }
    require_local(calendar, &config)?;
    let text = read(&options.file)?;
    let found =
        from_ics(&text, calendar).with_context(|| format!("cannot import {}", options.file.display()))?;
    for skipped in &found.skipped {
        info(&format!("warning: {}", plain(skipped)));
    }
    let (events, rows, skipped) = (found.events, found.rows.len(), found.skipped.len());
    if rows == 0 {
        info(&format!(
            "{} holds no event that can be imported; the calendar is unchanged",
            options.file.display()
        ));
        return Ok(ExitStatus::Problems);
    }
    let operator = OperatorSession::open_or_create(&options.data.node(&config)).await?;
    let store = operator.store();
    let overlay = Overlay::new(store.clone());
    found.write_to(&overlay).await?;
    store.commit(overlay.take()).await.map_err(|error| match error {
        CommitError::Conflict { .. } => anyhow!("the calendar was changed in the meantime; run this again"),
        error => error.into_store_error().into(),
    })?;
    let file = options.file.file_name().map(|name| name.to_string_lossy().into_owned());
    operator
        .record("import_calendar", json!({ "calendar": calendar, "file": file, "events": events }))
        .await?;
    info(&format!(
        "{} imported into {calendar}; those with the same UID were replaced",
        count(events, "event")
    ));
    Ok(if skipped > 0 { ExitStatus::Problems } else { ExitStatus::Success })
}

/// Bookings without a calendar go to the first one, and so do imports.
fn named_or_first<'a>(named: &'a Option<String>, config: &'a LocalConfig) -> &'a String {
    // A configuration without a calendar is refused when it is read.
    named.as_ref().unwrap_or_else(|| &config.calendar.calendars.calendars[0])
}

/// Files go into and come out of our own store.
fn require_local(calendar: &str, config: &LocalConfig) -> anyhow::Result<()> {
    if config.calendar.backends.contains_key(calendar) {
        bail!("the calendar {calendar} is kept on another server; use that server's own import and export");
    }
    Ok(())
}

/// A file is refused for its size before it is in memory.
fn read(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot read {}", path.display());
    let mut text = Vec::new();
    let limit = MAX_ICS_BYTES as u64 + 1;
    File::open(path).with_context(cannot)?.take(limit).read_to_end(&mut text).with_context(cannot)?;
    if text.len() > MAX_ICS_BYTES {
        bail!("{} has more than {MAX_ICS_BYTES} bytes; split it", path.display());
    }
    String::from_utf8(text).map_err(|_| anyhow!("{} is not UTF-8 text, as .ics files are", path.display()))
}

async fn export(options: &CalendarExportOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let store = wire::find_store(&options.data.node(&config)).await?;
    let mut out = Output::to(options.out.as_deref())?;
    let calendar = named_or_first(&options.calendar, &config);
    require_local(calendar, &config)?;
    let rows = wire::calendar(&config)?.rows(calendar, &Overlay::new(store)).await?;
    out.write_all(to_ics(&rows).as_bytes())?;
    out.finish()?;
    if let Some(file) = &options.out {
        info(&format!("{} written to {}", count(rows.len(), "event"), file.display()));
    }
    Ok(ExitStatus::Success)
}

async fn list(options: &CalendarListOptions) -> anyhow::Result<ExitStatus> {
    let from = options.from.unwrap_or_else(times::now);
    let to = match options.to {
        Some(to) => to,
        None => from.checked_add(SignedDuration::from_hours(7 * 24))?,
    };
    let config = LocalConfig::load()?;
    let store = wire::find_store(&options.data.node(&config)).await?;
    let query = EventQuery {
        time_min: from.to_string(),
        time_max: to.to_string(),
        calendars: options.calendar.iter().cloned().collect(),
    };
    let mut events =
        wire::calendars(&config.calendar, None)?.events(query, Arc::new(Overlay::new(store))).await?;
    // Of use to a change, and there is none here.
    events.iter_mut().for_each(|event| event.version = None);
    match options.format {
        Format::Json => print(&format!("{:#}\n", json!({ "events": events })))?,
        Format::Human if events.is_empty() => info(&format!("no events between {from:.0} and {to:.0}")),
        Format::Human => print(&titled_table(&COLUMNS, events.iter().map(row)))?,
    }
    Ok(ExitStatus::Success)
}

fn row(event: &Event) -> Vec<String> {
    vec![
        event.start.clone(),
        event.end.clone(),
        event.calendar.clone(),
        plain(&event.summary),
        plain(&event.attendees.join(", ")),
    ]
}
