//! Explains why a call failed, as a model should: without endless retries, and without pretending to know what is
//! unknown.

use quarterdeck_contracts::{ErrorType, ToolError};
use serde_json::Value;

use crate::context::Context;
use crate::lookup;
use crate::moderation::IGNORE;
use crate::now;
use crate::parameter::name_words;
use crate::sentences::shorten;

/// Nothing where a sentence would be superfluous.
pub(crate) fn explain(context: &Context<'_>, tool: &str, error: &ToolError) -> Option<String> {
    let message = sentence(&error.message);
    Some(match error.kind {
        ErrorType::BudgetExceeded => {
            let limit = "I have looked up as much as I may for one message.";
            with_findings(context, limit, "Please narrow it down, or ask again.")
        }
        ErrorType::LoopDetected => {
            let limit = "Looking it up again would bring nothing new, so I stop here.";
            with_findings(context, limit, "Try other words; the knowledge base may not have it.")
        }
        ErrorType::ConfirmationRequired => describe_confirmation(context, error),
        ErrorType::ConfirmationDenied => "All right: you said no, so nothing was done.".into(),
        ErrorType::ConfirmationExpired => {
            "The question was not answered in time, so nothing was done. Tell me if you still want it, and you will be asked again."
                .into()
        }
        ErrorType::ConfirmationInvalid => {
            "That answer did not belong to the question, so nothing was done. Tell me if you still want it.".into()
        }
        ErrorType::ModeRestricted => restricted(context, error),
        ErrorType::Unavailable => format!("That is not available here: {} Nothing was done.", lower_first(&message)),
        ErrorType::Validation => format!("That did not work: {} Nothing was done.", faults(error, &message)),
        ErrorType::NotFound => not_found(context, message),
        ErrorType::Conflict => conflict(context, error, &message),
        ErrorType::RateLimit => format!("That was asked for too often. {}", later(error)),
        ErrorType::Transient if tool == IGNORE => return None,
        ErrorType::Transient if error.partial_side_effects == Some(true) => {
            "That did not finish, and a part of it may have been done. Please check before you try again.".into()
        }
        ErrorType::Transient => format!("That did not work this time: {} {}", lower_first(&message), later(error)),
        ErrorType::Auth => format!("I was not allowed to do that: {} Sign in again first.", lower_first(&message)),
        ErrorType::SessionActive => "A voice session is open already: please go on there.".into(),
        ErrorType::SessionInactive if tool == IGNORE => return None,
        ErrorType::SessionInactive => "That conversation is over already, so nothing was done.".into(),
        ErrorType::Blocked => message,
        ErrorType::Cancelled => "That was stopped before it was done.".into(),
        ErrorType::Internal => unknown(error),
        ErrorType::Permanent => match error.partial_side_effects {
            Some(true) => format!("That failed, and a part of it may have been done: {}", lower_first(&message)),
            _ => format!("That cannot be done: {}", lower_first(&message)),
        },
    })
}

fn with_findings(context: &Context<'_>, limit: &str, otherwise: &str) -> String {
    match lookup::is_lookup(&context.results) {
        true => format!("{} {limit}", lookup::answer(context)),
        false => format!("{limit} {otherwise}"),
    }
}

/// Where and until when the user can answer. A model cannot answer for them.
fn describe_confirmation(context: &Context<'_>, error: &ToolError) -> String {
    let Some(request) = &error.confirmation_request else {
        return "You are being asked whether this may be done: please answer the question that is shown with this conversation. \
                Nothing has been done yet."
            .into();
    };
    let until = i64::try_from(request.expires).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let until =
        until.map(|at| format!(", until {}", now::clock(context.now.local(at).time()))).unwrap_or_default();
    format!(
        "You are being asked: {} Please answer the question that is shown with this conversation{until}; I cannot answer it for \
         you, and nothing has been done yet.",
        sentence(&request.preview)
    )
}

/// What is wrong with which argument, without pointers and keywords.
fn faults(error: &ToolError, message: &str) -> String {
    let faults = error.details.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let problems = faults.iter().take(3).filter_map(|fault| {
        let message = fault.get("message")?.as_str()?;
        let path = fault.get("path").and_then(Value::as_str).unwrap_or_default();
        let name = path.split('/').find(|part| part.chars().any(char::is_alphabetic)).unwrap_or_default();
        match name {
            "" => Some(message.to_owned()),
            name if message.starts_with("must") => {
                Some(format!("the {} {message}", name_words(name).join(" ")))
            }
            name => Some(format!("the {}: {message}", name_words(name).join(" "))),
        }
    });
    let problems: Vec<String> = problems.collect();
    match problems.is_empty() {
        true => lower_first(message),
        false => sentence(&problems.join("; ")),
    }
}

fn not_found(context: &Context<'_>, message: String) -> String {
    match lookup::is_lookup(&context.results) {
        true => lookup::answer(context),
        false => message,
    }
}

fn conflict(context: &Context<'_>, error: &ToolError, message: &str) -> String {
    let free = error.details.as_ref().and_then(|details| details.get("nearest_free")?.as_array());
    let offers: Vec<String> = free.into_iter().flatten().filter_map(|slot| period(context, slot)).collect();
    match offers.is_empty() {
        true => format!("{message} Nothing was done."),
        false => {
            format!("{message} The nearest free times are {}. Which one shall I take?", offers.join("; "))
        }
    }
}

/// A free time as the user's clocks show it.
pub(crate) fn period(context: &Context<'_>, slot: &Value) -> Option<String> {
    let moment = |name: &str| slot.get(name)?.as_str()?.parse::<jiff::Timestamp>().ok();
    Some(now::period(&context.now.local(moment("start")?), &context.now.local(moment("end")?)))
}

fn later(error: &ToolError) -> String {
    match error.retry_after_ms {
        Some(wait) => format!("It may be tried again in {} seconds.", wait.div_ceil(1_000).max(1)),
        None => "It may be tried again later.".into(),
    }
}

fn unknown(error: &ToolError) -> String {
    let outcome = error.details.as_ref().and_then(|details| details.get("outcome")?.as_str());
    if outcome == Some("unknown") || error.partial_side_effects == Some(true) {
        return "Something went wrong, and it is unknown whether it was done. Please check before you try again.".into();
    }
    "Something went wrong on our side. It has been noted, and nothing more can be said about it here.".into()
}

/// What a suggestion tells a model to do, said as an offer.
fn restricted(context: &Context<'_>, error: &ToolError) -> String {
    let place = if context.is_spoken() { "in a call" } else { "in a written conversation" };
    let suggestion = error.suggestion.as_deref().unwrap_or_default();
    let offer = match suggestion.strip_prefix("Offer to ") {
        Some(offer) => format!(" I can {}", sentence(offer)),
        None if suggestion.contains("answer") => " I answer without it.".to_owned(),
        None if suggestion.is_empty() => String::new(),
        None => format!(" {}", sentence(suggestion)),
    };
    format!("That is not possible {place}.{offer}")
}

/// One sentence of bounded length that ends like one.
fn sentence(text: &str) -> String {
    let text = shorten(text.trim(), 300);
    if text.ends_with(['.', '!', '?', '…']) { text } else { format!("{text}.") }
}

/// A sentence in the middle of another.
pub(crate) fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if letters.clone().next().is_some_and(char::is_lowercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}
