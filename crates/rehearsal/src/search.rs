//! The retrieval-first loop: search, get the best record, answer with its own sentences and its id.

use serde_json::{Map, Value, json};

use crate::context::{CallOutcome, Context};
use crate::quoting::{begins_with_pronoun, select_sentences};
use crate::reply::Reply;
use crate::sentences::{self, Sentence};
use crate::small_talk;
use crate::toolbox::Tool;
use crate::words;

const MAX_SENTENCES: usize = 3;
/// In a call, answers are shorter.
const MAX_SPOKEN_SENTENCES: usize = 2;

pub(crate) fn look_up(context: &Context<'_>) -> Reply {
    if asks_for_more(context.message.text)
        && let Some((tool, id)) = last_record(context)
    {
        return Reply::call(tool, json!({ "id": id }));
    }
    let Some(tool) = context.toolbox.search() else {
        return Reply::say(
            "I have no knowledge base to look into here, and I only say what I can look up. Ask “what can you do?” to \
             see what is possible.",
        );
    };
    let mut arguments = Map::new();
    let elsewhere = other_namespace(tool, context.message.text);
    let question = match (&elsewhere, last_query(context)) {
        (Some((_, rest)), Some(last)) if words::subjects(rest).is_empty() => last.to_owned(),
        (Some((_, rest)), _) if !rest.is_empty() => rest.clone(),
        _ => question(context),
    };
    arguments.insert("query".into(), query(tool, &question).into());
    if let Some((namespace, _)) = elsewhere {
        arguments.insert("namespace".into(), namespace.into());
    }
    Reply::call(tool.name, Value::Object(arguments))
}

/// The question, with the one before it if it does not stand alone.
pub(crate) fn question(context: &Context<'_>) -> String {
    let said = small_talk::without_greeting(context.message.text);
    match last_query(context) {
        Some(last) if is_follow_up(said) => format!("{last} {said}"),
        _ => said.to_owned(),
    }
}

/// The query of this turn, or else the question.
fn asked(context: &Context<'_>) -> String {
    let searched = context.results.iter().rev().find_map(|result| result.arguments?.get("query")?.as_str());
    searched.map_or_else(|| question(context), str::to_owned)
}

/// The question within the length that the tool takes.
fn query(tool: &Tool<'_>, question: &str) -> String {
    let most =
        tool.property("query").and_then(|it| it.get("maxLength")).and_then(Value::as_u64).unwrap_or(200);
    let most = usize::try_from(most).unwrap_or(200).clamp(1, 2_000);
    // One space between words; whitespace does not count for search.
    let mut query = String::new();
    for word in question.split_whitespace() {
        if query.chars().count() + word.chars().count() + 1 > most {
            break;
        }
        if !query.is_empty() {
            query.push(' ');
        }
        query.push_str(word);
    }
    if query.is_empty() {
        query = question.trim().chars().take(most).collect();
    }
    query
}

fn last_query<'a>(context: &Context<'a>) -> Option<&'a str> {
    let results = context.earlier.iter().rev().take(4).flat_map(|message| message.results.iter().rev());
    results
        .filter(|result| result.name.contains("search"))
        .find_map(|result| result.arguments?.get("query")?.as_str())
}

fn last_record<'a>(context: &Context<'a>) -> Option<(&'static str, &'a str)> {
    context.toolbox.find(GET)?;
    let results = context.earlier.iter().rev().take(2).flat_map(|message| message.results.iter().rev());
    let mut records = results.filter_map(|result| result.data()?.get("records")?.get(0)?.get("id")?.as_str());
    records.next().map(|id| (GET, id))
}

const GET: &str = "kb_get";

#[rustfmt::skip]
const PRONOUNS: &[&str] =
    &["he", "she", "it", "they", "him", "her", "them", "his", "its", "their", "there", "that", "this"];
#[rustfmt::skip]
const REQUESTS_FOR_MORE: &[&str] = &[
    "tell me more", "more", "go on", "continue", "what else", "and then", "say more", "more about it", "more about that",
    "tell me more about it", "tell me more about that", "what more", "anything else",
];

/// Whether a message means what was talked about before: “and when?”, “who was she?”.
fn is_follow_up(text: &str) -> bool {
    let tokens = words::tokens(text, 12);
    let subjects = words::subjects(text).len();
    let first = tokens.first().map_or("", |token| token.lower.as_str());
    let is_pronoun = |word: &str| PRONOUNS.contains(&word);
    match tokens.len() {
        0 => false,
        1..=7 => {
            subjects == 0
                || matches!(first, "and" | "but" | "also" | "so")
                || (subjects <= 2 && tokens.iter().any(|token| is_pronoun(&token.lower)))
        }
        _ => false,
    }
}

fn asks_for_more(text: &str) -> bool {
    REQUESTS_FOR_MORE.contains(&small_talk::phrase(text).as_str())
}

/// Another part of the base, when the message asks for one by name (“try public”), and the rest of the message.
fn other_namespace<'a>(tool: &Tool<'a>, text: &str) -> Option<(&'a str, String)> {
    let known = tool.property("namespace")?.get("enum")?.as_array()?;
    let tokens = words::tokens(text, 40);
    let is_about_the_base = |word: &str| {
        matches!(word, "search" | "try" | "look" | "namespace" | "base" | "part" | "records" | "knowledge")
    };
    if !tokens.iter().any(|token| is_about_the_base(&token.lower)) {
        return None;
    }
    let namespace = known
        .iter()
        .filter_map(Value::as_str)
        .find(|name| tokens.iter().any(|token| token.lower == *name))?;
    let rest = tokens.iter().filter(|token| token.lower != namespace && !is_about_the_base(&token.lower));
    let rest = rest.skip_while(|token| words::is_stop_word(&token.lower));
    let rest: Vec<&str> = rest.map(|token| token.text).collect();
    Some((namespace, rest.join(" ")))
}

/// What to do with what a search found.
pub(crate) fn after_search(context: &Context<'_>, found: &CallOutcome<'_>, data: &Value) -> Reply {
    let best = data.get("results").and_then(|results| results.get(0));
    let Some(best) = best else { return Reply::say(nothing(context, found, data)) };
    let id = best.get("id").and_then(Value::as_str);
    match (context.toolbox.find(GET), id) {
        (Some(get), Some(id))
            if context.may_call && !context.has_called(GET) && get.property("id").is_some() =>
        {
            Reply::call(GET, json!({ "id": id }))
        }
        _ => Reply::say(
            from_snippets(context).unwrap_or_else(|| "I found a record, but it has no text.".into()),
        ),
    }
}

/// Says that nothing was found, and what may help.
fn nothing(context: &Context<'_>, found: &CallOutcome<'_>, data: &Value) -> String {
    if data.get("empty").and_then(Value::as_str) == Some("filtered") {
        let without = data.get("without_filters").and_then(Value::as_u64);
        let count = without.map_or_else(|| "There are records".to_owned(), counted_records);
        return format!(
            "Nothing in the knowledge base passes those filters. {count} without them, so try it that way."
        );
    }
    let namespace = context.toolbox.find(found.name).and_then(|tool| tool.property("namespace"));
    let given = found.arguments.and_then(|arguments| arguments.get("namespace"));
    let default = namespace.and_then(|schema| schema.get("default"));
    let searched = given.or(default).and_then(Value::as_str).unwrap_or_default();
    let all = namespace.and_then(|schema| schema.get("enum")?.as_array()).map_or(&[][..], Vec::as_slice);
    let others: Vec<String> = all
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| *name != searched)
        .map(|name| format!("“try {name}”"))
        .collect();
    let mut text = "The knowledge base has nothing on that.".to_owned();
    if others.is_empty() {
        text.push_str(" Other words may find something: names and places work best.");
    } else {
        text.push_str(&format!(
            " I looked in its part “{searched}”. Other words may help, or say {} to look elsewhere.",
            others.join(" or ")
        ));
    }
    text
}

fn counted_records(count: u64) -> String {
    if count == 1 { "There is 1 record".into() } else { format!("There are {count} records") }
}

/// The answer, from the record that was fetched.
pub(crate) fn from_record(context: &Context<'_>, data: &Value) -> Option<String> {
    let record = data.get("records")?.get(0)?;
    let id = record.get("id")?.as_str()?;
    let text = record.get("full_text").and_then(Value::as_str).unwrap_or_default();
    let all = sentences::sentences(text);
    let quoted = if asks_for_more(context.message.text) {
        further(context, &all)
    } else {
        select_sentences(&all, &asked(context), title(record), most(context))
    };
    if quoted.is_empty() {
        return Some(match asks_for_more(context.message.text) && !all.is_empty() {
            true => format!("That is all that the record says [{id}]."),
            false => format!("There is a record on that, “{}”, but it has no text [{id}].", title(record)),
        });
    }
    let quoted: Vec<&str> = quoted.iter().map(|sentence| sentence.text.as_str()).collect();
    // “He died on board” needs to say who.
    let title = title(record);
    let needs_title = quoted.first().is_some_and(|first| begins_with_pronoun(first));
    let who = if needs_title { format!("{title}: ") } else { String::new() };
    let see_also = see_also(context, id).unwrap_or_default();
    Some(format!("{who}{} [{id}]{see_also}", quoted.join(" ")))
}

fn most(context: &Context<'_>) -> usize {
    if context.is_spoken() { MAX_SPOKEN_SENTENCES } else { MAX_SENTENCES }
}

/// The sentences after the last one that was told before.
fn further<'a>(context: &Context<'_>, all: &'a [Sentence]) -> Vec<&'a Sentence> {
    let answers: Vec<&str> =
        context.earlier.iter().rev().take(30).map(|message| message.answer.as_str()).collect();
    let was_told = |sentence: &Sentence| answers.iter().any(|answer| answer.contains(&sentence.text));
    let after = all.iter().rposition(was_told).map_or(0, |at| at + 1);
    let (before, rest) = all.split_at(after);
    rest.iter().chain(before).filter(|sentence| !was_told(sentence)).take(most(context)).collect()
}

/// One more record that was found and is nearly as good.
fn see_also(context: &Context<'_>, id: &str) -> Option<String> {
    let results =
        context.results.iter().rev().find_map(|result| result.data()?.get("results")?.as_array())?;
    let score = |result: &Value| result.get("score").and_then(Value::as_f64).unwrap_or_default();
    let best = results.first().map(score)?;
    let other = results.iter().find(|result| result.get("id").and_then(Value::as_str) != Some(id))?;
    let other_id = other.get("id")?.as_str()?;
    (score(other) >= 0.6 * best).then(|| format!(" See also “{}” [{other_id}].", title(other)))
}

/// The answer from the passages that a search brought, when no record could be fetched.
pub(crate) fn from_snippets(context: &Context<'_>) -> Option<String> {
    let results =
        context.results.iter().rev().find_map(|result| {
            result.data()?.get("results")?.as_array().filter(|results| !results.is_empty())
        })?;
    let best = results.first()?;
    let id = best.get("id")?.as_str()?;
    let snippet = best.get("snippet").and_then(Value::as_str).unwrap_or_default();
    let all = sentences::sentences(snippet);
    let quoted: Vec<&str> = select_sentences(&all, &asked(context), title(best), most(context))
        .iter()
        .map(|sentence| sentence.text.as_str())
        .collect();
    match quoted.is_empty() {
        true => Some(format!("The record “{}” is about that [{id}].", title(best))),
        false => Some(format!("{} [{id}]", quoted.join(" "))),
    }
}

/// Everything that this turn has found so far, as an answer.
pub(crate) fn from_findings(context: &Context<'_>) -> Option<String> {
    let record = context.results.iter().rev().find_map(|result| {
        result.data().filter(|data| data.get("records").is_some()).and_then(|data| from_record(context, data))
    });
    record.or_else(|| from_snippets(context))
}

fn title(record: &Value) -> &str {
    record.get("title").and_then(Value::as_str).unwrap_or("untitled")
}
