//! Decides the next reply.

use quarterdeck_contracts::{ErrorType, Outcome};
use serde_json::{Map, Value};

use crate::context::{CallOutcome, Context, UserMessage};
use crate::parameter::Kind;
use crate::recognise::{RecognisedRequest, Recogniser};
use crate::reply::Reply;
use crate::{missing, moderation, offer, outcome, refusal, search, small_talk, words};

/// The tool that gives a guide when the system text has only summaries.
pub(crate) const DESCRIBE: &str = "describe_tool";
/// How many messages back a question for missing arguments is still open.
const MAX_OPEN_MESSAGES: usize = 4;

pub(crate) fn reply(context: &Context<'_>) -> Reply {
    let reply = match context.newest() {
        [] => answer_user(context),
        results => answer_results(context, results),
    };
    if reply.calls.is_empty() || context.may_call { reply } else { answer_without_calls(context) }
}

fn answer_user(context: &Context<'_>) -> Reply {
    if let Some(farewell) = moderation::requested_farewell(&context.message) {
        return Reply::say(farewell);
    }
    if let Some(reply) = moderation::answer(context) {
        return reply;
    }
    if let Some(text) = small_talk::answer(context) {
        return Reply::say(text);
    }
    if let Some(reply) = offer::accept(context) {
        return reply;
    }
    if let Some(text) = answer_yes_or_no(context) {
        return Reply::say(text);
    }
    match request(context) {
        Some(recognised) => act(context, recognised),
        None => search::look_up(context),
    }
}

/// A “yes” in words approves nothing: only the user's own click does, so that no model can approve itself.
fn answer_yes_or_no(context: &Context<'_>) -> Option<String> {
    if !small_talk::is_yes_or_no(context.message.text) {
        return None;
    }
    let last = context.earlier.last().and_then(|message| message.results.last());
    match last.map(|result| result.outcome) {
        Some(Outcome::Failure(error)) if error.kind == ErrorType::ConfirmationRequired => Some(
            "I cannot answer that question for you: please use the buttons that are shown with it, and I will get the result."
                .into(),
        ),
        _ => Some("All right. What would you like to know or do?".into()),
    }
}

/// The tool that is meant, with what this message and the ones before it say about it.
fn request<'t, 'a>(context: &'t Context<'a>) -> Option<RecognisedRequest<'t, 'a>> {
    let recogniser = Recogniser::new(&context.toolbox, &context.now);
    let before = last_question(context);
    // A question for something missing is open until it is answered, dropped, or followed by another subject.
    let talk =
        context.earlier.iter().rev().take(MAX_OPEN_MESSAGES).take_while(|message| message.results.is_empty());
    let mut talk: Vec<&UserMessage<'_>> = talk.collect();
    talk.reverse();
    let mut open: Option<(&str, String)> = None;
    for message in talk {
        let recognised = match small_talk::is_cancellation(message.text) {
            true => None,
            false => interpret(&recogniser, message.text, open.as_ref(), before),
        };
        open = recognised.filter(|it| !it.0.filled.missing.is_empty()).map(|(it, text)| (it.tool.name, text));
    }
    interpret(&recogniser, context.message.text, open.as_ref(), before).map(|(recognised, _)| recognised)
}

/// A message alone, or as the answer to the question that is open.
fn interpret<'t, 'a>(
    recogniser: &Recogniser<'t, 'a>,
    text: &str,
    open: Option<&(&str, String)>,
    before: Option<&str>,
) -> Option<(RecognisedRequest<'t, 'a>, String)> {
    let alone = recogniser.recognise(text, before);
    let Some((tool, text_before)) = open else { return alone.map(|it| (it, text.to_owned())) };
    match alone {
        Some(other) if other.tool.name != *tool => Some((other, text.to_owned())),
        None if is_wh_question(text) => None,
        _ => {
            let together = format!("{text_before}. {text}");
            Some((recogniser.complete(tool, &together, text, before)?, together))
        }
    }
}

fn is_wh_question(text: &str) -> bool {
    let first = words::tokens(text, 1).first().map(|token| token.lower.clone()).unwrap_or_default();
    matches!(first.as_str(), "who" | "what" | "where" | "why" | "how" | "which" | "when")
}

/// The last question that was searched.
fn last_question<'a>(context: &Context<'a>) -> Option<&'a str> {
    let searched =
        |message: &&UserMessage<'_>| message.results.iter().any(|result| result.name.contains("search"));
    context.earlier.iter().rev().find(searched).map(|message| message.text)
}

fn act(context: &Context<'_>, RecognisedRequest { tool, filled }: RecognisedRequest<'_, '_>) -> Reply {
    if !tool.has_guide
        && !context.has_called(DESCRIBE)
        && tool.name != "kb_get"
        && let Some(describe) = context.toolbox.find(DESCRIBE)
    {
        let name = describe.properties().next().map_or("tool_id", |(name, _)| name);
        let arguments = Map::from_iter([(name.to_owned(), Value::from(tool.name))]);
        return Reply::call(DESCRIBE, arguments.into());
    }
    if !filled.missing.is_empty() {
        return Reply::say(missing::question(tool, &filled.missing));
    }
    let farewell = tool.properties().find(|(name, schema)| Kind::of(name, schema) == Kind::Farewell);
    let farewell_text =
        farewell.and_then(|(name, _)| filled.values.get(name)?.as_str()).unwrap_or_default().to_owned();
    Reply { text: farewell_text, ..Reply::call(tool.name, filled.values.into()) }
}

fn answer_results(context: &Context<'_>, results: &[CallOutcome<'_>]) -> Reply {
    if results.iter().all(|result| result.name == DESCRIBE) {
        return answer_user(context);
    }
    let mut reply = Reply::silence();
    for result in results {
        let next = answer_result(context, result);
        if !reply.text.is_empty() && !next.text.is_empty() {
            reply.text.push(' ');
        }
        reply.text.push_str(&next.text);
        reply.calls.extend(next.calls);
    }
    reply
}

fn answer_result(context: &Context<'_>, result: &CallOutcome<'_>) -> Reply {
    match result.outcome {
        Outcome::Failure(error) => {
            refusal::explain(context, result.name, error).map_or_else(Reply::silence, Reply::say)
        }
        Outcome::Success(data) if data.get("results").is_some_and(Value::is_array) => {
            search::after_search(context, result, data)
        }
        Outcome::Success(data) if data.get("records").is_some() => Reply::say(
            search::from_record(context, data).unwrap_or_else(|| "There is no such record.".into()),
        ),
        Outcome::Success(data) => {
            outcome::describe(context, result, data).map_or_else(Reply::silence, Reply::say)
        }
    }
}

/// An answer when nothing more may be called.
fn answer_without_calls(context: &Context<'_>) -> Reply {
    Reply::say(search::from_findings(context).unwrap_or_else(|| {
        "I may not look anything up now, and I only say what I have looked up. Please ask again.".into()
    }))
}
