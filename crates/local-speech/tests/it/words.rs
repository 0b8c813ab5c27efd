//! How many words of a text were understood.

/// The part of the words of `said` that are right in `understood`, each wrong, missing or invented word counting against it.
pub(crate) fn words_right(said: &str, understood: &str) -> f64 {
    let (said, understood) = (words(said), words(understood));
    let mut row: Vec<usize> = (0..=understood.len()).collect();
    for (index, word) in said.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in understood.iter().enumerate() {
            let changed = diagonal + usize::from(word != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    1. - row[understood.len()] as f64 / said.len() as f64
}

fn words(text: &str) -> Vec<String> {
    let plain = text.to_lowercase().replace(|c: char| !c.is_alphanumeric() && c != '\'', " ");
    plain.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn wrong_missing_and_invented_words_count() {
    assert_eq!(words_right("Fail better.", "fail better"), 1.);
    assert_eq!(words_right("one two three four", "one too three four"), 0.75);
    assert_eq!(words_right("one two three four", "one three four"), 0.75);
    assert_eq!(words_right("one two three four", "one two and three four"), 0.75);
    assert_eq!(words_right("one two", ""), 0.);
}
