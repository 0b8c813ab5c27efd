//! “Did you mean”: the nearest of several names.

/// The candidate that is closest to `word`, when it is close enough to be a slip of the fingers.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity >= 0.82)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let fields = ["sideEffects", "category", "latencyBudgetMs"];
        assert_eq!(nearest("side_effects", fields), Some("sideEffects"));
        assert_eq!(nearest("Category", fields), Some("category"));
        assert_eq!(nearest("colour", fields), None);
    }
}
