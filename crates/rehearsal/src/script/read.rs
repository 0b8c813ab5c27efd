//! Reads a script from JSON.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use quarterdeck_contracts::{CallArguments, ChatErrorKind, Finish, ModelCall, Usage};
use quarterdeck_json_fields::{Fault, Field};
use serde_json::{Value, json};

use super::{AtEnd, Order, Script, ScriptError, ScriptedReply};
use crate::reply_stream::ReplyStep;

/// Of one reply: the whole reply holds it, too.
const MAX_REPEATED_BYTES: u64 = 64 * 1024 * 1024;

pub(super) fn script(text: &str) -> Result<Script, ScriptError> {
    quarterdeck_json_fields::read(text, "the script", read)
}

fn read(root: &Field<'_>) -> Result<Script, Fault> {
    let (replies, order, at_end) = match root.value {
        Value::Array(_) => {
            let replies = Field { value: root.value, path: root.path.field("replies") };
            (replies, Order::Process, AtEnd::Over)
        }
        Value::Object(_) => {
            let all = root.object(&["replies", "order", "atEnd"])?;
            let orders = [("process", Order::Process), ("conversation", Order::Conversation)];
            let order = all.choice("order", &orders)?;
            let at_end = all.choice("atEnd", &[("over", AtEnd::Over), ("again", AtEnd::Again)])?;
            (all.needed("replies")?, order, at_end)
        }
        _ => {
            return Err((root.path.clone(), "must be a list of replies, or an object with “replies”".into()));
        }
    };
    let replies = replies.items()?.iter().map(reply).collect::<Result<Vec<_>, _>>()?;
    Ok(Script { replies, order, at_end, next: AtomicUsize::new(0) })
}

fn reply(field: &Field<'_>) -> Result<ScriptedReply, Fault> {
    let known = ["delayMs", "thought", "text", "everyMs", "repeat", "calls", "finish", "error", "usage"];
    let all = field.object(&known)?;
    let mut steps: Vec<ReplyStep> = all.pause("delayMs")?.map(ReplyStep::Wait).into_iter().collect();
    if let Some(thought) = all.find("thought") {
        for piece in thought.one_or_many() {
            steps.push(ReplyStep::Thought(piece.string()?.to_owned()));
        }
    }
    let every = all.pause("everyMs")?;
    if let Some(text) = all.find("text") {
        for piece in text.one_or_many() {
            match piece.value {
                Value::Object(_) => {
                    steps.extend(piece.object(&["delayMs"])?.pause("delayMs")?.map(ReplyStep::Wait))
                }
                _ => {
                    steps.extend(every.map(ReplyStep::Wait));
                    steps.push(ReplyStep::Text(piece.string()?.to_owned()));
                }
            }
        }
    }
    steps.extend(all.find("repeat").map(|repeated| repeat(&repeated)).transpose()?);
    let calls = all.find("calls").map(|calls| calls.items()).transpose()?.unwrap_or_default();
    let calls = calls.iter().map(call).collect::<Result<Vec<_>, _>>()?;
    let error = all.find("error").map(|error| failure(&error)).transpose()?;
    let finish = match all.text("finish")? {
        None | Some("stop") => Finish::Stop,
        Some("length") => Finish::Length,
        Some("filtered") => Finish::Filtered,
        Some(other) => Finish::Other(other.to_owned()),
    };
    if error.is_some() && (!calls.is_empty() || all.find("finish").is_some()) {
        return Err(all.wrong("error", "a reply that breaks off has no calls and no finish"));
    }
    let usage = all.find("usage").map(|usage| used(&usage)).transpose()?;
    Ok(ScriptedReply { steps, calls, finish, error, usage })
}

fn repeat(field: &Field<'_>) -> Result<ReplyStep, Fault> {
    let all = field.object(&["text", "times", "everyMs"])?;
    let text = all.needed("text")?.string()?.to_owned();
    let times = all.needed("times")?.number()?;
    if (text.len() as u64).saturating_mul(times) > MAX_REPEATED_BYTES {
        return Err(all.wrong("times", "together that would be over 64 MiB"));
    }
    Ok(ReplyStep::Repeat { text, times, every: all.pause("everyMs")?.unwrap_or_default() })
}

fn call(field: &Field<'_>) -> Result<ModelCall, Fault> {
    let all = field.object(&["name", "id", "arguments", "broken"])?;
    let name = all.needed("name")?.string()?.to_owned();
    let id = all.text("id")?.map(str::to_owned);
    let arguments = match (all.find("arguments"), all.text("broken")?) {
        (Some(_), Some(_)) => return Err(all.wrong("broken", "arguments are either JSON or broken")),
        (_, Some(broken)) => CallArguments::Broken(broken.to_owned()),
        (Some(arguments), None) => CallArguments::Json(arguments.value.clone()),
        (None, None) => CallArguments::Json(json!({})),
    };
    Ok(ModelCall { id, name, arguments })
}

fn failure(field: &Field<'_>) -> Result<(ChatErrorKind, String, Option<Duration>), Fault> {
    let (kind, detail, retry_after) = match field.value {
        Value::Object(_) => {
            let all = field.object(&["kind", "detail", "retryAfterMs"])?;
            let detail = all.text("detail")?.unwrap_or("the script says so").to_owned();
            (all.needed("kind")?, detail, all.pause("retryAfterMs")?)
        }
        _ => (field.clone(), "the script says so".to_owned(), None),
    };
    let named = serde_json::from_value(Value::from(kind.string()?));
    let named = named.map_err(|error| (kind.path.clone(), error.to_string()))?;
    Ok((named, detail, retry_after))
}

fn used(field: &Field<'_>) -> Result<Usage, Fault> {
    let all = field.object(&["inputTokens", "outputTokens"])?;
    let tokens = |name: &str| all.find(name).map_or(Ok(0), |field| field.number());
    Ok(Usage::new(tokens("inputTokens")?, tokens("outputTokens")?))
}
