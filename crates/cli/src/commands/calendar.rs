//! `quarterdeck calendar`.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use jiff::{SignedDuration, Timestamp};
use quarterdeck_calendar::{MAX_ICS_BYTES, export as to_ics, import as from_ics};
use quarterdeck_contracts::{Calendar, CommitError, Event, EventQuery, Overlay};
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::operating::{
    CalendarCommand, CalendarExportOptions, CalendarImportOptions, CalendarListOptions,
};
use crate::config::Site;
use crate::operator::Operator;
use crate::output::Output;
use crate::terminal::{count, plain, print, say, titled_table};
use crate::{Verdict, wire};

const COLUMNS: [&str; 5] = ["start", "end", "calendar", "summary", "attendees"];

pub(crate) fn run(command: &CalendarCommand) -> anyhow::Result<Verdict> {
    wire::block_on(async {
        match command {
            CalendarCommand::Import(options) => import(options).await,
            CalendarCommand::Export(options) => export(options).await,
            CalendarCommand::List(options) => list(options).await,
        }
    })?
}

async fn import(options: &CalendarImportOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let known = &site.calendar.calendars;
    let calendar = named_or_first(&options.calendar, &site);
    if !known.contains(calendar) {
        bail!("there is no calendar {calendar:?}; there are {}", known.join(", "));
    }
    let text = read(&options.file)?;
    let found =
        from_ics(&text, calendar).with_context(|| format!("cannot import {}", options.file.display()))?;
    for skipped in &found.skipped {
        say(&format!("warning: {}", plain(skipped)));
    }
    let (events, rows, skipped) = (found.events, found.rows.len(), found.skipped.len());
    if rows == 0 {
        say(&format!(
            "{} holds no event that can be taken; the calendar is as it was",
            options.file.display()
        ));
        return Ok(Verdict::Problems);
    }
    let operator = Operator::at_new(options.data.or(&site)).await?;
    let store = operator.store();
    let overlay = Overlay::new(store.clone());
    found.write_to(&overlay).await?;
    store.commit(overlay.take()).await.map_err(|error| match error {
        CommitError::Conflict { .. } => anyhow!("the calendar was changed in the meantime; run this again"),
        CommitError::Store(error) => error.into(),
    })?;
    let file = options.file.file_name().map(|name| name.to_string_lossy().into_owned());
    operator.did("import_calendar", json!({ "calendar": calendar, "file": file, "events": events })).await?;
    say(&format!("{} taken into {calendar}; those with the same UID were replaced", count(events, "event")));
    Ok(if skipped > 0 { Verdict::Problems } else { Verdict::Fine })
}

/// Bookings that name no calendar go to the first, and so does what comes from a file.
fn named_or_first<'a>(named: &'a Option<String>, site: &'a Site) -> &'a String {
    // A configuration without a calendar is refused when it is read.
    named.as_ref().unwrap_or_else(|| &site.calendar.calendars[0])
}

/// A file is refused for its size before it is in memory.
fn read(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot read {}", path.display());
    let mut text = Vec::new();
    let most = MAX_ICS_BYTES as u64 + 1;
    File::open(path).with_context(cannot)?.take(most).read_to_end(&mut text).with_context(cannot)?;
    if text.len() > MAX_ICS_BYTES {
        bail!("{} has more than {MAX_ICS_BYTES} bytes; split it", path.display());
    }
    String::from_utf8(text).map_err(|_| anyhow!("{} is not UTF-8 text, as .ics files are", path.display()))
}

async fn export(options: &CalendarExportOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let store = wire::find_store(options.data.or(&site))?;
    let mut out = Output::to(options.out.as_deref())?;
    let calendar = named_or_first(&options.calendar, &site);
    let rows = wire::calendar(&site)?.rows(calendar, &Overlay::new(store)).await?;
    out.write_all(to_ics(&rows).as_bytes())?;
    out.finish()?;
    if let Some(file) = &options.out {
        say(&format!("{} written to {}", count(rows.len(), "event"), file.display()));
    }
    Ok(Verdict::Fine)
}

async fn list(options: &CalendarListOptions) -> anyhow::Result<Verdict> {
    let from = options.from.unwrap_or_else(Timestamp::now);
    let to = match options.to {
        Some(to) => to,
        None => from.checked_add(SignedDuration::from_hours(7 * 24))?,
    };
    let site = Site::load()?;
    let store = wire::find_store(options.data.or(&site))?;
    let query = EventQuery {
        time_min: from.to_string(),
        time_max: to.to_string(),
        calendars: options.calendar.iter().cloned().collect(),
    };
    let events = wire::calendar(&site)?.events(query, Arc::new(Overlay::new(store))).await?;
    match options.format {
        Format::Json => print(&format!("{:#}\n", json!({ "events": events })))?,
        Format::Human if events.is_empty() => say(&format!("nothing stands between {from:.0} and {to:.0}")),
        Format::Human => print(&titled_table(&COLUMNS, events.iter().map(row)))?,
    }
    Ok(Verdict::Fine)
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
