//! "Did you mean".

/// The candidate that `word` is most likely a slip of, when one is near.
pub(crate) fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // Long words are no slips, and comparing them costs their product.
    if word.len() > 64 {
        return None;
    }
    candidates
        .filter(|candidate| candidate.len() <= 64)
        .map(|candidate| (similarity(word, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= 0.7)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

/// The steps that looking for the nearest candidate takes.
pub(crate) fn steps<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> u64 {
    candidates.map(|candidate| 1 + (word.len().min(64) * candidate.len().min(64)) as u64 / 4).sum()
}

fn similarity(word: &str, candidate: &str) -> f64 {
    let word = plain(word);
    let candidate = plain(candidate);
    if word == candidate {
        return 1.0;
    }
    strsim::normalized_damerau_levenshtein(&word, &candidate)
}

/// `topK`, `top-k` and `top_k` are one word to a tool author who mistypes them.
fn plain(word: &str) -> String {
    word.chars()
        .filter(|character| !matches!(character, '_' | '-' | '$'))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let names = ["minLength", "maxLength", "pattern", "top_k"];
        let nearest = |word| nearest(word, names.into_iter());
        assert_eq!(nearest("minLenght"), Some("minLength"));
        assert_eq!(nearest("topK"), Some("top_k"));
        assert_eq!(nearest("colour"), None);
    }
}
