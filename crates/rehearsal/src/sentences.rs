//! Sentences of a record.

/// How much of a record is read, so that a longer one does not cost more.
const MAX_RECORD_BYTES: usize = 64 * 1024;
/// Of a quoted sentence.
const MAX_SENTENCE_CHARS: usize = 400;

/// A sentence of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentence {
    pub(crate) text: String,
    /// Whether it opens a paragraph. Others may lean on the one before them.
    pub(crate) opens: bool,
    /// The heading that it stands under.
    pub(crate) heading: String,
}

/// The sentences of a Markdown text, in order, without its marks.
pub(crate) fn sentences(markdown: &str) -> Vec<Sentence> {
    let mut all = Vec::new();
    let mut heading = String::new();
    let mut paragraph = String::new();
    let mut in_code = false;
    for line in head(markdown, MAX_RECORD_BYTES).lines().chain([""]) {
        let line = line.trim();
        if line.starts_with("```") {
            in_code = !in_code;
            continue;
        }
        let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
        if in_code || line.starts_with('|') {
            continue;
        }
        if line.is_empty() || line.starts_with('#') || item.is_some() {
            close(&mut paragraph, &heading, &mut all);
        }
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().to_owned();
            continue;
        }
        if !paragraph.is_empty() {
            paragraph.push(' ');
        }
        paragraph.push_str(item.unwrap_or(line).trim_start_matches('>').trim());
    }
    all
}

fn close(paragraph: &mut String, heading: &str, all: &mut Vec<Sentence>) {
    let plain = without_marks(&std::mem::take(paragraph));
    for (nth, text) in split(&plain).into_iter().enumerate() {
        all.push(Sentence {
            text: shorten(text, MAX_SENTENCE_CHARS),
            opens: nth == 0,
            heading: heading.to_owned(),
        });
    }
}

/// The text of links instead of their targets, and no emphasis.
fn without_marks(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let (before, link) = rest.split_at(open);
        plain.push_str(before);
        match labelled(&link[1..]) {
            Some((label, after)) => {
                plain.push_str(label);
                rest = after;
            }
            None => {
                plain.push('[');
                rest = &link[1..];
            }
        }
    }
    plain.push_str(rest);
    plain.replace("**", "").replace('`', "")
}

/// The label of a link whose bracket is open, and what follows the link. Looks no further than the next bracket and a
/// usual target, so that a text of nothing but brackets is read in one go.
fn labelled(link: &str) -> Option<(&str, &str)> {
    const MAX_TARGET_BYTES: usize = 500;
    let (label, after) = link.split_at(link.find(['[', ']'])?);
    let target = after.strip_prefix("](")?;
    let end = head(target, MAX_TARGET_BYTES).find(')')?;
    Some((label, &target[end + 1..]))
}

/// Endings with a dot that end no sentence.
const ABBREVIATIONS: &[&str] = &[
    "approx", "capt", "cf", "dr", "e.g", "etc", "fig", "i.e", "jr", "lat", "lt", "mr", "mrs", "no", "nr",
    "prof", "sr", "st", "vs",
];

fn split(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if !matches!(letter, '.' | '!' | '?' | '…') || (letter == '.' && is_abbreviated(&text[start..at])) {
            continue;
        }
        while letters
            .next_if(|(_, next)| matches!(next, '”' | '"' | '’' | '\'' | ')' | ']' | '.' | '!' | '?'))
            .is_some()
        {}
        let Some(&(end, space)) = letters.peek() else { break };
        let goes_on = text[end..].trim_start().starts_with(|next: char| next.is_lowercase());
        if space.is_whitespace() && !goes_on {
            sentences.push(text[start..end].trim());
            start = end;
        }
    }
    sentences.push(text[start..].trim());
    sentences.retain(|sentence| sentence.chars().any(char::is_alphanumeric));
    sentences
}

fn is_abbreviated(before: &str) -> bool {
    let word =
        before.rsplit(|letter: char| letter.is_whitespace() || letter == '(').next().unwrap_or_default();
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    is_initial || ABBREVIATIONS.binary_search(&word.to_lowercase().as_str()).is_ok()
}

/// The beginning of a text, cut between words with an ellipsis.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let end = text.char_indices().nth(most.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    let cut = text[..end].rfind(char::is_whitespace).filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", text[..cut].trim_end())
}

/// The first bytes of a text, whole characters only.
pub(crate) fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sentences: &[Sentence]) -> Vec<&str> {
        sentences.iter().map(|sentence| sentence.text.as_str()).collect()
    }

    #[test]
    fn markdown_becomes_plain_sentences() {
        let record = "# Framheim\n\nFramheim was the base of\n[the expedition](project:south). Dr. J. Berg said “No.” twice!\n\n\
                      ```\ncode. Here.\n```\n- Round **sides**.\n| a | b |\n";
        assert_eq!(
            texts(&sentences(record)),
            ["Framheim was the base of the expedition.", "Dr. J. Berg said “No.” twice!", "Round sides."]
        );
    }

    #[test]
    fn long_texts_are_cut_between_words() {
        assert_eq!(shorten("one two three", 9), "one two…");
        assert_eq!(shorten("one", 9), "one");
        assert_eq!(shorten("öööööööööööö", 5), "öööö…");
    }
}
