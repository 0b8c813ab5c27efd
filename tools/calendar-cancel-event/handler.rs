//! Cancels a booking, as it was shown to the user who approved it.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use quarterdeck_contracts::handler::{Context, Precheck, calendar_cancel};
use quarterdeck_contracts::{Cancellation, EventRef, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::booking::{
    InvitationReport, calendar_info, describe, find_changeable, not_changed, notice_sentence,
};

#[derive(Debug, Deserialize)]
pub struct Args {
    pub event_id: String,
    pub notify: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct CancelledEvent {
    pub event_id: String,
    pub title: String,
    pub start_time: String,
    pub end_time: String,
    pub attendees: Vec<String>,
    pub calendar: String,
    pub invitations: InvitationReport,
}

/// Finds the event and names it.
pub async fn precheck(args: Args, context: Arc<dyn Context>) -> Result<Precheck, ToolError> {
    let event = find_changeable(&*context, EventRef { id: args.event_id, calendar: None }).await?;
    let info = calendar_info(&*context, &event.calendar).await?;
    let told = match (event.attendees.is_empty(), args.notify) {
        (true, _) => String::new(),
        (false, true) => notice_sentence(info.as_ref()),
        (false, false) => "The attendees are not told.".to_owned(),
    };
    let preview = format!("Cancel {}. {told}", describe(&event)).trim_end().to_owned();
    let seen = json!({ "version": event.version, "calendar": event.calendar });
    Ok(Precheck { preview: Some(preview), seen })
}

pub async fn execute(args: Args, context: Arc<dyn Context>) -> Result<CancelledEvent, ToolError> {
    let seen = &context.facts().seen;
    let text = |name: &str| seen[name].as_str().map(str::to_owned);
    let cancellation = Cancellation {
        id: args.event_id,
        calendar: text("calendar"),
        version: text("version"),
        notify: args.notify,
    };
    let cancelled = match calendar_cancel(&*context, cancellation).await {
        Ok(cancelled) => cancelled,
        Err(error) => return Err(not_changed(&*context, error, None).await),
    };
    let event = cancelled.event;
    Ok(CancelledEvent {
        event_id: event.id,
        title: event.summary,
        start_time: event.start,
        end_time: event.end,
        attendees: event.attendees,
        calendar: event.calendar,
        invitations: InvitationReport::new(cancelled.invitations),
    })
}
