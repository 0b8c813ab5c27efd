//! The matcher against another one, and its bound.

use proptest::prelude::*;

use super::*;
use crate::budget::MAX_STEPS;

impl Pattern {
    fn new(source: &str) -> Result<Self, PatternError> {
        Self::compile(&Self::parse(source)?, MAX_PROGRAM_SIZE, true)
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    let pattern = Pattern::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    let counted = scan::is_match(&pattern.programs, text, &mut Budget::new(u64::MAX));
    let either = pattern.is_match(text, &mut Budget::new(u64::MAX));
    assert_eq!(counted, either, "the two engines differ on {text:?}");
    either == Ok(true)
}

#[test]
fn patterns_mean_what_they_mean_in_ecmascript() {
    for (pattern, good, bad) in [
        ("^[a-z]{2}$", vec!["en"], vec!["e", "eng", "EN", "en\n"]),
        ("^(?=.*[a-z])(?=.*\\d).{4,}$", vec!["abc1", "1abc"], vec!["abcd", "1234", "a1"]),
        ("(?<=a+)b", vec!["ab", "xaab"], vec!["b", "ba"]),
        ("(?<!a)b", vec!["b", "ab b"], vec!["ab", "a"]),
        ("(?=.*a.*b.*c)z", vec!["zabc", "xz a b c"], vec!["abcz", "z"]),
        ("^(?!x)a", vec!["a"], vec!["xa"]),
        ("(?<=(?<!x)a)b", vec!["ab", "yab"], vec!["xab"]),
        ("\\bword\\b", vec!["a word", "word"], vec!["words", "éwordx"]),
        ("a\\Bb", vec!["ab"], vec!["a b"]),
        ("^.$", vec!["a", "🐲"], vec!["\n", "\r", "\u{2028}", "ab"]),
        ("^\\w$", vec!["a", "_"], vec!["é"]),
        ("^\\s$", vec!["\u{feff}", "\u{a0}"], vec!["\u{180e}", "\u{85}"]),
        ("^\\p{Lu}\\P{Lu}$", vec!["Ée"], vec!["ee"]),
        ("^\\uD83D\\uDC32$", vec!["🐲"], vec!["x"]),
        ("^[\\u{1F432}-\\u{1F433}]$", vec!["🐲"], vec!["x"]),
        ("[]", vec![], vec!["", "a"]),
        ("^[^]$", vec!["\n"], vec![""]),
        ("^\\0[\\b]\\cJ\\x41$", vec!["\0\u{8}\nA"], vec!["a"]),
        ("^(?<year>\\d{4})-?(?:a|b){1,2}?$", vec!["2024-ab", "2024a"], vec!["2024", "2024abc"]),
        ("", vec!["", "a"], vec![]),
        ("^(?:(?=a)|b){2}a$", vec!["ba", "a", "bba"], vec!["bb"]),
    ] {
        for text in good {
            assert!(matches(pattern, text), "{pattern} matches {text:?}");
        }
        for text in bad {
            assert!(!matches(pattern, text), "{pattern} does not match {text:?}");
        }
    }
}

#[test]
fn what_has_no_bound_is_refused() {
    for pattern in ["^(a|b)\\1$", "(?<n>a)\\k<n>", "(?=(a))\\1"] {
        assert_eq!(Pattern::new(pattern).err(), Some(PatternError::BackReference), "{pattern}");
    }
    let nested = format!("{}a{}", "(".repeat(50_000), ")".repeat(50_000));
    let sly = format!("{}a{}", "([)]".repeat(5_000), ")".repeat(5_000));
    for pattern in [
        "(a{1000}){1000}",
        "((a{100}){100}){100}",
        "(?:){1000000000}",
        "(?:(?:){1000}){1000}",
        "(?=a{30000})b",
        &nested,
        &sly,
        &"a".repeat(100_000),
    ] {
        assert_eq!(Pattern::new(pattern).err(), Some(PatternError::TooLarge), "{}", pattern.len());
    }
}

#[test]
fn a_long_text_takes_time_in_proportion() {
    for source in [
        "(?<=a+)b",
        "(?=.*a.*b.*c)z",
        "(?=a+b)a",
        "(a+)+$",
        "^(?=(a+)+$)(a|a)+b$",
        "(?<=(?<=a*)a*)b",
        "(?!(?!a*b))c",
        "(a|aa|aaa)*b",
        "(.*)(.*)(.*)(.*)b",
    ] {
        let pattern = Pattern::new(source).unwrap();
        let steps = |length: usize| {
            let mut budget = Budget::new(u64::MAX);
            let text = format!("{}!", "a".repeat(length));
            assert_eq!(scan::is_match(&pattern.programs, &text, &mut budget), Ok(false), "{source}");
            budget.spent()
        };
        let (half, whole) = (steps(30_000), steps(60_000));
        assert!(whole <= half * 2 + 1_000, "{source}: {half} steps, then {whole}");
        assert!(whole <= 4 * pattern.size() as u64 * 60_000, "{source}: {whole}");
        assert!(whole < MAX_STEPS, "{source}: {whole}");
    }
}

#[test]
fn a_pattern_that_would_take_too_long_gives_up_within_its_budget() {
    let pattern = Pattern::new("(?=x[ab]{0,5000})b").unwrap();
    let mut budget = Budget::new(MAX_STEPS);
    assert_eq!(pattern.is_match(&"ab".repeat(100_000), &mut budget), Err(BudgetExhausted));
    assert_eq!(budget.spent(), MAX_STEPS);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_pattern_agrees_with_another_matcher(source in source(), text in "[ab_ é\n]{0,7}") {
        let pattern = Pattern::new(&source).unwrap();
        let other = regress::Regex::with_flags(&source, "u").unwrap();
        let mut budget = Budget::new(u64::MAX);
        let ours = scan::is_match(&pattern.programs, &text, &mut budget);
        prop_assert_eq!(ours, Ok(other.find(&text).is_some()), "{} on {:?}", source, text);
        prop_assert_eq!(ours, pattern.is_match(&text, &mut Budget::new(u64::MAX)), "{} on {:?}", source, text);
        let most = 4 * pattern.size() as u64 * (text.chars().count() as u64 + 2) + 100;
        prop_assert!(budget.spent() <= most, "{} takes {} steps", source, budget.spent());
    }

    #[test]
    fn any_text_that_is_a_pattern_agrees_with_another_matcher(
        source in "[ab|()\\[\\]*+?^$.{}=!<:,012wsdbBPLu\\\\-]{0,10}",
        text in "[ab1 -]{0,6}",
    ) {
        if let Ok(pattern) = Pattern::new(&source) {
            let other = regress::Regex::with_flags(&source, "u").unwrap();
            let ours = pattern.is_match(&text, &mut Budget::new(u64::MAX));
            prop_assert_eq!(ours, Ok(other.find(&text).is_some()), "{} on {:?}", source, text);
        }
    }

    #[test]
    fn any_text_may_be_asked_about_as_a_pattern(source in ".{0,20}", text in ".{0,20}") {
        if let Ok(pattern) = Pattern::new(&source) {
            prop_assert!(pattern.is_match(&text, &mut Budget::new(MAX_STEPS)).is_ok());
        }
    }
}

/// Patterns without back-references.
fn source() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a", "b", ".", "\\w", "\\s", "[ab]", "[^a]", "[]", "[^]", "^", "$", "\\b", "\\B", "é", "\\P{L}", "",
    ]);
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let quantifier = prop::sample::select(vec!["*", "+", "?", "{2}", "{1,}", "{0,2}", "*?"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            (inner.clone(), quantifier).prop_map(|(inner, quantifier)| format!("({inner}){quantifier}")),
            (prop::sample::select(vec!["=", "!", "<=", "<!"]), inner)
                .prop_map(|(kind, inner)| format!("(?{kind}{inner})")),
        ]
    })
}
