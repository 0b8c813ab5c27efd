//! Limits that keep a record what it says it is: text.

pub(super) const MAX_TAGS: usize = 64;
pub(super) const MAX_TAG_CHARS: usize = 64;
pub(super) const MAX_ID_CHARS: usize = 200;
pub(super) const MAX_TITLE_CHARS: usize = 500;

/// The text without control characters, but for line feeds and tabs. What cannot be seen but changes how text is
/// shown (bidirectional overrides) goes too.
pub(super) fn clean(text: &str) -> String {
    text.chars().filter(|&letter| !is_hidden(letter)).collect()
}

/// The same on one line.
pub(super) fn clean_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_hidden(letter: char) -> bool {
    let is_control = letter.is_control() && letter != '\n' && letter != '\t';
    is_control || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_go_and_lines_stay() {
        assert_eq!(clean("a\u{0}b\u{1b}[31m\r\nc\td\u{202e}"), "ab[31m\nc\td");
        assert_eq!(clean_line(" a \n b\u{7} "), "a b");
    }
}
