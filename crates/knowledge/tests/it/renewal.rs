//! Searching while the base is built again: every answer is of one base, whole.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use quarterdeck_contracts::{Knowledge, KnowledgeRecord, Namespace, Namespaces};
use quarterdeck_knowledge::store::{KnowledgeFile, Sources};
use quarterdeck_knowledge::{KnowledgeBase, ScoreThresholds};
use quarterdeck_testkit::block_on;

use crate::meaning::Subjects;
use crate::world::{ask, record, search};

/// How many records each base has.
const RECORDS: usize = 40;
/// How often the base is built again.
const TIMES: usize = 12;

/// Records that all say which base they belong to, and how many there are.
fn generation(number: usize) -> Vec<KnowledgeRecord> {
    let one = |at: usize| {
        record(&format!("doc:{at:02}"), &format!("Ship {at}"), &format!("Ship of base {number}."))
    };
    (0..RECORDS + number).map(one).collect()
}

/// Which base an answer is of.
fn base_of(text: &str) -> usize {
    text.trim_end_matches('.').rsplit(' ').next().unwrap().parse().unwrap()
}

fn look(base: &KnowledgeBase) {
    let found = search(base, ask("ship", 1_000));
    let numbers: Vec<usize> = found.results.iter().map(|hit| base_of(&hit.record.text)).collect();
    let number = numbers[0];
    assert!(numbers.iter().all(|other| *other == number), "an answer of two bases: {numbers:?}");
    let got =
        block_on(base.get(vec!["doc:00".to_owned(), "doc:01".to_owned()], Namespaces::from(Namespace::ALL)));
    let got = got.unwrap();
    assert_eq!(base_of(&got[0].text), base_of(&got[1].text));
    assert_eq!(numbers.len(), RECORDS + number, "half a base");
}

fn renewed_under_load(base: &KnowledgeBase, mut renew: impl FnMut(usize)) {
    let (is_over, searches) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let seekers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        look(base);
                        searches.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for number in 1..=TIMES {
            let before = searches.load(Ordering::Relaxed);
            renew(number);
            // Some searches see this base before the next one comes.
            while searches.load(Ordering::Relaxed) < before + 3
                && !seekers.iter().any(|one| one.is_finished())
            {
                thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(base.stats().records, RECORDS + TIMES);
}

#[test]
fn answers_by_words_are_of_one_base_each() {
    let base = KnowledgeBase::build(generation(0), None, None, ScoreThresholds::NONE, &mut |_| {}).unwrap();
    renewed_under_load(&base, |number| base.replace(generation(number), &mut |_| {}).unwrap());
}

#[test]
fn answers_by_meaning_are_of_one_base_each_while_it_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kb.db");
    let mut file = KnowledgeFile::open(&path).unwrap().file;
    let sources = Sources::default();
    let (base, _) = file
        .build(generation(0), Some(Subjects::new("1")), ScoreThresholds::NONE, &sources, &mut |_| {})
        .unwrap();
    renewed_under_load(&base, |number| {
        file.replace(&base, generation(number), &sources, &mut |_| {}).unwrap();
    });
    let loaded = KnowledgeFile::open(&path).unwrap().file.load(ScoreThresholds::NONE).unwrap().unwrap().base;
    loaded.use_model(Subjects::new("1"));
    look(&loaded);
    assert!(!search(&loaded, ask("vessel", 5)).degraded);
}

#[test]
fn a_base_is_searched_by_words_until_its_model_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = KnowledgeFile::open(&folder.path().join("kb.db")).unwrap().file;
    file.build(
        generation(0),
        Some(Subjects::new("1")),
        ScoreThresholds::NONE,
        &Sources::default(),
        &mut |_| {},
    )
    .unwrap();
    let loaded = file.load(ScoreThresholds::NONE).unwrap().unwrap().base;
    assert!(search(&loaded, ask("ship", 5)).degraded);
    loaded.use_model(Subjects::new("2"));
    assert!(search(&loaded, ask("ship", 5)).degraded, "vectors of another model are never compared");
    loaded.use_model(Subjects::new("1"));
    let found = search(&loaded, ask("vessel", 5));
    assert!(!found.degraded && found.results.len() == 5);
}
