//! The sentences. A model reads them and corrects its call, so each names the parameter, the limit and what was given.

use serde_json::Value;

use crate::excerpt::{counted, cut, excerpt};
use crate::plan::NodeId;
use crate::pointer;
use crate::types::Type;

/// Options of an `enum` that are listed before the list is cut.
const MAX_LISTED_OPTIONS: usize = 20;

pub(super) fn wrong_type(path: &str, wanted: &[Type], value: &Value) -> String {
    let names: Vec<&str> = wanted.iter().map(|kind| with_article(*kind)).collect();
    format!("{} must be {} (got {})", subject(path), names.join(" or "), excerpt(value))
}

/// For keywords that compare the value with a limit of their own.
pub(super) fn limit(path: &str, keyword: &str, limit: &Value, value: &Value) -> String {
    let subject = subject(path);
    let got = excerpt(value);
    let bound = limit.as_f64().map_or(usize::MAX, |limit| limit as usize);
    match keyword {
        "maximum" => format!("{subject} must be ≤ {limit} (got {got})"),
        "minimum" => format!("{subject} must be ≥ {limit} (got {got})"),
        "exclusiveMaximum" => format!("{subject} must be < {limit} (got {got})"),
        "exclusiveMinimum" => format!("{subject} must be > {limit} (got {got})"),
        "multipleOf" => format!("{subject} must be a multiple of {limit} (got {got})"),
        "enum" => format!("{subject} must be one of {} (got {got})", options(limit)),
        "const" => format!("{subject} must be {} (got {got})", excerpt(limit)),
        "format" => {
            format!("{subject} must be a valid {} (got {got})", cut(limit.as_str().unwrap_or_default()))
        }
        "pattern" => {
            format!(
                "{subject} must match the pattern {} (got {got})",
                cut(limit.as_str().unwrap_or_default())
            )
        }
        "maxLength" => format!("{subject} must have at most {} (got {})", characters(bound), length(value)),
        "minLength" => format!("{subject} must have at least {} (got {})", characters(bound), length(value)),
        "maxItems" => format!("{subject} must have at most {} (got {})", items(bound), length(value)),
        "minItems" => format!("{subject} must have at least {} (got {})", items(bound), length(value)),
        "uniqueItems" => format!("{subject} must not contain the same item twice"),
        "maxProperties" => format!("{subject} must have at most {} (got {})", members(bound), length(value)),
        "minProperties" => format!("{subject} must have at least {} (got {})", members(bound), length(value)),
        _ => format!("{subject} is not accepted (got {got})"),
    }
}

pub(super) fn required(path: &str, name: &str) -> String {
    format!("{} is required", member(path, name))
}

pub(super) fn required_with(path: &str, name: &str, other: &str) -> String {
    format!("{} is required when {} is given", member(path, name), member(path, other))
}

pub(super) fn unknown_member(
    path: &str,
    name: &str,
    meant: Option<&str>,
    declared: &[(String, NodeId)],
) -> String {
    let place = if path.is_empty() { String::new() } else { format!(" in {}", subject(path)) };
    let unknown = format!("unknown parameter \"{}\"{place}", cut(name));
    match meant {
        Some(meant) => format!("{unknown}; did you mean \"{}\"?", cut(meant)),
        None if declared.is_empty() => format!("{unknown}; none are taken"),
        None if declared.len() > MAX_LISTED_OPTIONS => unknown,
        None => {
            let names: Vec<String> = declared.iter().map(|(name, _)| format!("\"{}\"", cut(name))).collect();
            format!("{unknown}; known are {}", names.join(", "))
        }
    }
}

pub(super) fn member_name(path: &str, name: &str) -> String {
    format!("{} must not have a member named \"{}\"", subject(path), cut(name))
}

pub(super) fn not_allowed(path: &str) -> String {
    format!("{} is not allowed", subject(path))
}

pub(super) fn forbidden(path: &str, value: &Value) -> String {
    format!("{} must not be of this form (got {})", subject(path), excerpt(value))
}

pub(super) fn no_branch(path: &str) -> String {
    format!("{} matches none of the forms it may have", subject(path))
}

pub(super) fn several_branches(path: &str) -> String {
    format!("{} matches more than one of the forms of which it may have one", subject(path))
}

pub(super) fn condition(path: &str) -> String {
    format!("{} must fit the condition that its other values bring", subject(path))
}

pub(super) fn too_many_items(path: &str, max: usize) -> String {
    format!("{} must have at most {}", subject(path), items(max))
}

pub(super) fn contains(path: &str, min: u64, max: Option<u64>) -> String {
    let max = max.map(|max| format!(" and at most {max}")).unwrap_or_default();
    format!("{} must contain at least {min}{max} of the wanted items", subject(path))
}

/// `filters.types[0]`, as one would write it in code.
fn subject(path: &str) -> String {
    let mut name = String::new();
    for segment in pointer::segments(path) {
        if !name.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
            name.push_str(&format!("[{segment}]"));
        } else {
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&cut(&segment));
        }
    }
    if name.is_empty() { "the arguments".to_owned() } else { name }
}

fn member(path: &str, name: &str) -> String {
    if path.is_empty() { cut(name) } else { format!("{}.{}", subject(path), cut(name)) }
}

fn with_article(kind: Type) -> &'static str {
    match kind {
        Type::Null => "null",
        Type::Boolean => "true or false",
        Type::Integer => "an integer",
        Type::Number => "a number",
        Type::String => "a string",
        Type::Array => "an array",
        Type::Object => "an object",
    }
}

fn options(list: &Value) -> String {
    let all = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut shown: Vec<String> = all.iter().take(MAX_LISTED_OPTIONS).map(excerpt).collect();
    if all.len() > MAX_LISTED_OPTIONS {
        shown.push(format!("… ({} more)", all.len() - MAX_LISTED_OPTIONS));
    }
    shown.join(", ")
}

fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    }
}

fn characters(count: usize) -> String {
    counted(count, "character", "characters")
}

fn items(count: usize) -> String {
    counted(count, "item", "items")
}

fn members(count: usize) -> String {
    counted(count, "member", "members")
}
