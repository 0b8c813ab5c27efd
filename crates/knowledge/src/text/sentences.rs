//! Where sentences end.

use std::ops::Range;

/// The sentences of a text as places, without white space around them. A blank line, a list item and a heading end one
/// too.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut begin = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let after = at + letter.len_utf8();
        let ends = match letter {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' | '…' => ends_sentence(&text[begin..after], &text[after..]),
            '\n' => begins_block(&text[after..]),
            _ => false,
        };
        if ends {
            // Closing quotes and brackets belong to the sentence.
            let mut end = after;
            while let Some((at, closing)) = letters.next_if(|(_, next)| "\"'”’)]»".contains(*next)) {
                end = at + closing.len_utf8();
            }
            push(text, begin..end, &mut found);
            begin = end;
        }
    }
    push(text, begin..text.len(), &mut found);
    found
}

fn ends_sentence(before: &str, after: &str) -> bool {
    let mut following = after.chars().skip_while(|letter| "\"'”’)]»".contains(*letter));
    match following.next() {
        None => true,
        Some(space) if space.is_whitespace() => {
            let next = following.find(|letter| !letter.is_whitespace());
            let last = before.trim_end_matches('.').rsplit(char::is_whitespace).next().unwrap_or_default();
            // `J. Smith`, `e.g. this`, `Dr. Who`: one letter, a dotted word and a title end nothing.
            let is_initial =
                before.ends_with('.') && last.chars().count() == 1 && last.chars().all(char::is_alphabetic);
            let is_short = before.ends_with('.')
                && ["Dr", "Mr", "Mrs", "Ms", "St", "vs", "etc", "cf", "No", "Fig"].contains(&last);
            !(is_initial || is_short || (last.contains('.') && before.ends_with('.')))
                && next.is_none_or(|next| !next.is_lowercase())
        }
        Some(_) => false,
    }
}

/// Whether the next line begins something new.
fn begins_block(after: &str) -> bool {
    let line = after.split('\n').next().unwrap_or_default().trim_start();
    let is_item = ["- ", "* ", "+ ", "#", ">", "|"].iter().any(|mark| line.starts_with(mark));
    let number = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
    line.is_empty() || is_item || (number.len() < line.len() && number.starts_with(". "))
}

fn push(text: &str, place: Range<usize>, found: &mut Vec<Range<usize>>) {
    let part = &text[place.clone()];
    let begin = place.start + (part.len() - part.trim_start().len());
    let end = begin + part.trim().len();
    if begin < end {
        found.push(begin..end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn sentences_end_where_a_reader_ends_them() {
        assert_eq!(
            split("Dr. J. Smith came. He (really!) saw 3.5 m of ice, e.g. floes. “Why?” Nobody\nknew"),
            ["Dr. J. Smith came.", "He (really!) saw 3.5 m of ice, e.g. floes.", "“Why?”", "Nobody\nknew"]
        );
        assert_eq!(split("Heading\n\nText\n- one\n- two\n"), ["Heading", "Text", "- one", "- two"]);
        assert_eq!(split("これは。はい！"), ["これは。", "はい！"]);
        assert!(split(" \n ").is_empty());
    }
}
