//! The sample base and its questions, which lie in the repository.

use std::fs;
use std::path::{Path, PathBuf};

use quarterdeck_contracts::Namespace;
use quarterdeck_knowledge::{KnowledgeBase, read_folder};

use crate::world::{ask, by_words, ids, search};

/// The folder, or `None` with a word on standard error. `QUARTERDECK_KB` names it when it is not `kb`.
#[expect(clippy::print_stderr, reason = "a test that had nothing to judge must say so")]
#[expect(clippy::disallowed_methods, reason = "another base can be checked too")]
fn folder() -> Option<PathBuf> {
    let folder = match std::env::var_os("QUARTERDECK_KB") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kb"),
    };
    if !folder.join("_questions").exists() {
        eprintln!("the sample base has no questions here; the thresholds were not checked");
        return None;
    }
    Some(folder)
}

/// Everything in one namespace: these questions are about ranking.
fn base(folder: &Path) -> KnowledgeBase {
    let (mut records, _) = read_folder(folder);
    records.iter_mut().for_each(|record| record.namespace = Namespace::Studio);
    by_words(records)
}

fn share_found(file: &str, within: usize) -> Option<f64> {
    let folder = folder()?;
    let base = base(&folder);
    let questions = fs::read_to_string(folder.join("_questions").join(file)).unwrap();
    let questions: Vec<_> = questions.lines().filter_map(|line| line.split_once('\t')).collect();
    let is_found = |(question, id): &&(&str, &str)| ids(&search(&base, ask(question, within))).contains(id);
    Some(questions.iter().filter(is_found).count() as f64 / questions.len().max(1) as f64)
}

#[test]
fn plain_questions_find_their_record() {
    assert!(share_found("plain.tsv", 1).is_none_or(|share| share >= 0.85));
    assert!(share_found("plain.tsv", 3).is_none_or(|share| share >= 0.95));
}

#[test]
fn misspelt_and_turned_names_find_their_record() {
    assert!(share_found("misspelt.tsv", 3).is_none_or(|share| share >= 0.95));
}

#[test]
fn most_questions_about_nothing_come_back_empty() {
    let Some(folder) = folder() else { return };
    let base = base(&folder);
    let questions = fs::read_to_string(folder.join("_questions/nothing.txt")).unwrap();
    let questions: Vec<_> = questions.lines().filter(|line| !line.trim().is_empty()).collect();
    let empty =
        questions.iter().filter(|question| search(&base, ask(question, 5)).results.is_empty()).count();
    // Of two words one of which is there, words alone cannot say which mattered.
    assert!(empty as f64 >= questions.len() as f64 * 0.75, "{empty} of {}", questions.len());
}
