//! The semantic leg, with a model whose meaning is plain to see.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quarterdeck_contracts::{EmbedError, Embedder, EmbeddingModel};
use quarterdeck_knowledge::KnowledgeBase;

use crate::world::{ask, ids, record, search};

/// Knows three subjects by a few words each, and counts what it embeds.
pub(crate) struct Subjects {
    model: EmbeddingModel,
    embedded: AtomicUsize,
}

const SUBJECTS: [&[&str]; 3] =
    [&["ship", "boat", "vessel"], &["dog", "hound", "puppy"], &["food", "meal", "supper"]];

impl Subjects {
    pub(crate) fn new(digest: &str) -> Arc<Self> {
        let model = EmbeddingModel { name: "subjects".into(), dimension: 3, digest: digest.into() };
        Arc::new(Self { model, embedded: AtomicUsize::new(0) })
    }

    fn embedded(&self) -> usize {
        self.embedded.load(Ordering::SeqCst)
    }
}

impl Embedder for Subjects {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.embedded.fetch_add(texts.len(), Ordering::SeqCst);
        if texts.iter().any(|text| text.contains("panic")) {
            panic!("a model that breaks");
        }
        let embed = |text: &&str| -> Vec<f32> {
            let text = text.to_lowercase();
            SUBJECTS
                .iter()
                .map(|words| words.iter().filter(|word| text.contains(**word)).count() as f32)
                .collect()
        };
        Ok(texts.iter().map(embed).collect())
    }
}

fn records() -> Vec<quarterdeck_contracts::KnowledgeRecord> {
    vec![
        record("doc:hound", "A hound", "It barks."),
        record("doc:nothing", "Weather", "It rained."),
        record("doc:ship", "The ship", "She sails."),
        record("doc:supper", "Supper", "Soup and bread."),
    ]
}

#[test]
fn meaning_finds_what_words_do_not() {
    let model = Subjects::new("1");
    let base = KnowledgeBase::from_records(records(), Some(model.clone()), None).unwrap();
    let found = search(&base, ask("vessel", 2));
    assert_eq!((ids(&found), found.degraded), (vec!["doc:ship"], false));
    assert!((found.results[0].score - 0.5).abs() < 1e-6, "{}", found.results[0].score);
    let before = model.embedded();
    search(&base, ask(" vessel ", 2));
    assert_eq!(model.embedded(), before, "a question that was asked before is not embedded again");
    assert_eq!(base.stats().model.unwrap().digest, "1");
}

#[test]
fn a_model_that_fails_leaves_the_words() {
    let base = KnowledgeBase::from_records(records(), Some(Subjects::new("1")), None).unwrap();
    let found = search(&base, ask("supper soup bread panic", 2));
    assert_eq!((ids(&found), found.degraded), (vec!["doc:supper"], true));
    assert!(!search(&base, ask("vessel", 2)).degraded, "the next question is embedded again");
}

#[test]
fn what_did_not_change_keeps_its_vectors() {
    let model = Subjects::new("1");
    let base = KnowledgeBase::from_records(records(), Some(model.clone()), None).unwrap();
    assert_eq!(model.embedded(), 4);
    let mut next = records();
    next[0].text = "It sleeps.".to_owned();
    let mut seen = Vec::new();
    base.replace(next.clone(), &mut |progress| seen.push((progress.done, progress.total))).unwrap();
    assert_eq!((model.embedded(), seen), (5, vec![(3, 4), (4, 4)]));

    let known = base.known_vectors().unwrap();
    let same = Subjects::new("1");
    KnowledgeBase::from_records(next.clone(), Some(same.clone()), Some(&known)).unwrap();
    assert_eq!(same.embedded(), 0);
    let other = Subjects::new("2");
    KnowledgeBase::from_records(next, Some(other.clone()), Some(&known)).unwrap();
    assert_eq!(other.embedded(), 4, "vectors of another model are never used");
}
