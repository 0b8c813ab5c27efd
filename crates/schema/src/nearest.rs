//! “Did you mean”: the names that a mistyped one is most like.

/// Longer words are no slips, and comparing them costs their product.
const MAX_COMPARED_BYTES: usize = 64;
const MIN_SIMILARITY: f64 = 0.82;

/// The candidate that `word` is most likely a slip of, when one is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = similar(word, candidates);
    near.max_by(|(left, _), (right, _)| left.total_cmp(right)).map(|(_, candidate)| candidate)
}

/// The `max` nearest candidates, the nearest first.
pub fn nearest_few<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    max: usize,
) -> Vec<&'a str> {
    let mut near: Vec<_> = similar(word, candidates).collect();
    near.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    near.into_iter().take(max).map(|(_, candidate)| candidate).collect()
}

/// The steps that looking for the nearest candidate takes, for those who have a budget.
pub(crate) fn steps<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> u64 {
    let length = |text: &str| text.len().min(MAX_COMPARED_BYTES);
    candidates.map(|candidate| 1 + (length(word) * length(candidate)) as u64 / 4).sum()
}

fn similar<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> impl Iterator<Item = (f64, &'a str)> {
    let wanted = (word.len() <= MAX_COMPARED_BYTES).then(|| plain(word));
    let candidates = candidates.into_iter().filter(|candidate| candidate.len() <= MAX_COMPARED_BYTES);
    candidates.filter_map(move |candidate| {
        let (wanted, known) = (wanted.as_deref()?, plain(candidate));
        // A common beginning makes a word near; how much must be changed says which one is nearest.
        let is_near = strsim::jaro_winkler(wanted, &known) >= MIN_SIMILARITY;
        is_near.then(|| (strsim::normalized_damerau_levenshtein(wanted, &known), candidate))
    })
}

/// `topK`, `top-k` and `top_k` are one word to an author who mistypes them.
fn plain(word: &str) -> String {
    let letters = word.chars().filter(|character| !matches!(character, '_' | '-' | '$'));
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slip_is_recognised_and_another_word_is_not() {
        let names = ["sideEffects", "category", "minLength", "maxLength", "pattern", "top_k"];
        assert_eq!(nearest("side_effects", names), Some("sideEffects"));
        assert_eq!(nearest("Category", names), Some("category"));
        assert_eq!(nearest("minLenght", names), Some("minLength"));
        assert_eq!(nearest("topK", names), Some("top_k"));
        assert_eq!(nearest("propertys", ["propertyNames", "properties"]), Some("properties"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest(&"category".repeat(9), names), None);
    }

    #[test]
    fn nearest_few_come_nearest_first() {
        let names = ["kb_search_all", "get_weather", "kb_search"];
        assert_eq!(nearest_few("kb_serch", names, 2), ["kb_search", "kb_search_all"]);
        assert_eq!(nearest_few("kb_serch", names, 1), ["kb_search"]);
    }
}
