//! Long texts as passages: what is embedded, one vector for each.

use std::ops::Range;

use quarterdeck_contracts::KnowledgeRecord;

use crate::text::{plain, sentences};

/// Encoders cut at 256 word pieces, which is about as much English.
const MAX_PASSAGE_BYTES: usize = 1_100;

/// Where the passages of a plain text are: whole sentences, as many as fit. A text without words has one, empty
/// passage: its title is worth finding.
pub(crate) fn passages(plain: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for sentence in sentences(plain).into_iter().flat_map(|sentence| pieces(plain, sentence)) {
        match found.last_mut() {
            Some(last) if sentence.end - last.start <= MAX_PASSAGE_BYTES => last.end = sentence.end,
            _ => found.push(sentence),
        }
    }
    if found.is_empty() {
        found.push(0..0);
    }
    found
}

/// What is embedded for a record: each passage under the title.
pub(crate) fn embedded_texts(record: &KnowledgeRecord) -> Vec<String> {
    let plain = plain(&record.text);
    passages(&plain).into_iter().map(|place| format!("{}\n{}", record.title, &plain[place])).collect()
}

/// A sentence that is longer than a passage, cut between letters.
fn pieces(text: &str, place: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut begin = place.start;
    std::iter::from_fn(move || {
        if begin >= place.end {
            return None;
        }
        let mut end = place.end.min(begin + MAX_PASSAGE_BYTES);
        if end < place.end {
            end = text.floor_char_boundary(end);
            // Between words if there are any.
            if let Some(space) = text[begin..end].rfind(char::is_whitespace).filter(|space| *space > 0) {
                end = begin + space;
            }
        }
        let piece = begin..end;
        begin = end;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_are_whole_sentences_and_lose_nothing() {
        let sentence = "The ice pressed against the hull all night. ";
        let text = sentence.repeat(100);
        let passages = passages(&text);
        assert!(passages.len() > 3);
        assert!(
            passages
                .iter()
                .all(|place| place.len() <= MAX_PASSAGE_BYTES && text[place.clone()].ends_with("night."))
        );
        let words: usize = passages.iter().map(|place| text[place.clone()].split_whitespace().count()).sum();
        assert_eq!(words, text.split_whitespace().count());
    }

    #[test]
    fn a_sentence_without_end_is_cut_between_letters() {
        let text = "æ".repeat(5_000);
        let all: usize = passages(&text).iter().map(ExactSizeIterator::len).sum();
        assert_eq!(all, text.len());
        assert_eq!(passages(" ").first(), Some(&(0..0)));
    }
}
