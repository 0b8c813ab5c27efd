//! The sentence that the user sees before they approve a call.

use quarterdeck_contracts::{Metadata, visible_line};
use serde_json::Value;

/// How much of one value the sentence holds. The arguments stand beside it in full.
const MAX_VALUE_CHARS: usize = 200;
/// How long a sentence of a handler may be. It may name fifty attendees.
const MAX_SENTENCE_CHARS: usize = 4_000;

/// From the tool's `preview`, or else from its name and arguments. What is sensitive is hidden from records, not from the
/// user who approves it; invisible characters are marked.
pub(crate) fn preview(metadata: &Metadata, args: &Value) -> String {
    match &metadata.preview {
        Some(template) => fill(template, args),
        None => {
            let arguments: Vec<_> = args
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, value)| format!("{}: {}", visible_line(name), text(value)))
                .collect();
            format!("{} ({})", metadata.tool_id, arguments.join(", "))
        }
    }
}

/// A sentence that a handler has made, on one line and not endless.
pub(super) fn shown(sentence: &str) -> String {
    cut(visible_line(sentence), MAX_SENTENCE_CHARS)
}

/// Replaces `{path.to.value}`; what is absent leaves nothing.
fn fill(template: &str, args: &Value) -> String {
    let mut sentence = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        sentence.push_str(before);
        match after.split_once('}') {
            Some((path, after)) => {
                sentence.push_str(&look_up(path.trim(), args));
                rest = after;
            }
            None => {
                sentence.push('{');
                rest = after;
            }
        }
    }
    sentence.push_str(rest);
    sentence
}

fn look_up(path: &str, args: &Value) -> String {
    if let Some(list) = path.strip_suffix(".length") {
        let length = match at(list, args) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::String(text)) => text.chars().count(),
            _ => 0,
        };
        return length.to_string();
    }
    at(path, args).map(text).unwrap_or_default()
}

fn at<'a>(path: &str, value: &'a Value) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, part| match value {
        Value::Object(fields) => fields.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

/// A value in words, on one line.
fn text(value: &Value) -> String {
    let whole = match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    cut(visible_line(&whole), MAX_VALUE_CHARS)
}

fn cut(line: String, max_chars: usize) -> String {
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(template: Option<&str>, args: Value) -> String {
        let metadata: Metadata = serde_json::from_value(json!({
            "toolId": "book", "version": "1.0.0", "description": "d", "category": "action", "sideEffects": "writes",
            "idempotent": false, "requiresConfirmation": true, "allowedModes": ["text"], "latencyBudgetMs": 1,
            "sensitive": ["/attendees"],
        }))
        .unwrap();
        preview(&Metadata { preview: template.map(str::to_owned), ..metadata }, &args)
    }

    #[test]
    fn a_template_is_filled_in() {
        let args = json!({ "title": "Tea", "start_time": "noon", "attendees": ["a@b.c", "d@e.f"] });
        assert_eq!(
            shown(Some("Create “{title}” at {start_time} with {attendees.length} people"), args),
            "Create “Tea” at noon with 2 people"
        );
    }

    #[test]
    fn sensitive_values_are_shown_to_the_user_who_approves_and_absent_ones_leave_nothing() {
        let args = json!({ "attendees": ["a@b.c", "d@e.f"] });
        assert_eq!(
            shown(Some("With {attendees}, first {attendees.0}{absent}."), args),
            "With a@b.c, d@e.f, first a@b.c."
        );
    }

    #[test]
    fn without_a_template_the_arguments_are_listed() {
        let args = json!({ "title": "Tea\nnow", "attendees": ["a@b.c"], "guests": [1, 2] });
        assert_eq!(shown(None, args), "book (title: Tea⏎now, attendees: a@b.c, guests: 1, 2)");
    }

    #[test]
    fn invisible_characters_are_marked_and_the_sentence_stays_one_line() {
        let args = json!({ "title": "in\u{202e}fdp\u{2028}x", "na\u{200b}me": 1 });
        assert_eq!(shown(Some("Book {title}"), args.clone()), "Book in⟨U+202E⟩fdp⟨U+2028⟩x");
        assert_eq!(shown(None, args), "book (title: in⟨U+202E⟩fdp⟨U+2028⟩x, na⟨U+200B⟩me: 1)");
    }

    #[test]
    fn a_brace_without_its_partner_stays() {
        assert_eq!(shown(Some("a {title} { b"), json!({ "title": "{x}" })), "a {x} { b");
    }
}
