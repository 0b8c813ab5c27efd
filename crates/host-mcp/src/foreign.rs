//! Text that a server wrote, before anyone here reads it.

use quarterdeck_contracts::visible_line;

/// One line of at most so many characters, in which everything can be seen.
pub(crate) fn shorten(text: &str, max_chars: usize) -> String {
    // What is far beyond the limit need not be looked at.
    let near = text.char_indices().nth(max_chars * 2).map_or(text, |(end, _)| &text[..end]);
    let line = visible_line(near.trim());
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if near.len() < text.len() => format!("{line}…"),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn foreign_text_is_one_short_line_that_can_be_seen() {
        assert_eq!(shorten(" all\ngood ", 20), "all⏎good");
        assert_eq!(shorten("abcdef", 3), "abc…");
        assert!(!shorten("a\u{202e}b\u{0}", 20).contains('\u{202e}'));
    }

    proptest! {
        #[test]
        fn it_is_never_longer_than_the_limit(text in ".{0,300}", max in 1_usize..50) {
            let short = shorten(&text, max);
            prop_assert!(short.chars().count() <= max + 1, "{}", short);
            prop_assert!(!short.contains('\n'));
        }
    }
}
