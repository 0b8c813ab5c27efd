//! The policy of a tool that asks the user only at times: which of its conditions hold for a call.

use std::cmp::Ordering;

use quarterdeck_contracts::{ConfirmWhen, Metadata, find_phrase, visible_line};
use serde_json::{Map, Number, Value, json};

use super::Facts;
use crate::claim::RequiredClaim;
use crate::topics::TopicMatch;

/// How much of a topic or name a sentence holds.
const MAX_NAME_CHARS: usize = 100;

/// What a policy says about a call.
#[derive(Debug, PartialEq)]
pub(super) enum PolicyVerdict {
    /// The user must approve it.
    Ask(ConfirmReason),
    /// It may run unasked. Why, for the trace.
    Pass(Value),
}

/// Why the user is asked about a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConfirmReason {
    /// For the user. Absent where the tool always asks.
    pub sentence: Option<String>,
    /// For the trace: the conditions that hold, in the form of `confirmWhen`. No argument of the call is in it.
    pub conditions: Option<Value>,
}

/// Judges by the tool's `confirmWhen`. Without conditions there is nothing that would let a call pass.
pub(super) fn judge(metadata: &Metadata, args: &Value, facts: &Facts) -> PolicyVerdict {
    let Some(policy) = metadata.confirm_when.as_ref().filter(|policy| policy.has_conditions()) else {
        return PolicyVerdict::Ask(ConfirmReason::default());
    };
    let mut held = Held::default();
    let requested_by = find_request(metadata, facts);
    if policy.not_requested_this_turn && requested_by.is_none() {
        held.add("notRequestedThisTurn", json!(true), "You did not ask for this just now.".into());
    }
    judge_topics(policy, args, facts, &mut held);
    judge_thresholds(policy, args, &mut held);
    judge_claims(policy, facts, &mut held);
    if held.conditions.is_empty() {
        return PolicyVerdict::Pass(json!({ "requestedBy": requested_by }));
    }
    PolicyVerdict::Ask(ConfirmReason {
        sentence: Some(held.sentences.join(" ")),
        conditions: Some(Value::Object(held.conditions)),
    })
}

/// The conditions that hold.
#[derive(Default)]
struct Held {
    conditions: Map<String, Value>,
    sentences: Vec<String>,
}

impl Held {
    fn add(&mut self, name: &str, condition: Value, sentence: String) {
        self.conditions.insert(name.to_owned(), condition);
        self.sentences.push(sentence);
    }
}

/// The phrase by which the user has asked for the tool in this turn.
fn find_request<'a>(metadata: &'a Metadata, facts: &Facts) -> Option<&'a str> {
    find_phrase(metadata.requested_by.values().flatten().map(String::as_str), &facts.user_words)
}

fn judge_topics(policy: &ConfirmWhen, args: &Value, facts: &Facts, held: &mut Held) {
    let Some(list) = &policy.topics else { return };
    let sentence = match facts.topics.find_in(list, args) {
        TopicMatch::Untouched => return,
        TopicMatch::Touched(topic) => format!("It touches on “{}”.", short(topic)),
        // What cannot be judged is asked about: a slip in a name must not switch a check off.
        TopicMatch::NoSuchList => {
            format!("Its topics cannot be checked: there is no list “{}” in the configuration.", short(list))
        }
    };
    held.add("topics", json!(list), sentence);
}

fn judge_thresholds(policy: &ConfirmWhen, args: &Value, held: &mut Held) {
    let mut passed = Vec::new();
    let mut sentences = Vec::new();
    for (pointer, limit) in &policy.over {
        let tokens: Vec<String> =
            pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
        if let Some(value) = first_over(args, &tokens, limit) {
            let name = short(&tokens.join("."));
            sentences
                .push(format!("“{name}” is {}; up to {limit} needs no approval.", short(&value.to_string())));
            passed.push(pointer.as_str());
        }
    }
    if !passed.is_empty() {
        held.add("over", json!(passed), sentences.join(" "));
    }
}

/// The first value at a pointer that is not a number up to the limit. One that is absent passes nothing.
fn first_over<'a>(value: &'a Value, tokens: &[String], limit: &Number) -> Option<&'a Value> {
    let Some((token, rest)) = tokens.split_first() else {
        let is_within = match value {
            Value::Null => true,
            Value::Number(number) => compare(number, limit) != Ordering::Greater,
            _ => false,
        };
        return (!is_within).then_some(value);
    };
    match value {
        Value::Object(fields) if token == "*" && !fields.contains_key("*") => {
            fields.values().find_map(|field| first_over(field, rest, limit))
        }
        Value::Object(fields) => first_over(fields.get(token)?, rest, limit),
        Value::Array(items) if token == "*" => items.iter().find_map(|item| first_over(item, rest, limit)),
        Value::Array(items) => first_over(items.get(token.parse::<usize>().ok()?)?, rest, limit),
        _ => None,
    }
}

/// Whole numbers are compared as such: beyond 2^53, two of them are the same as floats.
fn compare(number: &Number, limit: &Number) -> Ordering {
    let whole = |number: &Number| number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from));
    match (whole(number), whole(limit)) {
        (Some(number), Some(limit)) => number.cmp(&limit),
        _ => match (number.as_f64(), limit.as_f64()) {
            (Some(number), Some(limit)) => number.total_cmp(&limit),
            // It cannot be told, so it counts as too much.
            _ => Ordering::Greater,
        },
    }
}

fn judge_claims(policy: &ConfirmWhen, facts: &Facts, held: &mut Held) {
    let is_met = |claim: &str| claim.parse().is_ok_and(|claim: RequiredClaim| claim.is_met_by(&facts.client));
    let missing: Vec<_> = policy.claims.iter().filter(|claim| !is_met(claim)).collect();
    if missing.is_empty() {
        return;
    }
    let names: Vec<_> = missing.iter().map(|claim| format!("“{}”", short(claim))).collect();
    let sentence = format!("Your sign-in does not include {}.", names.join(", "));
    held.add("claims", json!(missing), sentence);
}

/// A name on one line, in which every character can be seen.
fn short(name: &str) -> String {
    let line = visible_line(name);
    match line.char_indices().nth(MAX_NAME_CHARS) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

#[cfg(test)]
mod tests;
