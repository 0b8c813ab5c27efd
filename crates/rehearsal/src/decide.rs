//! What to do next, from what there is.

use quarterdeck_contracts::{ErrorType, Outcome};
use serde_json::{Map, Value};

use crate::parameter::Kind;
use crate::recognise::{Recognised, Recogniser};
use crate::reply::Reply;
use crate::scene::{Finished, Heard, Scene};
use crate::{ask, moderation, offer, outcome, refusal, search, small_talk, words};

/// The built-in tool that tells a guide when there was no room for all of them.
pub(crate) const DESCRIBE: &str = "describe_tool";
/// How many messages back a question for something missing is still open.
const OPEN: usize = 4;

/// The next reply of a conversation.
pub(crate) fn reply(scene: &Scene<'_>) -> Reply {
    let reply = match scene.newest() {
        [] => to_person(scene),
        results => to_results(scene, results),
    };
    if reply.calls.is_empty() || scene.may_call { reply } else { in_words(scene) }
}

/// The person has said something.
fn to_person(scene: &Scene<'_>) -> Reply {
    if let Some(reply) = moderation::answer(scene) {
        return reply;
    }
    if let Some(text) = small_talk::answer(scene) {
        return Reply::say(text);
    }
    if let Some(reply) = offer::taken(scene) {
        return reply;
    }
    if let Some(text) = word_on_an_open_question(scene) {
        return Reply::say(text);
    }
    match request(scene) {
        Some(recognised) => act(scene, recognised),
        None => search::look_up(scene),
    }
}

/// A “yes” in words approves nothing: only the person's own click does, so that no model can approve itself.
fn word_on_an_open_question(scene: &Scene<'_>) -> Option<String> {
    if !small_talk::is_word(scene.said.text) {
        return None;
    }
    let last = scene.earlier.last().and_then(|heard| heard.results.last());
    match last.map(|result| result.outcome) {
        Some(Outcome::Failure(error)) if error.kind == ErrorType::ConfirmationRequired => Some(
            "I cannot answer that question for you: please use the buttons that are shown with it, and I will hear what came of it."
                .into(),
        ),
        _ => Some("All right. What would you like to know or do?".into()),
    }
}

/// The tool that is meant, with what this message and the ones before it say about it.
fn request<'t, 'a>(scene: &'t Scene<'a>) -> Option<Recognised<'t, 'a>> {
    let recogniser = Recogniser::new(&scene.toolbox, &scene.now);
    let before = last_question(scene);
    // A question for something missing is open until it is answered, dropped, or followed by another subject.
    let talk = scene.earlier.iter().rev().take(OPEN).take_while(|heard| heard.results.is_empty());
    let mut talk: Vec<&Heard<'_>> = talk.collect();
    talk.reverse();
    let mut open: Option<(&str, String)> = None;
    for heard in talk {
        let recognised = match small_talk::lets_go(heard.text) {
            true => None,
            false => understand(&recogniser, heard.text, open.as_ref(), before),
        };
        open = recognised.filter(|it| !it.0.filled.missing.is_empty()).map(|(it, text)| (it.tool.name, text));
    }
    understand(&recogniser, scene.said.text, open.as_ref(), before).map(|(recognised, _)| recognised)
}

/// A message alone, or as the answer to the question that is open.
fn understand<'t, 'a>(
    recogniser: &Recogniser<'t, 'a>,
    text: &str,
    open: Option<&(&str, String)>,
    before: Option<&str>,
) -> Option<(Recognised<'t, 'a>, String)> {
    let alone = recogniser.recognise(text, before);
    let Some((tool, said)) = open else { return alone.map(|it| (it, text.to_owned())) };
    match alone {
        Some(other) if other.tool.name != *tool => Some((other, text.to_owned())),
        None if is_wh_question(text) => None,
        _ => {
            let together = format!("{said}. {text}");
            Some((recogniser.complete(tool, &together, text, before)?, together))
        }
    }
}

fn is_wh_question(text: &str) -> bool {
    let first = words::tokens(text, 1).first().map(|token| token.lower.clone()).unwrap_or_default();
    matches!(first.as_str(), "who" | "what" | "where" | "why" | "how" | "which" | "when")
}

/// What the person asked of the knowledge base last.
fn last_question<'a>(scene: &Scene<'a>) -> Option<&'a str> {
    let searched = |heard: &&Heard<'_>| heard.results.iter().any(|result| result.name.contains("search"));
    scene.earlier.iter().rev().find(searched).map(|heard| heard.text)
}

fn act(scene: &Scene<'_>, Recognised { tool, filled }: Recognised<'_, '_>) -> Reply {
    if !tool.has_guide
        && !scene.has_called(DESCRIBE)
        && tool.name != "kb_get"
        && let Some(describe) = scene.toolbox.find(DESCRIBE)
    {
        let name = describe.properties().next().map_or("tool_id", |(name, _)| name);
        let arguments = Map::from_iter([(name.to_owned(), Value::from(tool.name))]);
        return Reply::call(DESCRIBE, arguments.into());
    }
    if !filled.missing.is_empty() {
        return Reply::say(ask::for_missing(tool, &filled.missing));
    }
    let farewell = tool.properties().find(|(name, schema)| Kind::of(name, schema) == Kind::Farewell);
    let said =
        farewell.and_then(|(name, _)| filled.arguments.get(name)?.as_str()).unwrap_or_default().to_owned();
    Reply { text: said, ..Reply::call(tool.name, filled.arguments.into()) }
}

/// Calls have come to something.
fn to_results(scene: &Scene<'_>, results: &[Finished<'_>]) -> Reply {
    if results.iter().all(|result| result.name == DESCRIBE) {
        return to_person(scene);
    }
    let mut reply = Reply::silence();
    for result in results {
        let next = to_result(scene, result);
        if !reply.text.is_empty() && !next.text.is_empty() {
            reply.text.push(' ');
        }
        reply.text.push_str(&next.text);
        reply.calls.extend(next.calls);
    }
    reply
}

fn to_result(scene: &Scene<'_>, result: &Finished<'_>) -> Reply {
    match result.outcome {
        Outcome::Failure(error) => {
            refusal::explain(scene, result.name, error).map_or_else(Reply::silence, Reply::say)
        }
        Outcome::Success(data) if data.get("results").is_some_and(Value::is_array) => {
            search::after_search(scene, result, data)
        }
        Outcome::Success(data) if data.get("records").is_some() => {
            Reply::say(search::from_record(scene, data).unwrap_or_else(|| "There is no such record.".into()))
        }
        Outcome::Success(data) => outcome::tell(scene, result, data).map_or_else(Reply::silence, Reply::say),
    }
}

/// An answer when nothing more may be called.
fn in_words(scene: &Scene<'_>) -> Reply {
    Reply::say(search::from_what_there_is(scene).unwrap_or_else(|| {
        "I may not look anything up now, and I only say what I have looked up. Please ask again.".into()
    }))
}
