//! Texts, which iCalendar writes with backslashes.

/// What `\n`, `\,`, `\;` and `\\` stand for.
pub(super) fn unescape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('n' | 'N') => text.push('\n'),
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            // Stray control characters come from broken exporters and break the next reader.
            c if c.is_control() && c != '\t' => {}
            c => text.push(c),
        }
    }
    text
}

/// The other way. Line ends become `\n`; what iCalendar cannot say is left out.
pub(super) fn escape(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => value.push_str("\\n"),
            '\\' | ',' | ';' => value.extend(['\\', c]),
            c if c.is_control() && c != '\t' => {}
            c => value.push(c),
        }
    }
    value
}
