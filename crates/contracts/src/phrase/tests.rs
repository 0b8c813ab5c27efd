use std::cell::Cell;

use proptest::prelude::*;

use super::*;

fn matches(phrase: &str, text: &str) -> bool {
    find_phrase([phrase], text).is_some()
}

#[test]
fn a_star_stands_for_any_words_or_none() {
    for text in ["draw a fox", "Draw!", "DRAW: a fox, please", "Hello there. Draw a fox."] {
        assert!(matches("draw *", text), "{text}");
    }
    for text in ["", "…", "never draw a fox", "drawing a fox", "redraw", "a fox"] {
        assert!(!matches("draw *", text), "{text}");
    }
    assert!(matches("make * picture *", "make me a picture of a ship"));
    assert!(matches("make * picture *", "Make picture"));
    assert!(!matches("make * picture *", "picture to make"));
    assert!(matches("* draw *", "could you draw a fox"));
    assert!(matches("draw a fox", "Draw a fox!"));
    assert!(!matches("draw a fox", "draw a fox now"));
    assert!(matches("描 い て *", "描いて、猫を"));
    assert!(!matches("a * a", "a"), "one word is not two");
}

#[test]
fn the_whole_message_matches_also_where_its_sentences_do_not() {
    assert!(matches("draw * fox", "Draw. A. Fox."));
}

#[test]
fn the_phrase_that_matched_is_named() {
    assert_eq!(find_phrase(["paint *", "draw *"], "draw it"), Some("draw *"));
    assert_eq!(find_phrase(["paint *", "draw"], "draw it"), None);
}

#[test]
fn what_is_not_a_phrase_says_why() {
    assert_eq!(Phrase::parse(""), Err(PhraseError::NoWords));
    assert_eq!(Phrase::parse(" * * "), Err(PhraseError::NoWords));
    assert_eq!(Phrase::parse("… *"), Err(PhraseError::NoWords));
    assert_eq!(Phrase::parse("draw*"), Err(PhraseError::StarWithinWord));
    assert_eq!(Phrase::parse(&"x".repeat(201)), Err(PhraseError::TooLong));
    assert!(Phrase::parse(&"x".repeat(200)).is_ok());
    // What is no phrase matches nothing.
    assert!(!matches("*", "anything"));
}

thread_local!(static COMPARISONS: Cell<usize> = const { Cell::new(0) });

/// A word that counts how often it is compared.
#[derive(Debug, Clone)]
struct Counted(char);

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        COMPARISONS.set(COMPARISONS.get() + 1);
        self.0 == other.0
    }
}

/// The meaning of a phrase in the plainest form: every way of matching is tried.
fn matches_by_definition(phrase: &[&str], words: &[String]) -> bool {
    match phrase {
        [] => words.is_empty(),
        ["*", rest @ ..] => (0..=words.len()).any(|skipped| matches_by_definition(rest, &words[skipped..])),
        [word, rest @ ..] => {
            words.first().is_some_and(|first| first == word) && matches_by_definition(rest, &words[1..])
        }
    }
}

proptest! {
    #[test]
    fn a_phrase_matches_what_its_definition_says(
        phrase in prop::collection::vec(prop::sample::select(vec!["a", "b", "*"]), 1..9),
        words in prop::collection::vec(prop::sample::select(vec!["a", "b"]), 0..12),
    ) {
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        match Phrase::parse(&phrase.join(" ")) {
            Ok(parsed) => prop_assert_eq!(parsed.matches(&words), matches_by_definition(&phrase, &words)),
            Err(error) => {
                prop_assert_eq!(error, PhraseError::NoWords);
                prop_assert!(phrase.iter().all(|piece| *piece == "*"));
            }
        }
    }

    #[test]
    fn words_of_a_text_are_compared_at_most_three_times_on_average(part in "[ab]{1,20}", text in "[ab]{0,500}") {
        let part: Vec<_> = part.chars().map(Counted).collect();
        let text: Vec<_> = text.chars().map(Counted).collect();
        let fallback = fallbacks(&part);
        COMPARISONS.set(0);
        end_of_first(&part, &fallback, &text);
        // Two comparisons for a word, and one for each step back, which takes away what an earlier word had added.
        prop_assert!(COMPARISONS.get() <= 3 * text.len(), "{} for {}", COMPARISONS.get(), text.len());
    }

    #[test]
    fn no_text_makes_reading_or_matching_fail(phrase in any::<String>(), text in any::<String>()) {
        let sentences: String = crate::words::sentences(&text).collect();
        prop_assert_eq!(&sentences, &text);
        find_phrase([phrase.as_str(), "a * b * c"], &text);
    }

    #[test]
    fn a_phrase_of_a_texts_own_words_matches_it_in_any_case(text in "[a-zA-ZäÖß ]{1,40}") {
        let words = folded_words(&text);
        prop_assume!(!words.is_empty());
        let (first, last) = (format!("{} *", words[0]), format!("* {}", words[words.len() - 1]));
        for phrase in [words.join(" "), first, last] {
            prop_assert!(matches(&phrase, &text.to_uppercase()), "{}", phrase);
        }
    }
}
