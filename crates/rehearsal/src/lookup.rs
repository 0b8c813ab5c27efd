//! The retrieval-first loop: search, get the best records, and quote the sentence that answers, or show what is nearest.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::context::{CallOutcome, Context, UserMessage};
use crate::evidence::{self, Finding, Source};
use crate::question::{self, Kind, Question};
use crate::reply::Reply;
use crate::toolbox::Tool;
use crate::{small_talk, words};

const GET: &str = "kb_get";
const MAX_FETCHED: usize = 5;
const MAX_CARDS: usize = 3;
const MAX_MORE_SENTENCES: usize = 3;
/// What another record must score to be named beside an answer: nearly as well as the best, and well in itself.
const MIN_SEE_ALSO_SCORE: f64 = 0.6;
const MIN_SEE_ALSO_SHARE: f64 = 0.85;
/// What a record must score, beside the best, to be shown as near.
const MIN_CARD_SHARE: f64 = 0.5;
/// How many messages back a record is still what “it” means.
const MAX_CITED_MESSAGES: usize = 6;

pub(crate) fn look_up(context: &Context<'_>) -> Reply {
    if asks_for_more(context.message.text)
        && let Some(cited) = last_cited(context)
        && context.toolbox.find(GET).is_some()
    {
        return Reply::call(GET, json!({ "id": cited.id }));
    }
    let Some(tool) = context.toolbox.search() else {
        return Reply::say(
            "I have no knowledge base to look into here, and I only say what I can look up. Ask “what can you do?” to \
             see what is possible.",
        );
    };
    search(context, tool, 0)
}

/// Searches the namespaces from this one on. Where there is no budget to search them all and to fetch a record too, they are
/// searched one by one, as long as no record is about what was asked.
fn search(context: &Context<'_>, tool: &Tool<'_>, from: usize) -> Reply {
    let said = question::without_lead_in(small_talk::without_greeting(context.message.text));
    let query = match last_cited(context).filter(|_| question(context).has_pronoun) {
        Some(cited) => query(tool, &format!("{said} {}", cited.title)),
        None => query(tool, said),
    };
    let namespaces = context.toolbox.namespaces();
    if namespaces.is_empty() {
        return Reply::call(tool.name, json!({ "query": query }));
    }
    let count = if is_tight(context) { 1 } else { usize::MAX };
    let searches = namespaces.iter().skip(from).take(count);
    let calls = searches.map(|name| (tool.name.to_owned(), json!({ "query": query, "namespace": name })));
    Reply { text: String::new(), calls: calls.collect() }
}

fn is_tight(context: &Context<'_>) -> bool {
    context.toolbox.max_searches.is_some_and(|max| max <= context.toolbox.namespaces().len())
}

/// What this turn asks, with what it takes from the question before.
fn question(context: &Context<'_>) -> Question {
    let searched = |message: &&UserMessage<'_>| is_lookup(&message.results) || message.answer.contains('[');
    let mut previous: Option<Question> = None;
    let earlier: Vec<_> = context.earlier.iter().filter(searched).collect();
    for message in earlier.iter().skip(earlier.len().saturating_sub(4)) {
        previous = Some(Question::parse(small_talk::without_greeting(message.text), previous.as_ref()));
    }
    let mut question = Question::parse(small_talk::without_greeting(context.message.text), previous.as_ref());
    question.has_pronoun &= last_cited(context).is_some();
    question
}

/// Within the length that the tool takes; whitespace does not count for search.
fn query(tool: &Tool<'_>, text: &str) -> String {
    let max =
        tool.property("query").and_then(|it| it.get("maxLength")).and_then(Value::as_u64).unwrap_or(200);
    let max = usize::try_from(max).unwrap_or(200).clamp(1, 2_000);
    let mut query = String::new();
    for word in text.split_whitespace() {
        if query.chars().count() + word.chars().count() + 1 > max {
            break;
        }
        query.push_str(if query.is_empty() { "" } else { " " });
        query.push_str(word);
    }
    if query.is_empty() { text.trim().chars().take(max).collect() } else { query }
}

fn is_found(data: &Value) -> bool {
    data.get("results").or_else(|| data.get("records")).is_some_and(Value::is_array)
}

/// Whether these results are of a search or of records.
pub(crate) fn is_lookup(results: &[CallOutcome<'_>]) -> bool {
    results.iter().any(|it| it.data().is_some_and(is_found))
}

/// The record that an earlier answer rests on: the first that it names, by its id or by its title.
struct Cited<'a> {
    id: &'a str,
    title: Cow<'a, str>,
}

fn last_cited<'a>(context: &'a Context<'_>) -> Option<Cited<'a>> {
    let messages = context.earlier.iter().rev().take(MAX_CITED_MESSAGES);
    let cited: Vec<_> =
        messages.filter_map(|it| Some((cited(it)?, it.answer.contains(CANNOT_REASON)))).collect();
    let answer = cited.iter().position(|(_, is_card)| !is_card).unwrap_or(0);
    cited.into_iter().nth(answer).map(|(cited, _)| cited)
}

fn cited<'a>(message: &'a UserMessage<'_>) -> Option<Cited<'a>> {
    let found = message.results.iter().filter_map(|it| it.data()).flat_map(items);
    let mut found = found.filter_map(|it| Some((it.get("id")?.as_str()?, it.get("title")?.as_str()?)));
    let brackets = message.answer.split('[').skip(1).filter_map(|it| Some(it.split_once(']')?.0));
    let is_id = |it: &&str| it.split_once(':').is_some_and(|(_, slug)| !slug.is_empty()) && !it.contains(' ');
    match brackets.into_iter().find(is_id) {
        // A client may send the words of a conversation without its results: the id then says what it is about.
        Some(id) => {
            let title = found.find(|it| it.0 == id).map(|it| it.1.into());
            Some(Cited {
                id,
                title: title
                    .unwrap_or_else(|| id.split(':').skip(1).collect::<String>().replace('-', " ").into()),
            })
        }
        None => {
            let named = found.filter_map(|it| Some((message.answer.find(&format!("“{}”", it.1))?, it)));
            named.min_by_key(|(place, _)| *place).map(|(_, (id, title))| Cited { id, title: title.into() })
        }
    }
}

fn items(data: &Value) -> impl Iterator<Item = &Value> {
    ["results", "records"].into_iter().filter_map(|name| data.get(name)?.as_array()).flatten()
}

/// What to do with what was found in this turn.
pub(crate) fn after_results(context: &Context<'_>) -> Reply {
    let best = best_results(context);
    let searched = context.results.len();
    let may_go_on = context.may_call && context.toolbox.max_searches.is_none_or(|max| searched < max);
    if is_tight(context) && may_go_on && !context.has_called(GET) {
        let asked = question(context);
        let is_about = |it: &&Value| {
            let title = it.get("title").and_then(Value::as_str).unwrap_or_default();
            words::subjects(title).iter().any(|stem| asked.stems().contains(stem.as_str()))
        };
        let has_more = searched < context.toolbox.namespaces().len();
        if let Some(tool) =
            context.toolbox.search().filter(|_| has_more && !asked.has_pronoun && !best.iter().any(is_about))
        {
            return search(context, tool, searched);
        }
    }
    let get = context.toolbox.find(GET).filter(|_| !context.has_called(GET) && may_go_on);
    let Some(get) = get.filter(|_| !best.is_empty()) else {
        return Reply::say(answer(context));
    };
    // The best of each namespace: their scores are not of one scale.
    let lists = context.results.iter().filter_map(|it| it.data()?.get("results")?.as_array());
    let lists: Vec<&Vec<Value>> = lists.collect();
    let ranked = (0..MAX_FETCHED)
        .flat_map(|rank| lists.iter().filter_map(move |list| list.get(rank)?.get("id")?.as_str()));
    let mut ids: Vec<&str> = ranked.take(MAX_FETCHED).collect();
    if let Some(cited) = last_cited(context).filter(|_| question(context).has_pronoun) {
        ids.retain(|id| *id != cited.id);
        ids.insert(0, cited.id);
        ids.truncate(MAX_FETCHED);
    }
    match ids.as_slice() {
        [] => Reply::say(answer(context)),
        _ if get.property("ids").is_some() && ids.len() > 1 => Reply::call(GET, json!({ "ids": ids })),
        [id, ..] => Reply::call(GET, json!({ "id": id })),
    }
}

/// All search results of this turn, the best first.
fn best_results<'a>(context: &Context<'a>) -> Vec<&'a Value> {
    let found = context.results.iter().filter_map(|it| it.data()?.get("results")?.as_array()).flatten();
    let mut found: Vec<&Value> = found.collect();
    found.sort_by(|a, b| score(b).total_cmp(&score(a)));
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|it| seen.insert(it.get("id").and_then(Value::as_str)));
    found
}

fn score(result: &Value) -> f64 {
    result.get("score").and_then(Value::as_f64).unwrap_or_default()
}

/// The answer from everything that this turn has found.
pub(crate) fn answer(context: &Context<'_>) -> String {
    let cited = last_cited(context);
    let records = context.results.iter().filter_map(|it| it.data()?.get("records")?.as_array()).flatten();
    let records: Vec<&Value> = records.collect();
    let results = best_results(context);
    if let (true, [record, ..]) = (results.is_empty(), records.as_slice()) {
        return whole_record(context, record);
    }
    let found = if records.is_empty() { &results } else { &records };
    let cited = cited.as_ref().map(|it| it.id);
    let mut sources: Vec<Source<'_>> = found.iter().filter_map(|it| Source::read(it, cited)).collect();
    for source in &mut sources {
        let result = results.iter().find(|it| it.get("id").and_then(Value::as_str) == Some(source.id));
        source.score = result.map_or(source.score, |it| score(it));
    }
    let question = question(context);
    match evidence::find(&question, &sources).as_slice() {
        [found] => {
            quote(context, &question, found, &sources)
                + &see_also(context, &question, sources[found.source].id, &results)
        }
        [] if results.is_empty() => nothing(context),
        [] => cards(context, &results),
        several => {
            several.iter().map(|it| quote(context, &question, it, &sources)).collect::<Vec<_>>().join(" ")
        }
    }
}

fn quote(context: &Context<'_>, question: &Question, found: &Finding, sources: &[Source<'_>]) -> String {
    let source = &sources[found.source];
    // “He died on board” needs to say who.
    let first = found.text.split_whitespace().next().unwrap_or_default();
    let leans = ["He", "She", "It", "They", "His", "Her", "Its", "Their", "This", "That"].contains(&first);
    let is_unnamed = source.is_person
        && [" he ", " she "].iter().any(|it| found.text.contains(it))
        && !found.text.contains(source.title);
    let lead = match &question.kind {
        Kind::Evidence => format!("I cannot say yes or no, but the record “{}” says: ", source.title),
        _ if leans || is_unnamed => format!("{}: ", source.title),
        _ => String::new(),
    };
    match context.is_spoken() {
        true => format!("{lead}{} That is in the record “{}”.", found.text, source.title),
        false => format!("{lead}{} [{}]", found.text, source.id),
    }
}

/// Another record that is nearly as good, and about the same.
fn see_also(context: &Context<'_>, question: &Question, id: &str, results: &[&Value]) -> String {
    let best = results.first().map_or(0.0, |it| score(it));
    let asked = question.stems();
    let other = results.iter().find_map(|it| {
        let (other, title) = (it.get("id")?.as_str()?, it.get("title")?.as_str()?);
        let is_about = words::subjects(title).iter().any(|stem| asked.contains(stem.as_str()));
        let is_near = score(it) >= MIN_SEE_ALSO_SCORE && score(it) >= MIN_SEE_ALSO_SHARE * best;
        (other != id && is_about && is_near).then(|| format!(" See also “{title}” [{other}]."))
    });
    other.filter(|_| !context.is_spoken()).unwrap_or_default()
}

const CANNOT_REASON: &str = "I can quote the records, but not reason about them";

/// The nearest records, which are no answer.
fn cards(context: &Context<'_>, results: &[&Value]) -> String {
    let best = results.first().map_or(0.0, |it| score(it));
    let near = results.iter().filter(|it| score(it) >= MIN_CARD_SHARE * best).take(MAX_CARDS);
    let near: Vec<(&str, &str)> =
        near.filter_map(|it| Some((it.get("title")?.as_str()?, it.get("id")?.as_str()?))).collect();
    let intro = format!("{CANNOT_REASON}, and I find no sentence that plainly answers this.");
    if context.is_spoken() {
        let titles: Vec<String> = near.iter().map(|(title, _)| format!("“{title}”")).collect();
        return format!("{intro} The nearest records are {}.", titles.join(" and "));
    }
    let lines: Vec<String> = near.iter().map(|(title, id)| format!("- {title} [{id}]")).collect();
    format!("{intro} The nearest records are:\n\n{}", lines.join("\n"))
}

fn nothing(context: &Context<'_>) -> String {
    let filtered = context
        .results
        .iter()
        .filter_map(|it| it.data())
        .any(|data| data.get("empty") == Some(&json!("filtered")));
    if filtered {
        return "Nothing in the knowledge base passes those filters; without them there is something.".into();
    }
    "The knowledge base has nothing on that. Other words may find something: names and places work best."
        .into()
}

/// A record that was asked for by its id, or more of the one that was cited.
fn whole_record(context: &Context<'_>, record: &Value) -> String {
    let Some(source) = Source::read(record, None) else { return "There is no such record.".into() };
    let answers: Vec<&str> =
        context.earlier.iter().rev().take(30).map(|message| message.answer.as_str()).collect();
    let is_more = asks_for_more(context.message.text);
    let was_told = |text: &str| is_more && answers.iter().any(|answer| answer.contains(text));
    let after = source.sentences.iter().rposition(|it| was_told(&it.text)).map_or(0, |at| at + 1);
    let (before, rest) = source.sentences.split_at(after);
    let max = if context.is_spoken() { MAX_MORE_SENTENCES - 1 } else { MAX_MORE_SENTENCES };
    let next = rest.iter().chain(before).filter(|it| !was_told(&it.text)).take(max);
    let next: Vec<&str> = next.map(|it| it.text.as_str()).collect();
    let place = if context.is_spoken() {
        format!("That is in the record “{}”.", source.title)
    } else {
        format!("[{}]", source.id)
    };
    match (next.is_empty(), source.sentences.is_empty()) {
        (false, _) => format!("{} {place}", next.join(" ")),
        (true, true) => format!("The record “{}” has no text. {place}", source.title),
        (true, false) => format!("That is all that the record says. {place}"),
    }
}

#[rustfmt::skip]
const REQUESTS_FOR_MORE: &[&str] = &[
    "tell me more", "more", "go on", "continue", "what else", "and then", "say more", "more about it", "more about that",
    "tell me more about it", "tell me more about that", "what more", "anything else", "more please",
];

fn asks_for_more(text: &str) -> bool {
    REQUESTS_FOR_MORE.contains(&small_talk::phrase(text).as_str())
}
