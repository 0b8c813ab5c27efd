//! How much a model takes and how much it was sent, from the words in which servers say that it was too much.

use quarterdeck_contracts::ContextOverflow;

/// What stands in front of the number of tokens that a model takes.
const BEFORE_LIMIT: [&str; 9] = [
    "maximum context length is ",
    "maximum context length of ",
    "maximum model length of ",
    "context length of only ",
    "context window of ",
    "context size (",
    "context length (",
    "tokens > ",
    "n_ctx = ",
];

/// Reads the numbers, where the words are known: of vLLM, LM Studio, llama.cpp, OpenAI and Anthropic.
pub(crate) fn read(message: &str) -> Option<ContextOverflow> {
    let lower = message.to_ascii_lowercase();
    let limit_at = BEFORE_LIMIT.iter().find_map(|words| Some(lower.find(words)? + words.len()))?;
    let limit = number(&lower[limit_at..])?;
    let sent = numbers(&lower).filter(|count| *count > limit).min();
    Some(ContextOverflow { limit, sent })
}

/// The number at the beginning of a text; separators of thousands may stand in it.
fn number(text: &str) -> Option<u64> {
    let digits: String = text
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(char::is_ascii_digit)
        .take(12)
        .collect();
    digits.parse().ok()
}

fn numbers(text: &str) -> impl Iterator<Item = u64> {
    let starts = text.char_indices().scan(false, |was_digit, (at, c)| {
        let begins = c.is_ascii_digit() && !*was_digit;
        *was_digit = c.is_ascii_digit() || (*was_digit && c == ',');
        Some((begins, at))
    });
    starts.filter(|(begins, _)| *begins).filter_map(|(_, at)| number(&text[at..])).take(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_tell_their_limit_in_many_words() {
        for (message, limit, sent) in [
            (
                "This model's maximum context length is 2048 tokens. However, you requested 5100 tokens (4844 in the \
                 messages, 256 in the completion). Please reduce the length.",
                2_048,
                Some(4_844),
            ),
            (
                "The decoder prompt (length 5312) is longer than the maximum model length of 2048.",
                2_048,
                Some(5_312),
            ),
            (
                "Trying to keep the first 9001 tokens when context the overflows. However, the model is loaded with \
                 context length of only 4096 tokens, which is not enough.",
                4_096,
                Some(9_001),
            ),
            ("the request exceeds the available context size (2048 tokens), try increasing it", 2_048, None),
            ("prompt is too long: 210,000 tokens > 200,000 maximum", 200_000, Some(210_000)),
        ] {
            assert_eq!(read(message), Some(ContextOverflow { limit, sent }), "{message}");
        }
    }

    #[test]
    fn words_without_a_limit_tell_nothing() {
        for message in
            ["", "too long", "input length 9 exceeds the context length", "maximum context length is many"]
        {
            assert_eq!(read(message), None, "{message}");
        }
    }
}
