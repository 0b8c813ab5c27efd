//! Splits a reply into sentences while it is being written, so that the first is spoken before the second is known.

/// A clause that is longer is cut at a comma or a space.
const MAX_PROSE_CHARS: usize = 200;
/// Where such a cut may be at the earliest: a few words alone sound torn off.
const MIN_CLAUSE_CHARS: usize = 60;
/// How many bytes of code are held back; nothing of it is spoken.
const MAX_CODE_BYTES: usize = 2_000;

/// Words that end with a full stop and do not end a sentence.
const ABBREVIATIONS: &[&str] = &[
    "mr", "mrs", "ms", "dr", "prof", "st", "mt", "vs", "e.g", "i.e", "approx", "no", "nos", "fig", "vol",
    "pp", "cf", "gen", "col", "capt", "lt", "sen", "rep", "rev", "hon", "ca", "bzw", "z.b", "d.h", "u.a",
    "nr", "str", "evtl", "ggf", "sra", "srta", "p.ej", "mme", "mlle", "av", "ing", "resp",
];
/// Words that end with a full stop and end a sentence only when a capital follows.
const PERHAPS_LAST: &[&str] =
    &["etc", "inc", "ltd", "co", "corp", "jr", "sr", "a.m", "p.m", "u.s", "u.k", "usw"];
/// Names before which a number with a full stop is a day, as in German.
const MONTHS: &[&str] = &[
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
    "Jahrhundert",
];

/// A piece of a reply that is spoken at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// As it was written. White space stands before the words.
    pub(crate) text: String,
    /// Whether it is a block of code, of which nothing is spoken.
    pub(crate) is_code: bool,
}

/// Takes text as it comes and gives pieces as they become complete. Together they are the text.
#[derive(Debug, Default)]
pub(crate) struct Sentences {
    buffer: String,
    /// The buffer begins within a block of code.
    in_code: bool,
}

/// Whether a sentence ends at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ends,
    GoesOn,
    /// What follows decides.
    Unsure,
}

impl Sentences {
    /// Takes more text.
    pub(crate) fn push(&mut self, text: &str) {
        self.buffer.push_str(text);
    }

    /// The next piece that is complete.
    pub(crate) fn next_complete(&mut self) -> Option<Piece> {
        self.next_piece(false)
    }

    /// What is not complete, if the rest of it will never come. It is gone.
    pub(crate) fn take_incomplete(&mut self) -> String {
        std::mem::take(self).buffer
    }

    /// The next piece of what there is, after the last of the text has come.
    pub(crate) fn next_of_rest(&mut self) -> Option<Piece> {
        self.next_piece(true)
    }

    fn next_piece(&mut self, is_last: bool) -> Option<Piece> {
        if self.in_code {
            return self.next_code(is_last);
        }
        let end = match prose_end(&self.buffer, is_last) {
            Some(end) => end,
            None if self.begins_code() => {
                self.in_code = true;
                return self.next_code(is_last);
            }
            None if is_last && !self.buffer.is_empty() => self.buffer.len(),
            None => return None,
        };
        Some(self.take(end, false))
    }

    fn begins_code(&self) -> bool {
        self.buffer.trim_start().starts_with("```")
    }

    /// A block of code up to its closing fence, or as much as is held back of it.
    fn next_code(&mut self, is_last: bool) -> Option<Piece> {
        let opening = self.buffer.len() - self.buffer.trim_start().len();
        let inside = if self.begins_code() { opening + 3 } else { 0 };
        let closing = self.buffer.get(inside..).and_then(|rest| rest.find("```"));
        if let Some(closing) = closing {
            self.in_code = false;
            return Some(self.take(inside + closing + 3, true));
        }
        if is_last && !self.buffer.is_empty() {
            return Some(self.take(self.buffer.len(), true));
        }
        // The last bytes may be the beginning of the fence.
        let end = self.buffer.floor_char_boundary(self.buffer.len().saturating_sub(3));
        (end > MAX_CODE_BYTES && end > inside).then(|| self.take(end, true))
    }

    fn take(&mut self, end: usize, is_code: bool) -> Piece {
        let rest = self.buffer.split_off(end);
        Piece { text: std::mem::replace(&mut self.buffer, rest), is_code }
    }
}

/// Where the first piece of prose ends, if that can be said.
fn prose_end(text: &str, is_last: bool) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    if text[start..].starts_with("```") || (!is_last && "```".starts_with(&text[start..])) {
        return None;
    }
    let mut chars = 0;
    for (at, letter) in text[start..].char_indices().map(|(at, letter)| (start + at, letter)) {
        let after = at + letter.len_utf8();
        let verdict = match letter {
            '\n' | '\r' => return Some(at),
            '。' | '！' | '？' | '।' | '؟' | '۔' | '｡' => after_mark(&text[after..], false),
            '.' => after_point(&text[start..at], &text[after..]),
            '!' | '?' => after_mark(&text[after..], true),
            '…' => after_ellipsis(&text[after..]),
            _ => Verdict::GoesOn,
        };
        match verdict {
            Verdict::Ends => return Some(after + closers(&text[after..])),
            Verdict::Unsure if !is_last && chars < 2 * MAX_PROSE_CHARS => return None,
            Verdict::Unsure | Verdict::GoesOn => {}
        }
        chars += 1;
        if chars > MAX_PROSE_CHARS
            && let Some(cut) = clause_end(&text[start..after], chars)
        {
            return Some(start + cut);
        }
    }
    None
}

/// Where a clause that has no end is cut: after the last comma or before the last space. Without either it is cut
/// later, since it may be one long address.
fn clause_end(text: &str, chars: usize) -> Option<usize> {
    let earliest = text.char_indices().nth(MIN_CLAUSE_CHARS).map_or(text.len(), |(at, _)| at);
    let is_break = |letter: char| matches!(letter, ',' | ';' | ':' | '—' | '–' | '，' | '、' | '；' | '：');
    let mut breaks = text.char_indices().filter(|(at, letter)| {
        let after = at + letter.len_utf8();
        let is_wide = letter.len_utf8() > 2 && !matches!(letter, '—' | '–');
        *at >= earliest && is_break(*letter) && (is_wide || text[after..].starts_with(char::is_whitespace))
    });
    if let Some((at, letter)) = breaks.next_back() {
        return Some(at + letter.len_utf8());
    }
    let space = text.char_indices().rfind(|(at, letter)| *at >= earliest && letter.is_whitespace());
    match space {
        Some((at, _)) => Some(at),
        None => (chars > 2 * MAX_PROSE_CHARS).then_some(text.len()),
    }
}

/// How many bytes of quotation marks, brackets and emphasis close what ended.
fn closers(after: &str) -> usize {
    let is_closer = |letter: char| {
        matches!(
            letter,
            '"' | '\''
                | '”'
                | '’'
                | '»'
                | ')'
                | ']'
                | '*'
                | '_'
                | '」'
                | '』'
                | '）'
                | '!'
                | '?'
                | '！'
                | '？'
        )
    };
    after.find(|letter| !is_closer(letter)).unwrap_or(after.len())
}

/// After a mark that ends a sentence; `needs_space` where the script separates sentences by a space.
fn after_mark(after: &str, needs_space: bool) -> Verdict {
    let closers = closers(after);
    let rest = &after[closers..];
    match rest.chars().next() {
        None => Verdict::Unsure,
        Some(next) if needs_space && !next.is_whitespace() => Verdict::GoesOn,
        // “Really?” he asked.
        Some(_) if needs_space && closers > 0 => unless_lower_case(rest),
        Some(_) => Verdict::Ends,
    }
}

fn after_ellipsis(after: &str) -> Verdict {
    match after.chars().next() {
        None => Verdict::Unsure,
        Some(next) if next.is_whitespace() => unless_lower_case(after),
        Some(_) => Verdict::GoesOn,
    }
}

/// Ends unless the next word begins with a small letter.
fn unless_lower_case(after: &str) -> Verdict {
    match after.trim_start().chars().next() {
        None => Verdict::Unsure,
        Some(next) if next.is_lowercase() => Verdict::GoesOn,
        Some(_) => Verdict::Ends,
    }
}

fn after_point(before: &str, after: &str) -> Verdict {
    let verdict = after_mark(after, true);
    if verdict != Verdict::Ends {
        return verdict;
    }
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let word = word.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    if word.is_empty() && before.ends_with('.') {
        return after_ellipsis(after);
    }
    if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
        return after_number(before, word, after);
    }
    let folded = word.to_lowercase();
    let mut letters = word.chars();
    let is_initial = letters.next().is_some_and(|letter| letter.is_uppercase() && letter != 'I')
        && letters.next().is_none();
    if is_initial || ABBREVIATIONS.contains(&folded.as_str()) {
        return Verdict::GoesOn;
    }
    if PERHAPS_LAST.contains(&folded.as_str()) || word.ends_with("..") {
        return unless_lower_case(after);
    }
    Verdict::Ends
}

/// `1.` before a list's item, and the days of `14. Juli`, end nothing.
fn after_number(before: &str, number: &str, after: &str) -> Verdict {
    if before.trim().len() == number.len() {
        return Verdict::GoesOn;
    }
    if number.len() > 2 {
        return Verdict::Ends;
    }
    let next = after.trim_start();
    let word = next.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
    let is_whole = word.len() < next.len();
    if is_whole {
        return if MONTHS.contains(&word) { Verdict::GoesOn } else { Verdict::Ends };
    }
    let may_become = word.is_empty() || MONTHS.iter().any(|month| month.starts_with(word));
    if may_become { Verdict::Unsure } else { Verdict::Ends }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str, step: usize) -> Vec<Piece> {
        let (mut sentences, mut pieces) = (Sentences::default(), Vec::new());
        let letters: Vec<char> = text.chars().collect();
        for chunk in letters.chunks(step.max(1)) {
            sentences.push(&chunk.iter().collect::<String>());
            while let Some(piece) = sentences.next_complete() {
                pieces.push(piece);
            }
        }
        while let Some(piece) = sentences.next_of_rest() {
            pieces.push(piece);
        }
        pieces
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        for step in [1, 3, 7, 10_000] {
            let pieces: Vec<String> = split(text, step).into_iter().map(|piece| piece.text).collect();
            assert_eq!(pieces, expected, "in steps of {step}");
        }
    }

    #[test]
    fn a_sentence_ends_at_its_mark() {
        check("Hello! How are you? I am well.", &["Hello!", " How are you?", " I am well."]);
        check("So do I. Do you?", &["So do I.", " Do you?"]);
    }

    #[test]
    fn the_first_sentence_is_known_while_the_second_is_written() {
        let mut sentences = Sentences::default();
        sentences.push("The Fram was built by Colin Archer.");
        assert_eq!(sentences.next_complete(), None, "it may be Archer.com");
        sentences.push(" She");
        let text = "The Fram was built by Colin Archer.".to_owned();
        assert_eq!(sentences.next_complete(), Some(Piece { text, is_code: false }));
        assert_eq!(sentences.next_complete(), None);
    }

    #[test]
    fn abbreviations_initials_and_numbers_end_nothing() {
        check(
            "Dr. F. Nansen paid 3.5 million, e.g. for coal. Yes.",
            &["Dr. F. Nansen paid 3.5 million, e.g. for coal.", " Yes."],
        );
        check(
            "At 9 p.m. we left. At 9 p.m. The rest slept.",
            &["At 9 p.m. we left.", " At 9 p.m.", " The rest slept."],
        );
        check(
            "Am 14. Juli war es. Er ist 42. Sie auch.",
            &["Am 14. Juli war es.", " Er ist 42.", " Sie auch."],
        );
        check("See example.com. Version 1.2.3 is out.", &["See example.com.", " Version 1.2.3 is out."]);
    }

    #[test]
    fn quotations_close_with_their_sentence() {
        check("“Go on!” he said. “Why?” No one knew.", &["“Go on!” he said.", " “Why?”", " No one knew."]);
        check("Wait... what? Wait... No.", &["Wait... what?", " Wait...", " No."]);
    }

    #[test]
    fn lines_and_items_of_lists_are_pieces() {
        check(
            "Two ships:\n1. Fram\n2. Gjøa\n\n- and more",
            &["Two ships:", "\n1. Fram", "\n2. Gjøa", "\n\n- and more"],
        );
    }

    #[test]
    fn other_scripts_have_marks_of_their_own() {
        check("船です。はい！「そう。」次", &["船です。", "はい！", "「そう。」", "次"]);
        check("यह है। हाँ", &["यह है।", " हाँ"]);
    }

    #[test]
    fn a_long_clause_is_cut_at_a_comma_or_a_space() {
        let clause = "word ".repeat(30);
        let text = format!("{}, {}", clause.trim(), clause.trim());
        let pieces = split(&text, 5);
        assert_eq!(pieces[0].text, format!("{},", clause.trim()));
        let spaced = "word ".repeat(60);
        assert!(split(&spaced, 5).iter().all(|piece| piece.text.chars().count() <= 201));
        assert!(split(&"x".repeat(5_000), 5).iter().all(|piece| piece.text.len() <= 402));
    }

    #[test]
    fn blocks_of_code_are_marked() {
        let pieces = split("Run this:\n```sh\nls. -l\n```\nDone. Yes", 4);
        let marked: Vec<(&str, bool)> = pieces.iter().map(|piece| (&*piece.text, piece.is_code)).collect();
        let code = "\n```sh\nls. -l\n```";
        assert_eq!(marked, [("Run this:", false), (code, true), ("\nDone.", false), (" Yes", false)]);
        assert!(split(&format!("```\n{}", "x\n".repeat(9_000)), 50).iter().all(|piece| piece.is_code));
    }

    proptest! {
        #[test]
        fn pieces_together_are_the_text(
            text in "([a-zA-Z]{1,9}|[0-9]{1,4}|[.!?…,;:\"'”)\\[\\]*_`|-]|```|\n|  ?|。|「|」|é|Dr\\.|etc\\.){0,160}",
            step in 1_usize..40,
        ) {
            let pieces = split(&text, step);
            let whole: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
            prop_assert_eq!(whole, text);
            for piece in &pieces {
                prop_assert!(!piece.text.is_empty());
                let most = if piece.is_code { MAX_CODE_BYTES + 200 } else { 2 * MAX_PROSE_CHARS + 20 };
                prop_assert!(piece.is_code || piece.text.trim().chars().count() <= most, "{}", piece.text);
            }
        }

        #[test]
        fn any_text_is_split_whole(text in "\\PC{0,300}", step in 1_usize..9) {
            let whole: String = split(&text, step).iter().map(|piece| piece.text.as_str()).collect();
            prop_assert_eq!(whole, text);
        }
    }
}
