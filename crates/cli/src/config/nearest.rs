//! What somebody may have meant who wrote a key that is not one.

use strsim::normalized_damerau_levenshtein as likeness;

/// The key that is most like `word`, if one is like it: by its whole name, or by its last part, since people put
/// keys into the wrong table.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let of_word = word.rsplit('.').next().unwrap_or(word);
    let score = |key: &'a str| likeness(word, key).max(0.9 * likeness(of_word, last(key)));
    let scored = known.into_iter().map(|key| (score(key), key));
    scored
        .filter(|(score, _)| *score > 0.6)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, key)| key)
}
