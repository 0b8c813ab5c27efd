//! The policy by which a tool asks the user has an effect, and can be judged.

use quarterdeck_contracts::{MAX_PHRASES, Phrase};
use serde_json::{Map, Value};

use super::Subject;
use super::sensitive::leads_to;
use crate::rules::Rule;
use crate::source::child;
use crate::{Diagnostic, rules};

pub(super) fn check(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    check_that_it_is_judged(subject, problems);
    check_that_an_answer_is_taken(subject, problems);
    check_that_it_can_pass(subject, problems);
    check_thresholds(subject, problems);
    check_phrases(subject, problems);
}

fn confirm_when<'a>(subject: &Subject<'a>) -> Option<&'a Map<String, Value>> {
    subject.field("confirmWhen").and_then(Value::as_object)
}

fn depends_on_request(subject: &Subject<'_>) -> bool {
    confirm_when(subject)
        .is_some_and(|conditions| conditions.get("notRequestedThisTurn") == Some(&true.into()))
}

/// What stands in a definition without an effect is mistaken for one.
fn check_that_it_is_judged(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    if subject.field("confirmWhen").is_some() && subject.text("requiresConfirmation") != Some("policy") {
        problems.push(problem(
            subject,
            &rules::POLICY_UNUSED,
            "/confirmWhen",
            "`confirmWhen` is not asked: the user approves each call, or none".into(),
            "set \"requiresConfirmation\" to \"policy\", or remove `confirmWhen`".into(),
        ));
    } else if subject.field("requestedBy").is_some() && !depends_on_request(subject) {
        problems.push(problem(
            subject,
            &rules::POLICY_UNUSED,
            "/requestedBy",
            "`requestedBy` is not asked: no condition depends on what the user asked for".into(),
            "add `\"notRequestedThisTurn\": true` to `confirmWhen`, or remove `requestedBy`".into(),
        ));
    }
}

/// How an answer is taken says nothing about a tool that never asks.
fn check_that_an_answer_is_taken(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    let never_asks = subject.field("requiresConfirmation") == Some(&Value::Bool(false));
    if never_asks && subject.field("confirmBy").is_some() {
        problems.push(problem(
            subject,
            &rules::CONFIRM_BY_UNUSED,
            "/confirmBy",
            "`confirmBy` has no effect: the user is never asked".into(),
            "set \"requiresConfirmation\" to true or \"policy\", or remove `confirmBy`".into(),
        ));
    }
}

/// In the older form the word alone is all there is, and means that the user is always asked.
fn check_that_it_can_pass(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    let is_older_form = subject.folder.has("doc.md") || subject.folder.has("doc_summary.md");
    if subject.text("requiresConfirmation") != Some("policy") || is_older_form {
        return;
    }
    let (place, message, help) = match confirm_when(subject) {
        None => (
            "/requiresConfirmation",
            "without `confirmWhen`, the user is asked about every call",
            "add a `confirmWhen`, or set \"requiresConfirmation\" to true",
        ),
        Some(conditions) if !conditions.values().any(is_condition) => (
            "/confirmWhen",
            "`confirmWhen` has no condition, so the user is asked about every call",
            "name a condition, such as `\"notRequestedThisTurn\": true`",
        ),
        Some(_) if depends_on_request(subject) && subject.field("requestedBy").is_none() => (
            "/confirmWhen/notRequestedThisTurn",
            "without `requestedBy`, nothing that the user says counts as asking, and they are asked about every call",
            "add `\"requestedBy\": { \"en\": [\"draw *\"] }` with phrases of users",
        ),
        Some(_) => return,
    };
    problems.push(problem(subject, &rules::POLICY_ALWAYS_ASKS, place, message.into(), help.into()));
}

fn is_condition(value: &Value) -> bool {
    match value {
        Value::Bool(is_set) => *is_set,
        Value::Object(thresholds) => !thresholds.is_empty(),
        Value::Array(claims) => !claims.is_empty(),
        _ => true,
    }
}

fn check_thresholds(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    let Some(parameters) = subject.field("parameters") else { return };
    let thresholds = confirm_when(subject).and_then(|conditions| conditions.get("over")?.as_object());
    for pointer in thresholds.into_iter().flat_map(Map::keys) {
        if !leads_to(parameters, pointer, &is_number) {
            problems.push(problem(
                subject,
                &rules::THRESHOLD_NOWHERE,
                &child("/confirmWhen/over", pointer),
                format!("\"{pointer}\" leads to no parameter that is a number"),
                "write `/` and the name of a parameter of type number or integer, such as \"/amount\"".into(),
            ));
        }
    }
}

fn is_number(schema: &Value) -> bool {
    let names_number = |name: &Value| matches!(name.as_str(), Some("number" | "integer"));
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(names_number),
        Some(name) => names_number(name),
        None => schema.get("const").is_some_and(Value::is_number),
    }
}

fn check_phrases(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    let languages = subject.field("requestedBy").and_then(Value::as_object);
    let mut count = 0;
    for (language, phrases) in languages.into_iter().flatten() {
        let at = child("/requestedBy", language);
        if !is_language(language) {
            problems.push(problem(
                subject,
                &rules::BAD_PHRASE,
                &at,
                format!("\"{language}\" is not the tag of a language"),
                "write a tag such as \"en\" or \"pt-BR\"".into(),
            ));
        }
        for (index, phrase) in phrases.as_array().into_iter().flatten().enumerate() {
            count += 1;
            let Some(Err(error)) = phrase.as_str().map(Phrase::parse) else { continue };
            problems.push(problem(
                subject,
                &rules::BAD_PHRASE,
                &format!("{at}/{index}"),
                error.to_string(),
                "write words that users say, such as \"draw *\" or \"make * picture *\"".into(),
            ));
        }
    }
    if count > MAX_PHRASES {
        problems.push(problem(
            subject,
            &rules::BAD_PHRASE,
            "/requestedBy",
            format!("there are {count} phrases, and at most {MAX_PHRASES} are taken"),
            "let `*` stand for what differs between them".into(),
        ));
    }
}

/// Roughly what BCP 47 calls a tag: letters, then parts of letters and digits.
fn is_language(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let is_primary =
        |part: &str| (2..=8).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphabetic());
    let is_further =
        |part: &str| (1..=8).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric());
    parts.next().is_some_and(is_primary) && parts.all(is_further)
}

fn problem(
    subject: &Subject<'_>,
    rule: &'static Rule,
    at: &str,
    message: String,
    help: String,
) -> Diagnostic {
    Diagnostic::new(rule, message, help).at(subject.json.place(at))
}
