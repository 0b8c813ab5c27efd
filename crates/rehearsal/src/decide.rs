//! Decides the next reply: what the message means, which call that is, and what is said about its result.

use quarterdeck_contracts::{ErrorType, Outcome};
use serde_json::{Map, Value, json};

use crate::context::{CallOutcome, Context, UserMessage};
use crate::parameter::Kind;
use crate::reply::Reply;
use crate::request::{Recogniser, Request};
use crate::{choose, lookup, missing, moderation, outcome, refusal, small_talk, words, world_clock};

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
    let before = last_question(context);
    let recogniser = recogniser(context, before);
    moderation::answer(context)
        .or_else(|| hang_up(context))
        .or_else(|| small_talk::answer(context).map(Reply::say))
        .or_else(|| {
            choose::accept(context, |text| recogniser.recognise(text).map(|it| it.tool.name.to_owned()))
        })
        .or_else(|| answer_yes_or_no(context).map(Reply::say))
        .or_else(|| world_clock::ask(context))
        .or_else(|| request(context, &recogniser).map(|(request, text)| act(context, request, &text)))
        .or_else(|| recogniser.is_order(context.message.text).then(|| decline(context, &recogniser)))
        .unwrap_or_else(|| lookup::look_up(context))
}

fn recogniser<'t, 'a>(context: &'t Context<'a>, before: Option<&'t str>) -> Recogniser<'t, 'a> {
    Recogniser { toolbox: &context.toolbox, now: &context.now, is_spoken: context.is_spoken(), before }
}

/// A goodbye in a call ends it, with the tool that takes a farewell.
fn hang_up(context: &Context<'_>) -> Option<Reply> {
    let ends = |tool: &crate::toolbox::Tool<'_>| {
        tool.properties().any(|(name, schema)| Kind::of(name, schema) == Kind::Farewell)
    };
    let mut tools = context.toolbox.tools.iter().filter(|tool| context.toolbox.is_usable(tool, true));
    let tool = tools
        .find(|tool| ends(tool))
        .filter(|_| context.is_spoken() && small_talk::is_goodbye(context.message.text))?;
    let (name, _) = tool.properties().find(|(name, schema)| Kind::of(name, schema) == Kind::Farewell)?;
    Some(Reply { text: "Goodbye!".into(), ..Reply::call(tool.name, json!({ name: "Goodbye!" })) })
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
fn request<'t, 'a>(
    context: &Context<'a>,
    recogniser: &Recogniser<'t, 'a>,
) -> Option<(Request<'t, 'a>, String)> {
    // A question for something missing is open until it is answered, dropped, or followed by another subject.
    let talk =
        context.earlier.iter().rev().take(MAX_OPEN_MESSAGES).take_while(|message| message.results.is_empty());
    let mut talk: Vec<&UserMessage<'_>> = talk.collect();
    talk.reverse();
    let mut open: Option<(&str, String)> = None;
    for message in talk {
        let is_dropped =
            small_talk::is_cancellation(message.text) || !message.answer.contains("lease tell me");
        let request = if is_dropped { None } else { interpret(recogniser, message.text, open.as_ref()) };
        open = request.filter(|it| !it.0.filled.missing.is_empty()).map(|(it, text)| (it.tool.name, text));
    }
    interpret(recogniser, context.message.text, open.as_ref())
}

/// A message alone, or as the answer to the question that is open.
fn interpret<'t, 'a>(
    recogniser: &Recogniser<'t, 'a>,
    text: &str,
    open: Option<&(&str, String)>,
) -> Option<(Request<'t, 'a>, String)> {
    let alone = recogniser.recognise(text);
    let Some((tool, text_before)) = open else { return alone.map(|it| (it, text.to_owned())) };
    match alone {
        Some(other) if other.tool.name != *tool => Some((other, text.to_owned())),
        None if is_wh_question(text) => None,
        _ => {
            let together = format!("{text_before}. {text}");
            Some((recogniser.complete(tool, &together, text)?, together))
        }
    }
}

fn is_wh_question(text: &str) -> bool {
    let first = words::tokens(text, 1).first().map(|token| token.lower.clone()).unwrap_or_default();
    matches!(
        first.as_str(),
        "who" | "what" | "where" | "why" | "how" | "which" | "when" | "did" | "was" | "is"
    )
}

/// The last question that was looked up.
fn last_question<'a>(context: &Context<'a>) -> Option<&'a str> {
    context
        .earlier
        .iter()
        .rev()
        .find(|message| lookup::is_lookup(&message.results))
        .map(|message| message.text)
}

fn act(context: &Context<'_>, Request { tool, filled }: Request<'_, '_>, text: &str) -> Reply {
    if !tool.has_guide
        && !context.has_called(DESCRIBE)
        && tool.name != "kb_get"
        && let Some(describe) = context.toolbox.find(DESCRIBE)
    {
        let name = describe.properties().next().map_or("tool_id", |(name, _)| name);
        let arguments = Map::from_iter([(name.to_owned(), Value::from(tool.name))]);
        return Reply::call(DESCRIBE, arguments.into());
    }
    if let Some((id_name, _)) = choose::lister(&context.toolbox, tool)
        && filled.missing.contains(&id_name)
        && let Some(reply) = choose::begin(context, tool, text)
    {
        return reply;
    }
    // A list is of whole days, and of the next ones where none was said.
    let listed = choose::listed(context, tool, text).filter(|_| !tool.is_action());
    let is_time = |name: &&str| tool.property(name).is_some_and(|schema| Kind::of(name, schema).is_time());
    if !filled.missing.iter().all(|name| listed.is_some() && is_time(name)) {
        return Reply::say(missing::question(tool, &filled.missing, choose::has_day(context, text)));
    }
    let mut values = filled.values;
    values.extend(listed.into_iter().flatten());
    Reply::call(tool.name, values.into())
}

/// An order that no tool plainly carries out is not given to the nearest one.
fn decline(context: &Context<'_>, recogniser: &Recogniser<'_, '_>) -> Reply {
    let nearest = recogniser
        .nearest(context.message.text)
        .map(|tool| format!(" The nearest that I have is: {}.", tool.label()));
    Reply::say(format!(
        "I have no tool that plainly does that.{} Ask “what can you do?” to see what there is.",
        nearest.unwrap_or_default()
    ))
}

fn answer_results(context: &Context<'_>, results: &[CallOutcome<'_>]) -> Reply {
    if results.iter().all(|result| result.name == DESCRIBE) {
        return answer_user(context);
    }
    if let [list] = results
        && list.data().is_some()
        && let Some((meant, text)) = request(context, &recogniser(context, None))
        && meant.tool.name != list.name
        && let Some(reply) = choose::continue_with(context, meant.tool, &text, list)
    {
        return reply;
    }
    if lookup::is_lookup(results) {
        return lookup::after_results(context);
    }
    let mut reply = Reply::silence();
    for result in results {
        let text = match result.outcome {
            Outcome::Failure(error) => refusal::explain(context, result.name, error),
            Outcome::Success(data) => outcome::describe(context, result, data),
        };
        if let Some(text) = text.filter(|text| !reply.text.contains(text.as_str())) {
            reply.text.push_str(if reply.text.is_empty() { "" } else { " " });
            reply.text.push_str(&text);
        }
    }
    reply
}

/// An answer when nothing more may be called.
fn answer_without_calls(context: &Context<'_>) -> Reply {
    Reply::say(match lookup::is_lookup(&context.results) {
        true => lookup::answer(context),
        false => {
            "I may not look anything up now, and I only say what I have looked up. Please ask again.".into()
        }
    })
}
