//! Records page by page.

use std::collections::BTreeSet;

use proptest::prelude::*;
use quarterdeck_contracts::{Knowledge, Namespace, Namespaces, RecordKind, RecordListing, RecordPage};
use quarterdeck_knowledge::KnowledgeBase;
use quarterdeck_testkit::block_on;

use crate::world::{by_words, record};

fn listing(limit: usize) -> RecordListing {
    RecordListing {
        readable: Namespaces::from(Namespace::ALL),
        kind: None,
        id_prefix: String::new(),
        after: None,
        limit,
    }
}

fn list(base: &KnowledgeBase, listing: RecordListing) -> RecordPage {
    block_on(base.list(listing)).unwrap()
}

fn ids(page: &RecordPage) -> Vec<&str> {
    page.records.iter().map(|record| record.id.as_str()).collect()
}

fn small_base() -> KnowledgeBase {
    let mut secret = record("doc:b", "Secret", "");
    secret.namespace = Namespace::Personal;
    let mut person = record("person:a", "Ada", "");
    person.kind = RecordKind::Person;
    by_words(vec![record("doc:c", "C", ""), person, record("doc:a", "A", ""), secret, record("17", "No", "")])
}

#[test]
fn a_listing_goes_through_the_ids_in_order_and_says_when_others_follow() {
    let base = small_base();
    let first = list(&base, listing(2));
    assert_eq!((ids(&first), first.has_more), (vec!["17", "doc:a"], true));
    let second = list(&base, RecordListing { after: Some("doc:a".to_owned()), ..listing(3) });
    assert_eq!((ids(&second), second.has_more), (vec!["doc:b", "doc:c", "person:a"], false));
    // The record that the page ended with is gone by now.
    let later = list(&base, RecordListing { after: Some("doc:bb".to_owned()), ..listing(9) });
    assert_eq!(ids(&later), ["doc:c", "person:a"]);
}

#[test]
fn a_listing_holds_only_what_may_be_read_and_was_asked_for() {
    let base = small_base();
    let readable = Namespaces::from([Namespace::Studio, Namespace::Public]);
    let seen = list(&base, RecordListing { readable: readable.clone(), ..listing(9) });
    assert_eq!(ids(&seen), ["17", "doc:a", "doc:c", "person:a"]);
    // What may not be read does not even show as more to come.
    let last = RecordListing { readable, id_prefix: "doc:b".to_owned(), ..listing(0) };
    assert_eq!(list(&base, last), RecordPage::default());
    let people = list(&base, RecordListing { kind: Some(RecordKind::Person), ..listing(9) });
    assert_eq!(ids(&people), ["person:a"]);
    let prefix = list(&base, RecordListing { id_prefix: "doc:".to_owned(), ..listing(2) });
    assert_eq!((ids(&prefix), prefix.has_more), (vec!["doc:a", "doc:b"], true));
}

proptest! {
    #[test]
    fn pages_of_any_size_give_every_readable_record_once(
        ids in prop::collection::btree_map("[a-c]{1,3}", 0..3_usize, 0..20),
        limit in 1..6_usize,
        readable in prop::collection::btree_set(0..3_usize, 0..=3),
        id_prefix in "[a-c]{0,2}",
    ) {
        let records = ids.iter().map(|(id, namespace)| {
            let mut record = record(id, "T", "");
            record.namespace = Namespace::ALL[*namespace];
            record
        });
        let base = by_words(records.collect());
        let readable: Namespaces = readable.iter().map(|at| Namespace::ALL[*at]).collect();
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let one = RecordListing { readable: readable.clone(), id_prefix: id_prefix.clone(), after, ..listing(limit) };
            let page = list(&base, one);
            prop_assert!(page.records.len() <= limit);
            prop_assert!(page.records.len() == limit || !page.has_more);
            seen.extend(page.records.iter().map(|record| record.id.clone()));
            if !page.has_more {
                break;
            }
            after = seen.last().cloned();
        }
        let expected: BTreeSet<_> = ids.iter()
            .filter(|(id, at)| id.starts_with(&id_prefix) && readable.contains(&Namespace::ALL[**at]))
            .map(|(id, _)| id.clone()).collect();
        prop_assert_eq!(seen, expected.into_iter().collect::<Vec<_>>());
    }
}
