//! Which texts stand in JSON as they are.

/// A word with this in each of its bytes.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Whether JSON writes the text as it is, between quotes. Most texts of a call are like that, and all are looked at several times,
/// so eight bytes are compared at once.
pub fn needs_no_escape(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (words, rest) = bytes.as_chunks();
    let last = match (bytes.last_chunk(), bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // What was looked at before may be in it, and is looked at again.
        (Some(last), ..) => u64::from_ne_bytes(*last),
        (None, Some([a, b, c, d]), Some([e, f, g, h])) => {
            u64::from_ne_bytes([*a, *b, *c, *d, *e, *f, *g, *h])
        }
        _ => rest.iter().fold(each(b' '), |word, byte| word << 8 | u64::from(*byte)),
    };
    words.iter().fold(escapes(last), |any, word| any | escapes(u64::from_ne_bytes(*word))) == 0
}

/// Not zero if there is a byte in the word that JSON escapes: a control character, a quote or a backslash.
fn escapes(word: u64) -> u64 {
    const HIGH: u64 = each(0x80);
    // A borrow goes beyond a byte only where the answer is known already.
    let below = |word: u64, limit: u8| word.wrapping_sub(each(limit)) & !word & HIGH;
    below(word, b' ') | below(word ^ each(b'"'), 1) | below(word ^ each(b'\\'), 1)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// What is written between the quotes.
    fn written(text: &str) -> String {
        let quoted = Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    }

    #[test]
    fn escapes_are_found_at_any_place_in_texts_of_any_length() {
        for length in 0..40 {
            for special in (0..=0xff).map(char::from).chain(['é', '\u{2028}', '😀']) {
                for place in 0..=length {
                    let text: String = "x".repeat(place) + &special.to_string() + &"y".repeat(length - place);
                    assert_eq!(needs_no_escape(&text), written(&text) == text, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn empty_text_needs_no_escape() {
        assert!(needs_no_escape(""));
    }
}
