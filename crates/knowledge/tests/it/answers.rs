//! What an answer says: snippets, matched words, ids, and the base of the moment.

use quarterdeck_contracts::handler::CapabilityErrorCode;
use quarterdeck_contracts::{Knowledge, Namespace, Namespaces};
use quarterdeck_testkit::block_on;

use crate::world::{ask, by_words, ids, record, search};

#[test]
fn a_snippet_is_whole_sentences_around_the_words() {
    let filler = "Nothing of note happened on that day. ".repeat(20);
    let text = format!("# Log\n\n{filler}Then a [bear](doc:bear) broke the lantern. It ran away. {filler}");
    let base = by_words(vec![record("doc:log", "Log", &text), record("doc:bear", "Other", "Seals.")]);
    let mut query = ask("bears with lanterns", 5);
    query.include_snippets = true;
    query.snippet_length = 60;
    let found = search(&base, query.clone());
    assert_eq!(found.results[0].snippet.as_deref(), Some("Then a bear broke the lantern. It ran away."));
    assert_eq!(found.results[0].matched, ["bear", "lantern"]);
    assert!(found.degraded && found.took_ms >= 0.0);

    query.snippet_length = 20;
    let snippet = search(&base, query).results[0].snippet.clone().unwrap();
    assert!(snippet.chars().count() <= 20 && snippet.contains("bear"), "{snippet}");
}

#[test]
fn an_unknown_id_names_the_nearest_that_may_be_read() {
    let mut secret = record("doc:polar-bears", "Secret", "");
    secret.namespace = Namespace::Personal;
    let base = by_words(vec![record("doc:polar-bear", "Bear", ""), record("doc:ski", "Ski", ""), secret]);
    let readable = Namespaces::from([Namespace::Studio]);
    let get = |wanted: &[&str]| {
        block_on(base.get(wanted.iter().map(|id| (*id).to_owned()).collect(), readable.clone()))
    };
    let got = get(&["doc:ski", "doc:polar-bear"]).unwrap();
    assert_eq!([&got[0].id, &got[1].id], ["doc:ski", "doc:polar-bear"]);
    let error = get(&["doc:polar-bears"]).unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::NotFound);
    assert_eq!(error.message, "there is no record `doc:polar-bears`; the nearest ids are doc:polar-bear");
    assert_eq!(get(&["volcano"]).unwrap_err().message, "there is no record `volcano`");
}

#[test]
fn only_the_namespace_that_was_asked_is_searched() {
    let mut secret = record("doc:secret", "Ice", "ice");
    secret.namespace = Namespace::Personal;
    let base = by_words(vec![record("doc:open", "Ice", "ice"), secret]);
    assert_eq!(ids(&search(&base, ask("ice", 5))), ["doc:open"]);
}

#[test]
fn other_records_take_their_place_at_once() {
    let base = by_words(vec![record("doc:a", "Ice", "ice")]);
    base.replace(vec![record("doc:b", "Ice", "ice")], &mut |_| {}).unwrap();
    assert_eq!(ids(&search(&base, ask("ice", 5))), ["doc:b"]);
    base.replace(Vec::new(), &mut |_| {}).unwrap();
    assert_eq!(ids(&search(&base, ask("ice", 5))), Vec::<&str>::new());
    assert_eq!(base.stats().records, 0);
}

#[test]
fn a_day_that_is_none_is_refused() {
    let base = by_words(vec![record("doc:a", "Ice", "ice")]);
    let mut query = ask("ice", 5);
    query.filters.date_range =
        Some(quarterdeck_contracts::DateRange { start: Some("last week".to_owned()), end: None });
    let error = block_on(base.search(query)).unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::InvalidArgument);
}
