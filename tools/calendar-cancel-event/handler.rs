//! Cancels a booking, as it was shown to the user who approved it.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use quarterdeck_contracts::handler::{Context, Precheck, calendar_cancel};
use quarterdeck_contracts::{Cancellation, EventRef, ToolError};
use serde::Deserialize;
use serde_json::json;

use crate::booking::{
    ChangedBooking, calendar_info, describe, find_changeable, not_changed, notice_sentence,
};

#[derive(Debug, Deserialize)]
pub struct Args {
    pub event_id: String,
    pub notify: bool,
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

pub async fn execute(args: Args, context: Arc<dyn Context>) -> Result<ChangedBooking, ToolError> {
    let seen = &context.facts().seen;
    let text = |name: &str| seen[name].as_str().map(str::to_owned);
    let cancellation = Cancellation {
        id: args.event_id,
        calendar: text("calendar"),
        version: text("version"),
        notify: args.notify,
    };
    match calendar_cancel(&*context, cancellation).await {
        Ok(cancelled) => Ok(cancelled.into()),
        Err(error) => Err(not_changed(&*context, error, None).await),
    }
}
