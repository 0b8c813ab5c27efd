//! Tokens, stop words and stems.

use std::collections::BTreeSet;

/// Words that say nothing about what a text is about.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "anybody", "anyone", "are", "as", "at", "be",
    "been", "but", "by", "can", "could", "did", "do", "does", "for", "from", "give", "had", "has", "have",
    "he", "hello", "her", "here", "hers", "hey", "hi", "him", "his", "how", "i", "i'd", "i'm", "if", "in",
    "into", "is", "it", "its", "just", "know", "let", "let's", "lets", "like", "many", "may", "me", "mode",
    "more", "much", "must", "my", "need", "no", "not", "now", "of", "off", "on", "or", "our", "out",
    "please", "pls", "regarding", "shall", "she", "should", "show", "so", "some", "somebody", "someone",
    "something", "tell", "than", "thank", "thanks", "that", "the", "their", "them", "then", "there",
    "these", "they", "this", "those", "to", "up", "us", "use", "using", "very", "want", "was", "we", "were",
    "what", "what's", "when", "when's", "where", "which", "who", "who's", "whom", "whose", "why", "will",
    "with", "without", "would", "you", "your", "yours",
];

/// Whether a word, in lower case, says nothing about the subject.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// A piece of a text between spaces, without the punctuation around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// As it was written.
    pub(crate) text: &'a str,
    pub(crate) lower: String,
    /// Where it stands, in bytes.
    pub(crate) start: usize,
    /// What followed it at once: `.`, `?`, `,`, `:` or nothing.
    pub(crate) after: Option<char>,
    /// Whether something opened before it, such as a bracket or a quotation mark.
    pub(crate) opened: bool,
}

impl Token<'_> {
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether a sentence ends here.
    pub(crate) fn ends_sentence(&self) -> bool {
        matches!(self.after, Some('.' | '!' | '?' | ':'))
    }
}

/// The first `max` tokens of a text.
pub(crate) fn tokens(text: &str, max: usize) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for piece in text.split(|letter: char| letter.is_whitespace() || letter == '—') {
        let before = piece.len() - piece.trim_start_matches(is_bracket).len();
        let bare = piece.trim_start_matches(is_bracket);
        let word = bare.trim_end_matches(is_punctuation);
        if word.is_empty() {
            continue;
        }
        if tokens.len() == max {
            break;
        }
        // The piece is a part of the text, so the difference of their places is where it stands.
        let start = piece.as_ptr() as usize - text.as_ptr() as usize + before;
        let lower = word.to_lowercase().replace('’', "'");
        tokens.push(Token {
            text: word,
            lower,
            start,
            after: bare[word.len()..].chars().next(),
            opened: before > 0,
        });
    }
    tokens
}

fn is_bracket(letter: char) -> bool {
    r#"([{<"'“„‘«»¿¡*_`"#.contains(letter)
}

fn is_punctuation(letter: char) -> bool {
    r#".,;:!?)]}>"'”“’»«…*_`"#.contains(letter)
}

/// The stems of the words that carry the meaning of a text.
pub(crate) fn subjects(text: &str) -> BTreeSet<String> {
    const MAX_TOKENS: usize = 400;
    tokens(text, MAX_TOKENS).iter().flat_map(|token| stems(&token.lower)).collect()
}

/// The stems of one token; a word with a dash has several.
pub(crate) fn stems(lower: &str) -> impl Iterator<Item = String> {
    let parts = lower.split(|letter: char| !(letter.is_alphanumeric() || letter == '\''));
    parts.filter(|part| !part.is_empty() && !is_stop_word(part)).map(stem)
}

/// Words whose forms no rule finds.
#[rustfmt::skip]
const IRREGULAR: &[(&str, &str)] = &[
    ("began", "begin"), ("begun", "begin"), ("broke", "break"), ("broken", "break"), ("built", "build"),
    ("came", "come"), ("children", "child"), ("died", "die"), ("ended", "end"), ("feet", "foot"),
    ("fought", "fight"), ("found", "find"), ("gave", "give"), ("given", "give"), ("held", "hold"),
    ("kept", "keep"), ("knew", "know"), ("known", "know"), ("led", "lead"), ("left", "leave"),
    ("made", "make"), ("men", "man"), ("met", "meet"), ("people", "person"), ("ran", "run"),
    ("said", "say"), ("sank", "sink"), ("saw", "see"), ("seen", "see"), ("sent", "send"),
    ("spoke", "speak"), ("spoken", "speak"), ("stood", "stand"), ("sunk", "sink"), ("taken", "take"),
    ("taught", "teach"), ("thought", "think"), ("told", "tell"), ("took", "take"), ("went", "go"), ("wives", "wife"),
    ("women", "woman"), ("won", "win"), ("written", "write"), ("wrote", "write"),
];

/// Words that a question and its answer may use for each other.
#[rustfmt::skip]
const SAME: &[(&str, &str)] = &[
    ("birth", "born"), ("birthplace", "born"), ("construct", "build"), ("death", "die"), ("editor", "edit"), ("leader", "lead"),
    ("newspaper", "paper"), ("start", "begin"),
];

/// A stem, or the one that stands for the same.
pub(crate) fn canonical(stem: String) -> String {
    match SAME.binary_search_by_key(&stem.as_str(), |(word, _)| word) {
        Ok(at) => SAME[at].1.to_owned(),
        Err(_) => stem,
    }
}

/// Equal, or long and begun alike: `insulated` and `insulation`.
pub(crate) fn are_alike(word: &str, other: &str) -> bool {
    const BEGINNING: usize = 6;
    word == other || word.get(..BEGINNING).is_some_and(|begin| other.get(..BEGINNING) == Some(begin))
}

/// Whether one may be a misspelling of the other: at most one letter more, less or other, or two exchanged.
pub(crate) fn is_misspelling(word: &str, known: &str) -> bool {
    let (word, known): (Vec<char>, Vec<char>) = (word.chars().collect(), known.chars().collect());
    if word.len() < 4 || word.first() != known.first() || word.len().abs_diff(known.len()) > 1 {
        return false;
    }
    let same = word.iter().zip(&known).take_while(|(a, b)| a == b).count();
    let (word, known) = (&word[same..], &known[same..]);
    let after = |word: &[char], skip: usize| word.get(skip..).map(<[char]>::to_vec);
    after(word, 1) == after(known, 1)
        || after(word, 1).as_deref() == Some(known)
        || after(known, 1).as_deref() == Some(word)
        || (word.len() > 1
            && known.len() > 1
            && word[0] == known[1]
            && word[1] == known[0]
            && word[2..] == known[2..])
}

/// A word without its ending: enough to bring `launched` and `launch` together, and no more.
pub(crate) fn stem(word: &str) -> String {
    let word = word.strip_suffix("'s").unwrap_or(word);
    if let Ok(at) = IRREGULAR.binary_search_by_key(&word, |(form, _)| form) {
        return stem(IRREGULAR[at].1);
    }
    // Endings are English; other letters would be cut in the middle.
    if !word.is_ascii() || word.len() < 4 {
        return word.to_owned();
    }
    let cut = if let Some(base) = word.strip_suffix("ies").or_else(|| word.strip_suffix("ied")) {
        return format!("{base}y");
    } else if let Some(base) = word.strip_suffix("ing").or_else(|| word.strip_suffix("ed")) {
        undoubled(base, word)
    } else if word.ends_with("sses")
        || word.ends_with("ches")
        || word.ends_with("shes")
        || word.ends_with("xes")
    {
        &word[..word.len() - 2]
    } else if word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us") && !word.ends_with("is") {
        &word[..word.len() - 1]
    } else {
        word
    };
    cut.strip_suffix('e').filter(|base| base.len() > 2).unwrap_or(cut).to_owned()
}

/// `stopp` is `stop`; what would be too short stays what it was.
fn undoubled<'a>(base: &'a str, word: &'a str) -> &'a str {
    if base.len() < 3 {
        return word;
    }
    let mut letters = base.bytes().rev();
    match (letters.next(), letters.next()) {
        (Some(last), Some(before)) if last == before && !matches!(last, b'l' | b's' | b'e') => {
            &base[..base.len() - 1]
        }
        _ => base,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_in_order_because_they_are_searched_by_halves() {
        assert!(STOP_WORDS.is_sorted());
        assert!(IRREGULAR.is_sorted());
        assert!(SAME.is_sorted());
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["launch", "launched", "launches", "launching"][..],
            &["write", "writes", "writing", "written", "wrote"],
            &["stop", "stopped", "stopping", "stops"],
            &["validate", "validates", "validated", "validating"],
            &["ship", "ship's", "ships"],
            &["story", "stories"],
            &["build", "built"],
        ] {
            let stems: BTreeSet<String> = forms.iter().map(|form| stem(form)).collect();
            assert_eq!(stems.len(), 1, "{stems:?}");
        }
        assert_ne!(stem("ice"), stem("icing"));
    }

    #[test]
    fn a_misspelling_differs_by_one_letter() {
        for (word, known) in
            [("bilt", "built"), ("amundson", "amundsen"), ("farm", "fram"), ("sverdrupp", "sverdrup")]
        {
            assert!(is_misspelling(word, known), "{word}");
        }
        for (word, known) in [("ice", "icy"), ("hansen", "nansen"), ("drift", "draught")] {
            assert!(!is_misspelling(word, known), "{word}");
        }
    }

    #[test]
    fn tokens_know_where_they_stand_and_what_follows() {
        let text = "“Who built” the Fram?";
        let tokens = tokens(text, 10);
        let words: Vec<_> = tokens.iter().map(|token| token.text).collect();
        assert_eq!(words, ["Who", "built", "the", "Fram"]);
        assert_eq!(&text[tokens[3].start..tokens[3].end()], "Fram");
        assert_eq!(tokens[3].after, Some('?'));
        assert!(tokens[0].opened && !tokens[3].opened);
    }
}
