//! What a user has answered to a question by voice: a closed grammar, judged by code.
//!
//! The whole utterance must be a phrase of the session's language. Whatever else is said, before, after or in place of it, is
//! no answer: a yes that is taken by mistake cannot be taken back, a question can be asked again. Words that people also say
//! while they listen ("okay", "sure", "right") are left out for that reason.

mod grammar;

use quarterdeck_contracts::{ConfirmationCode, folded_words};

use grammar::Grammar;

/// Longer utterances are no answers. The longest phrase has half of it.
const MAX_ANSWER_BYTES: usize = 120;

/// What a question takes for a yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedAnswer {
    YesOrNo,
    /// The digits of a code, alone or with a yes. A yes alone is not enough.
    CodeOrNo,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpokenAnswer {
    Yes,
    No,
    /// The digits that were said. Whether they are the right ones is for the session to judge, which counts the wrong ones.
    Code(String),
    /// Anything else.
    Unclear,
}

/// Whether there is a grammar for a language, `en` or `de-AT`. Without one nothing is an answer.
pub fn is_supported(language: &str) -> bool {
    Grammar::find(language).is_some()
}

/// Judges the transcript of one utterance of a user; `language` is the session's, `en` or `de-AT`.
pub fn spoken_answer(transcript: &str, language: &str, expected: ExpectedAnswer) -> SpokenAnswer {
    let Some(grammar) = Grammar::find(language) else { return SpokenAnswer::Unclear };
    if transcript.len() > MAX_ANSWER_BYTES || !has_only_words(transcript) {
        return SpokenAnswer::Unclear;
    }
    let words = folded_words(transcript);
    let phrase = words.join(" ");
    if grammar.no.contains(&&*phrase) {
        return SpokenAnswer::No;
    }
    match expected {
        ExpectedAnswer::YesOrNo if grammar.yes.contains(&&*phrase) => SpokenAnswer::Yes,
        ExpectedAnswer::YesOrNo => SpokenAnswer::Unclear,
        ExpectedAnswer::CodeOrNo => {
            said_code(grammar, &words).map_or(SpokenAnswer::Unclear, SpokenAnswer::Code)
        }
    }
}

/// The digits of a code, if there is nothing else but one yes before or after them.
fn said_code(grammar: &Grammar, words: &[String]) -> Option<String> {
    let is_yes = |word: &String| grammar.yes_words.contains(&&**word);
    let said = match words {
        [first, rest @ ..] if is_yes(first) => rest,
        [rest @ .., last] if is_yes(last) => rest,
        all => all,
    };
    let digits = said.iter().map(|word| grammar.digits_of(word)).collect::<Option<String>>()?;
    (digits.len() == ConfirmationCode::DIGITS).then_some(digits)
}

/// Whether a text is words and the punctuation of statements. A question is no answer, and what comparing words would
/// overlook (signs, pictures, characters that cannot be seen) does not come from speech.
fn has_only_words(text: &str) -> bool {
    let mut before = ' ';
    text.chars().all(|letter| {
        let is_word = match letter {
            '.' | ',' | '!' | '¡' | ';' | ':' | '…' | '-' | '–' | '—' | '\'' | '’' | '"' | '“' | '”'
            | '„' | '«' | '»' => true,
            // A fraction is numeric and would become two digits.
            _ if letter.is_numeric() => letter.is_ascii_digit(),
            _ => letter.is_alphabetic() || letter.is_whitespace() || is_accent_of(before, letter),
        };
        before = letter;
        is_word
    })
}

/// Whether a character is an accent that makes one letter with the one before it.
fn is_accent_of(base: char, letter: char) -> bool {
    let folded = |text: String| folded_words(&text).concat();
    matches!(letter, '\u{0300}'..='\u{036f}') && {
        let (alone, together) = (folded(base.to_string()), folded(format!("{base}{letter}")));
        together.chars().count() == 1 && together != alone
    }
}

#[cfg(test)]
mod tests;
