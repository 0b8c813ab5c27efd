//! Asks for missing arguments.

use crate::parameter::{Kind, item_kind, name_words, single_type};
use crate::refusal::lower_first;
use crate::sentences;
use crate::toolbox::Tool;

/// One sentence that asks for exactly what is missing. A day may be known while the time is not.
pub(crate) fn question(tool: &Tool<'_>, missing: &[&str], has_day: bool) -> String {
    let kinds: Vec<Kind> =
        missing.iter().filter_map(|name| Some(item_kind(name, tool.property(name)?))).collect();
    let is_when = |kind: &Kind| matches!(kind, Kind::Start | Kind::End | Kind::Moment);
    let is_day = |kind: &Kind| matches!(kind, Kind::FirstDay | Kind::LastDay | Kind::Day);
    let mut wanted: Vec<String> = Vec::new();
    if kinds.iter().any(is_when) {
        wanted.extend((!has_day).then(|| "the day".into()));
        wanted.extend(tool.is_action().then(|| "the time".into()));
    } else if kinds.iter().any(is_day) {
        wanted.push("the day".into());
    }
    for name in missing {
        let Some(schema) = tool.property(name) else { continue };
        match item_kind(name, schema) {
            kind if is_when(&kind) || is_day(&kind) => {}
            Kind::Address if single_type(schema) == Some("array") => {
                wanted.push("the e-mail addresses of the people to invite".into())
            }
            Kind::Address => wanted.push("the e-mail address".into()),
            Kind::Text => wanted.push("the text itself".into()),
            _ => wanted.push(take_guide(name, schema)),
        }
    }
    format!("Please tell me {}.", joined(&wanted))
}

/// The parameter's name, with what its author says about it.
fn take_guide(name: &str, schema: &serde_json::Value) -> String {
    let words = name_words(name).join(" ");
    let description = schema.get("description").and_then(serde_json::Value::as_str).unwrap_or_default();
    let description =
        sentences::sentences(description).into_iter().next().map(|first| first.text).unwrap_or_default();
    let description = lower_first(description.trim_end_matches('.'));
    if description.is_empty() || description.chars().count() > 120 {
        format!("the {words}")
    } else {
        format!("the {words} ({description})")
    }
}

fn joined(wanted: &[String]) -> String {
    match wanted {
        [] => "something more".into(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
