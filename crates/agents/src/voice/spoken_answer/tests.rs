use proptest::prelude::*;
use quarterdeck_contracts::folded_words;

use super::ExpectedAnswer::{CodeOrNo, YesOrNo};
use super::SpokenAnswer::{Code, No, Unclear, Yes};
use super::grammar::ALL;
use super::{MAX_ANSWER_BYTES, is_supported, spoken_answer};

#[test]
fn polite_forms_of_yes_and_no_are_answers_in_their_language() {
    for (language, said, expected) in [
        ("en", "Yes.", Yes),
        ("en-GB", "Yes, please!", Yes),
        ("EN_us", "  yes — go ahead ", Yes),
        ("en", "“Yes, that’s right.”", Yes),
        ("en", "NO", No),
        ("en", "No, thank you.", No),
        ("en", "Cancel.", No),
        ("en", "Don't do it!", No),
        ("de", "Ja.", Yes),
        ("de-AT", "Ja, bitte.", Yes),
        ("de", "Ich bestätige.", Yes),
        ("de", "Nein, danke.", No),
        ("es", "Sí.", Yes),
        ("es-MX", "¡Sí, adelante!", Yes),
        ("es", "si\u{301}", Yes),
        ("es", "No, gracias.", No),
        ("fr", "Oui, s’il vous plaît.", Yes),
        ("fr-CA", "Oui, allez-y.", Yes),
        ("fr", "Non merci", No),
    ] {
        assert_eq!(spoken_answer(said, language, YesOrNo), expected, "{language}: {said}");
    }
}

#[test]
fn anything_else_is_no_answer() {
    for said in [
        "",
        " … ",
        "yesterday",
        "yes and also book a room",
        "yes but not today",
        "well yes",
        "no, yes",
        "yes, no",
        "yes no",
        "yes?",
        "Yes, go ahead?",
        "did I say yes",
        "the assistant said yes",
        "not yes",
        "yes yes",
        "ye s",
        "y-e-s",
        "okay",
        "sure",
        "uh-huh",
        "yes 👎",
        "yes ≠",
        "y\u{200b}es",
        "yes\u{338}",
        "yes\u{0}",
        "yes/no",
        "yes 4711",
        "4711",
    ] {
        assert_eq!(spoken_answer(said, "en", YesOrNo), Unclear, "{said}");
    }
    let padded = format!("yes{}", " ".repeat(MAX_ANSWER_BYTES));
    assert_eq!(spoken_answer(&padded, "en", YesOrNo), Unclear);
}

#[test]
fn an_answer_in_another_language_than_the_sessions_is_unclear() {
    for (language, said) in
        [("en", "ja"), ("de", "yes"), ("es", "oui"), ("fr", "sí"), ("de", "no"), ("fr", "no")]
    {
        assert_eq!(spoken_answer(said, language, YesOrNo), Unclear, "{language}: {said}");
    }
    for language in ["", "it", "english", "e", "-en"] {
        assert!(!is_supported(language));
        assert_eq!(spoken_answer("yes", language, YesOrNo), Unclear, "{language}");
    }
}

#[test]
fn a_code_is_four_digits_with_nothing_else_but_a_yes() {
    for (language, said, digits) in [
        ("en", "4711", "4711"),
        ("en", "4 7 1 1.", "4711"),
        ("en", "47-11", "4711"),
        ("en", "4,711", "4711"),
        ("en", "Four, seven, one, one.", "4711"),
        ("en", "yes, oh zero nine 3", "0093"),
        ("en", "0093 yes", "0093"),
        ("de", "Ja, vier sieben eins zwo", "4712"),
        ("de", "FÜNF sechs acht neun", "5689"),
        ("es", "cero uno dos tres", "0123"),
        ("fr", "oui zéro un deux trois", "0123"),
    ] {
        assert_eq!(spoken_answer(said, language, CodeOrNo), Code(digits.into()), "{language}: {said}");
    }
    for said in [
        "yes",
        "go ahead",
        "471",
        "47110",
        "four seven one",
        "forty-seven eleven",
        "the code is 4711",
        "4711 please",
        "yes 4711 yes",
        "no 4711",
        "4711?",
        "$47.11",
        "½ ½",
        "٤٧١١",
        "vier sieben eins eins",
        "47eleven",
    ] {
        assert_eq!(spoken_answer(said, "en", CodeOrNo), Unclear, "{said}");
    }
    assert_eq!(spoken_answer("no thanks", "en", CodeOrNo), No, "to refuse needs no code");
}

#[test]
fn the_grammars_are_written_as_words_are_compared_and_never_contradict_themselves() {
    for (language, grammar) in ALL {
        for phrase in grammar.yes.iter().chain(grammar.no) {
            assert_eq!(folded_words(phrase).join(" "), *phrase, "{language}");
            assert!(phrase.len() * 2 <= MAX_ANSWER_BYTES, "{language}: {phrase}");
        }
        for word in grammar.yes_words {
            assert_eq!(spoken_answer(word, language, YesOrNo), Yes, "{language}: {word}");
        }
        for phrase in grammar.yes {
            assert!(!grammar.no.contains(phrase), "{language}: {phrase}");
            let words: Vec<_> = phrase.split(' ').collect();
            let denies = |word: &&str| grammar.no.contains(word);
            assert!(!words.iter().any(denies), "{language}: {phrase} holds a no");
        }
    }
}

/// Every word of every grammar, and some that sound like them.
fn vocabulary() -> Vec<String> {
    let phrases = ALL.iter().flat_map(|(_, grammar)| grammar.yes.iter().chain(grammar.no));
    let mut words: Vec<String> = phrases.flat_map(|phrase| phrase.split(' ')).map(str::to_owned).collect();
    words.extend(
        ["and", "also", "but", "not", "then", "yesterday", "noon", "janus", "4711", "seven", "?"]
            .map(Into::into),
    );
    words.sort();
    words.dedup();
    words
}

/// One of the languages, and one of its phrases of approval.
fn a_yes() -> impl Strategy<Value = (&'static str, &'static str)> {
    (0..ALL.len(), any::<prop::sample::Index>()).prop_map(|(which, index)| {
        let (language, grammar) = ALL[which];
        (language, grammar.yes[index.index(grammar.yes.len())])
    })
}

proptest! {
    #[test]
    fn no_text_outside_the_grammar_says_yes(
        words in prop::collection::vec(prop::sample::select(vocabulary()), 0..6),
        which in 0..ALL.len(),
    ) {
        let (language, grammar) = ALL[which];
        let said = words.join(" ");
        let is_yes = spoken_answer(&said, language, YesOrNo) == Yes;
        prop_assert_eq!(is_yes, grammar.yes.contains(&&*said), "{}: {}", language, said);
        prop_assert_ne!(spoken_answer(&said, language, CodeOrNo), Yes);
    }

    #[test]
    fn a_yes_among_other_words_is_no_answer(
        (language, phrase) in a_yes(),
        other in "[a-zà-ÿ]{1,9}",
        at in any::<prop::sample::Index>(),
    ) {
        // A word that no phrase has, so that no other phrase can come of it.
        prop_assume!(!vocabulary().contains(&other) && !folded_words(&other).is_empty());
        let mut words: Vec<&str> = phrase.split(' ').collect();
        words.insert(at.index(words.len() + 1), &other);
        prop_assert_eq!(spoken_answer(&words.join(" "), language, YesOrNo), Unclear);
        prop_assert_eq!(spoken_answer(&words.join(", "), language, YesOrNo), Unclear);
        // Nor is it one when the words run together.
        prop_assert_eq!(spoken_answer(&format!("{phrase}{other}"), language, YesOrNo), Unclear);
    }

    #[test]
    fn case_and_punctuation_change_no_answer(
        (language, phrase) in a_yes(),
        upper in any::<bool>(),
        end in "[.!,;… ]{0,4}",
    ) {
        let said = if upper { phrase.to_uppercase() } else { phrase.to_owned() };
        prop_assert_eq!(spoken_answer(&format!("“{said}{end}”"), language, YesOrNo), Yes);
        prop_assert_eq!(spoken_answer(&format!("{said}{end}?"), language, YesOrNo), Unclear);
    }

    #[test]
    fn any_text_is_judged_and_a_code_has_four_digits(said in "\\PC{0,40}", which in 0..ALL.len()) {
        let (language, _) = ALL[which];
        if let Code(digits) = spoken_answer(&said, language, CodeOrNo) {
            prop_assert!(digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()));
        }
        prop_assert!(!matches!(spoken_answer(&said, language, YesOrNo), Code(_)));
    }

    #[test]
    fn every_code_is_heard_as_digits_or_words(number in 0..10_000u32, which in 0..ALL.len()) {
        let (language, grammar) = ALL[which];
        let digits = format!("{number:04}");
        prop_assert_eq!(spoken_answer(&digits, language, CodeOrNo), Code(digits.clone()));
        let spaced: Vec<String> = digits.chars().map(String::from).collect();
        let said = format!("{} {}.", grammar.yes_words[0], spaced.join(" "));
        prop_assert_eq!(spoken_answer(&said, language, CodeOrNo), Code(digits.clone()));
        let names = digits.bytes().map(|digit| *grammar.digits[usize::from(digit - b'0')].last().unwrap());
        let said = names.collect::<Vec<_>>().join(", ");
        prop_assert_eq!(spoken_answer(&said, language, CodeOrNo), Code(digits));
    }
}
