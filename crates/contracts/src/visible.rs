//! Texts as they are, for a user or an operator who decides by what they read.
//!
//! Characters that cannot be seen, or that move what stands around them, are shown as what they are: `⟨U+202E⟩`. The page
//! does the same in `web/shared/visible.js`; `tests/visible.json` holds the two to one table. Letters of every script
//! stay, and so do the joiners and selectors within an emoji. Letters that look like others are not marked.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::{Map, Value};

/// A text in which everything can be seen. Line feeds and tabs stay, because what shows several lines shows them.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(may_hide) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        if may_hide(character) && !belongs_to_emoji(character, before, rest.peek().copied()) {
            mark(character, &mut shown);
        } else {
            shown.push(character);
        }
        before = Some(character);
    }
    Cow::Owned(shown)
}

/// The same on one line: a line feed is `⏎` and a tab `⇥`.
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "⏎").replace('\t', "⇥")
}

/// JSON in which every text and every name can be seen.
pub fn visible_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(text).into_owned()),
        Value::Array(items) => Value::Array(items.iter().map(visible_value).collect()),
        Value::Object(fields) => {
            let seen = |(name, field): (&String, &Value)| (visible(name).into_owned(), visible_value(field));
            Value::Object(fields.iter().map(seen).collect::<Map<_, _>>())
        }
        plain => plain.clone(),
    }
}

fn mark(character: char, shown: &mut String) {
    // Writing into a string cannot fail.
    let _ = write!(shown, "⟨U+{:04X}⟩", u32::from(character));
}

/// Whether a character cannot be seen, or moves what stands around it.
fn may_hide(character: char) -> bool {
    matches!(
        character,
        '\u{0}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{13430}'..='\u{1343f}' | '\u{16fe4}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether a joiner or a selector makes one picture of what stands around it.
fn belongs_to_emoji(character: char, before: Option<char>, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    match character {
        '\u{200d}' => (is_picture(before) || before == '\u{fe0f}') && after.is_some_and(is_picture),
        '\u{fe0e}' | '\u{fe0f}' => {
            let is_keycap = matches!(before, '0'..='9' | '#' | '*') && after == Some('\u{20e3}');
            is_picture(before) || is_keycap
        }
        _ => false,
    }
}

/// Whether a character is a picture, alone or with a selector.
fn is_picture(character: char) -> bool {
    matches!(
        character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2194}'..='\u{21aa}'
        | '\u{231a}'..='\u{23ff}' | '\u{24c2}' | '\u{25aa}'..='\u{25fe}' | '\u{2600}'..='\u{27bf}'
        | '\u{2934}' | '\u{2935}' | '\u{2b05}'..='\u{2b55}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}'
    )
}
