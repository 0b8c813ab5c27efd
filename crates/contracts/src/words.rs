//! The words of a text, in the form in which they are compared: what a user has typed, what a transcript says and what an
//! author or operator has written down are the same words, whatever their case, accents' encoding and punctuation.

use unicode_normalization::UnicodeNormalization;

/// The words of a text, folded. A character of a script that is written without spaces is a word of its own.
pub fn folded_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for letter in text.nfkc() {
        if is_apostrophe(letter) {
            continue;
        }
        let stands_alone = is_written_without_spaces(letter);
        if !word.is_empty() && (stands_alone || !letter.is_alphanumeric()) {
            words.push(std::mem::take(&mut word));
        }
        if stands_alone {
            words.push(letter.to_string());
        } else if letter.is_alphanumeric() {
            // By way of upper case, so that `ß` and `SS`, or the two small sigmas, are the same.
            word.extend(letter.to_uppercase().flat_map(char::to_lowercase));
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The sentences of a text: what ends with a mark of punctuation or a line.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = sentence_end(rest);
        let (sentence, after) = rest.split_at(end);
        rest = after;
        Some(sentence)
    })
}

/// Where the first sentence of a text ends, its mark included.
fn sentence_end(text: &str) -> usize {
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let after = at + letter.len_utf8();
        // The point of 3.5 and of example.com ends nothing.
        let is_followed_by_space = letters.peek().is_none_or(|(_, next)| next.is_whitespace());
        let ends = match letter {
            '\n' | '\r' | '。' | '！' | '？' | '؟' | '।' => true,
            '.' | '!' | '?' | ';' | '…' => is_followed_by_space,
            _ => false,
        };
        if ends {
            return after;
        }
    }
    text.len()
}

fn is_apostrophe(letter: char) -> bool {
    matches!(letter, '\'' | '\u{2019}' | '\u{02bc}')
}

fn is_written_without_spaces(letter: char) -> bool {
    letter.is_alphanumeric()
        && matches!(letter,
            '\u{0e00}'..='\u{0eff}' // Thai, Lao
            | '\u{1000}'..='\u{109f}' // Burmese
            | '\u{1780}'..='\u{17ff}' // Khmer
            | '\u{3005}'..='\u{30ff}' // Hiragana, Katakana
            | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_accents_and_punctuation_make_no_other_words() {
        assert_eq!(folded_words("Draw  me, a FOX!"), ["draw", "me", "a", "fox"]);
        assert_eq!(folded_words("cafe\u{301}"), folded_words("CAFÉ"));
        assert_eq!(folded_words("Straße"), folded_words("STRASSE"));
        assert_eq!(folded_words("ΟΔΟΣ"), folded_words("οδος"));
        assert_eq!(folded_words("don’t"), folded_words("don't"));
        assert_eq!(folded_words("ｄｒａｗ"), ["draw"]);
        assert_eq!(folded_words(" … — "), Vec::<String>::new());
    }

    #[test]
    fn scripts_without_spaces_have_a_word_for_each_character() {
        assert_eq!(folded_words("猫を描いて fox"), ["猫", "を", "描", "い", "て", "fox"]);
    }

    #[test]
    fn a_text_is_its_sentences() {
        let all: Vec<_> = sentences("Hello! Version 3.5 of example.com?\nDraw it。はい").collect();
        assert_eq!(all, ["Hello!", " Version 3.5 of example.com?", "\n", "Draw it。", "はい"]);
        assert_eq!(all.concat(), "Hello! Version 3.5 of example.com?\nDraw it。はい");
        assert_eq!(sentences("").count(), 0);
    }
}
