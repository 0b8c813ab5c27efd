//! Filters against the truth: rank everything, then throw away what does not pass.

use std::sync::LazyLock;

use proptest::prelude::*;
use quarterdeck_contracts::{
    DateRange, EmptyReason, KnowledgeQuery, KnowledgeRecord, Namespace, RecordFilters, RecordKind,
};
use quarterdeck_knowledge::{KnowledgeBase, ScoreThresholds};

use crate::world::{ask, ids, record, search};

const WORDS: [&str; 12] =
    ["ice", "ship", "wind", "dog", "ski", "pole", "north", "south", "engine", "lamp", "food", "map"];

/// How many records the large base has: enough for one in ten thousand.
const LARGE: usize = 20_000;

fn records(count: usize, seed: u64) -> Vec<KnowledgeRecord> {
    let mut state = seed | 1;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let one = |at: usize| {
        let text: Vec<&str> = (0..3 + next(12)).map(|_| WORDS[next(WORDS.len())]).collect();
        let mut record = record(&format!("doc:{at:05}"), WORDS[next(WORDS.len())], &text.join(" "));
        record.kind = RecordKind::ALL[next(5)];
        record.namespace = if next(10) == 0 { Namespace::Public } else { Namespace::Studio };
        let shares = [("half", 2), ("hundredth", 100), ("tenthousandth", 10_000)];
        record.tags =
            shares.iter().filter(|(_, of)| at % of == 1).map(|(tag, _)| (*tag).to_owned()).collect();
        record.last_updated = (next(4) > 0).then(|| format!("2025-{:02}-{:02}", 1 + next(12), 1 + next(28)));
        record
    };
    (0..count).map(one).collect()
}

fn base_of(records: Vec<KnowledgeRecord>) -> KnowledgeBase {
    KnowledgeBase::build(records, None, None, ScoreThresholds::NONE, &mut |_| {}).unwrap()
}

static LARGE_BASE: LazyLock<KnowledgeBase> = LazyLock::new(|| base_of(records(LARGE, 7)));

fn passes(record: &KnowledgeRecord, filters: &RecordFilters) -> bool {
    let in_range = |range: &DateRange| {
        let day = record.last_updated.as_deref();
        let after = range.start.as_deref().is_none_or(|start| day.is_some_and(|day| day >= start));
        after && range.end.as_deref().is_none_or(|end| day.is_some_and(|day| day <= end))
    };
    filters.kind.is_none_or(|kind| kind == record.kind)
        && filters.tags.iter().all(|tag| record.tags.contains(tag))
        && filters.date_range.as_ref().is_none_or(in_range)
}

/// Everything ranked, then filtered. BM25 looks at the whole base, so filters do not change an order.
fn truth(base: &KnowledgeBase, query: &KnowledgeQuery) -> Vec<String> {
    let all = KnowledgeQuery { filters: RecordFilters::default(), top_k: usize::MAX, ..query.clone() };
    let hits = search(base, all).results;
    assert!(hits.len() < 1_000, "an answer has a thousand results at the most");
    let passing = hits.into_iter().filter(|hit| passes(&hit.record, &query.filters));
    passing.map(|hit| hit.record.id).take(query.top_k).collect()
}

fn filters() -> impl Strategy<Value = RecordFilters> {
    let kind = proptest::option::of((0_usize..5).prop_map(|at| RecordKind::ALL[at]));
    let tags = prop_oneof![
        Just(vec![]),
        Just(vec!["half".to_owned()]),
        Just(vec!["hundredth".to_owned(), "half".to_owned()]),
        Just(vec!["nowhere".to_owned()]),
    ];
    let day =
        || proptest::option::of((1_u32..13, 1_u32..29).prop_map(|(m, d)| format!("2025-{m:02}-{d:02}")));
    let range = proptest::option::of((day(), day()).prop_map(|(start, end)| DateRange { start, end }));
    (kind, tags, range).prop_map(|(kind, tags, date_range)| RecordFilters { kind, tags, date_range })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn filtered_answers_are_the_filtered_ranking(
        seed in any::<u64>(),
        count in 1_usize..400,
        words in proptest::collection::vec(0_usize..WORDS.len(), 1..5),
        filters in filters(),
        top_k in 1_usize..20,
    ) {
        let base = base_of(records(count, seed));
        let question: Vec<_> = words.into_iter().map(|at| WORDS[at]).collect();
        let query = KnowledgeQuery { filters, ..ask(&question.join(" "), top_k) };
        let found = search(&base, query.clone());
        prop_assert_eq!(ids(&found), truth(&base, &query));
        prop_assert!(found.results.is_sorted_by(|a, b| a.score >= b.score));
    }
}

#[test]
fn filters_that_keep_half_a_hundredth_one_and_none_lose_nothing() {
    let base = &*LARGE_BASE;
    let all = base.records();
    for tag in ["half", "hundredth", "tenthousandth", "nowhere"] {
        let mut query = ask("ice ship", 1_000);
        query.filters.tags = vec![tag.to_owned()];
        let found = search(base, query);
        let has_word = |record: &KnowledgeRecord| {
            ["ice", "ship"]
                .iter()
                .any(|word| record.title == *word || record.text.split(' ').any(|own| own == *word))
        };
        let matching = all.iter().filter(|record| {
            record.namespace == Namespace::Studio
                && record.tags.iter().any(|own| own == tag)
                && has_word(record)
        });
        let mut expected: Vec<_> = matching.map(|record| record.id.as_str()).collect();
        if expected.len() < 1_000 {
            let mut found_ids = ids(&found);
            found_ids.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found_ids, expected, "{tag}");
        } else {
            assert_eq!(found.results.len(), 1_000, "{tag}");
        }
        assert_eq!(found.empty, found.results.is_empty().then_some(EmptyReason::Filtered), "{tag}");
    }
}

#[test]
fn an_answer_that_filters_made_empty_says_how_much_there_is() {
    let base = base_of(vec![record("doc:a", "Ice", "ice"), record("doc:b", "Ice", "more ice")]);
    let mut query = ask("ice", 5);
    query.filters.kind = Some(RecordKind::Person);
    let found = search(&base, query.clone());
    assert_eq!((found.empty, found.without_filters), (Some(EmptyReason::Filtered), Some(2)));
    query.query = "volcano".to_owned();
    let found = search(&base, query);
    assert_eq!((found.empty, found.without_filters), (Some(EmptyReason::None), None));
}
