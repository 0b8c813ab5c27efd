//! What a parameter takes, by its name, type and format.

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A date-time that something begins with, ends with, or simply is.
    Start,
    End,
    Moment,
    /// A day: the first, the last, or the only one.
    FirstDay,
    LastDay,
    Day,
    Address,
    Link,
    Name,
    Id,
    Zone,
    Locale,
    /// A pasted text.
    Text,
    Title,
    /// What was asked before.
    Request,
    /// A goodbye.
    Farewell,
    /// One of several words.
    Choice,
    /// How long, in seconds of this many.
    Length(i64),
    Number,
    Flag,
    /// Some other text.
    Words,
    /// What no sentence can express.
    Inexpressible,
}

impl Kind {
    pub(crate) fn is_time(self) -> bool {
        matches!(self, Self::Start | Self::End | Self::Moment | Self::FirstDay | Self::LastDay | Self::Day)
    }

    /// Judges a parameter, or the items of a list.
    pub(crate) fn of(name: &str, schema: &Value) -> Self {
        let words = name_words(name);
        let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        if schema.get("enum").is_some() {
            return Self::Choice;
        }
        match single_type(schema) {
            Some("string") => of_text(schema, &has),
            Some("boolean") => Self::Flag,
            Some("integer" | "number") => match () {
                () if has(&["seconds", "secs", "second"]) => Self::Length(1),
                () if has(&["minutes", "mins", "minute"]) => Self::Length(60),
                () if has(&["hours", "hour"]) => Self::Length(3_600),
                () => Self::Number,
            },
            _ => Self::Inexpressible,
        }
    }
}

fn of_text(schema: &Value, has: &dyn Fn(&[&str]) -> bool) -> Kind {
    let is_start = has(&["start", "begin", "from", "since", "after"]);
    let is_end = has(&["end", "until", "to", "before", "finish"]);
    // Some providers' declarations have no formats; what is to be written is then said in words.
    let says_rfc =
        schema.get("description").and_then(Value::as_str).is_some_and(|it| it.contains("RFC 3339"));
    let format = schema.get("format").and_then(Value::as_str).or(says_rfc.then_some("date-time"));
    match format.or_else(|| (has(&["start", "end"]) && has(&["date", "time"])).then_some("date-time")) {
        Some("date-time") if is_start => return Kind::Start,
        Some("date-time") if is_end => return Kind::End,
        Some("date-time") => return Kind::Moment,
        Some("date") if is_start => return Kind::FirstDay,
        Some("date") if is_end => return Kind::LastDay,
        Some("date") => return Kind::Day,
        Some("email") => return Kind::Address,
        Some("uri") => return Kind::Link,
        _ => {}
    }
    if has(&["timezone", "tz", "zone"]) {
        Kind::Zone
    } else if has(&["locale", "language", "lang"]) {
        Kind::Locale
    } else if has(&["email", "mail"]) {
        Kind::Address
    } else if has(&["url", "uri", "link", "website"]) {
        Kind::Link
    } else if has(&["farewell", "closing", "goodbye"]) {
        Kind::Farewell
    } else if has(&["pending", "context"]) {
        Kind::Request
    } else if has(&["id"]) {
        Kind::Id
    } else if has(&["title", "subject"]) {
        Kind::Title
    } else if has(&["text", "content", "body", "message", "input", "note", "comment"]) {
        Kind::Text
    } else if has(&["name", "person", "who"]) {
        Kind::Name
    } else {
        Kind::Words
    }
}

/// The kind of a parameter, or of the items of a list.
pub(crate) fn item_kind(name: &str, schema: &Value) -> Kind {
    match single_type(schema) {
        Some("array") => schema.get("items").map_or(Kind::Inexpressible, |items| Kind::of(name, items)),
        _ => Kind::of(name, schema),
    }
}

/// The one type that is not null.
pub(crate) fn single_type(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(one) => Some(one),
        Value::Array(several) => several.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        _ => None,
    }
}

/// The words of a name, `start_time` or `startTime`.
pub(crate) fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if matches!(letter, '_' | '-' | '.') {
            words.push(String::new());
            continue;
        }
        let is_new = letter.is_uppercase()
            && words.last().is_some_and(|word| word.ends_with(|it: char| !it.is_uppercase()));
        if is_new {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_types_and_formats_tell_what_is_wanted() {
        let text = json!({ "type": "string" });
        let moment = json!({ "type": "string", "format": "date-time" });
        for (name, schema, kind) in [
            ("start_time", &moment, Kind::Start),
            ("endTime", &moment, Kind::End),
            ("datetime", &moment, Kind::Moment),
            ("due", &json!({ "type": ["string", "null"], "format": "date" }), Kind::Day),
            ("timezone", &text, Kind::Zone),
            ("order_id", &text, Kind::Id),
            ("city", &text, Kind::Words),
            ("style", &json!({ "enum": ["a"] }), Kind::Choice),
            ("duration_minutes", &json!({ "type": "integer" }), Kind::Length(60)),
            ("amount", &json!({ "type": "number" }), Kind::Number),
            ("items", &json!({ "type": "object" }), Kind::Inexpressible),
        ] {
            assert_eq!(Kind::of(name, schema), kind, "{name}");
        }
    }
}
