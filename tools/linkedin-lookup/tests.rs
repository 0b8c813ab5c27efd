//! Whose profile is given, and whose is not.

use quarterdeck_contracts::{SearchResult, SearchResults};
use quarterdeck_testkit::{FakeContext, block_on};
use serde_json::json;

use super::*;

fn person(name: &str, linkedin: Value) -> KnowledgeRecord {
    KnowledgeRecord {
        id: format!("person:{}", name.to_lowercase().replace(' ', "-")),
        kind: RecordKind::Person,
        namespace: Namespace::Studio,
        title: name.into(),
        text: String::new(),
        tags: vec![],
        url: None,
        source_type: String::new(),
        last_updated: None,
        metadata: serde_json::Map::from_iter([("linkedin".to_owned(), linkedin)]),
        sources: vec![],
    }
}

fn look_up(name: &str, records: Vec<KnowledgeRecord>) -> Result<Profile, ToolError> {
    let context = FakeContext::new();
    let results = records
        .into_iter()
        .map(|record| SearchResult { record, score: 0.9, snippet: None, matched: vec![] })
        .collect();
    context.set_search_results(SearchResults { results, ..SearchResults::default() });
    block_on(execute(Args { name: Some(name.into()), id: None }, context))
}

const URL: &str = "https://www.linkedin.com/in/example-ingrid-berg";

#[test]
fn a_stored_profile_is_given() {
    let profile = look_up("ingrid berg", vec![person("Ingrid Berg", json!(URL))]).unwrap();
    assert_eq!((profile.id.as_str(), profile.url.as_str()), ("person:ingrid-berg", URL));
}

/// A record of `kind` whose own address is `url`.
fn with_url(kind: RecordKind, title: &str, url: &str) -> KnowledgeRecord {
    KnowledgeRecord { kind, url: Some(url.into()), ..person(title, json!(null)) }
}

#[test]
fn the_address_of_a_record_is_its_profile_where_it_is_on_linkedin() {
    for url in [URL, "https://linkedin.com/in/example", "https://no.linkedin.com/in/example"] {
        let record = with_url(RecordKind::Person, "Ingrid Berg", url);
        assert_eq!(look_up("Ingrid Berg", vec![record]).unwrap().url, url);
    }
    // What is declared counts first, and an address elsewhere does not hide it.
    let both =
        KnowledgeRecord { url: Some("https://example.org/".into()), ..person("Ingrid Berg", json!(URL)) };
    assert_eq!(look_up("Ingrid Berg", vec![both]).unwrap().url, URL);
}

#[test]
fn the_link_record_of_that_name_is_found() {
    let person = person("Ingrid Berg", json!(null));
    let link = |title: &str| with_url(RecordKind::Link, title, URL);
    let profile = look_up("ingrid berg", vec![person.clone(), link("Ingrid Berg on LinkedIn")]).unwrap();
    assert_eq!((profile.name.as_str(), profile.url.as_str()), ("Ingrid Berg on LinkedIn", URL));
    let profile = look_up("Ingrid Berg", vec![link("Ingrid Berg on LinkedIn")]).unwrap();
    assert_eq!(profile.url, URL, "also where there is no record of the person");
    let error = look_up("Ingrid Berg", vec![person, link("Ingrid Dahl on LinkedIn")]).unwrap_err();
    assert_eq!(error.kind, ErrorType::NotFound);
}

#[test]
fn profile_of_another_name_is_not_given() {
    let error = look_up("Ingrid Berg", vec![person("Ingrid Dahl", json!(URL))]).unwrap_err();
    assert_eq!(error.kind, ErrorType::NotFound);
}

#[test]
fn what_is_no_profile_is_not_given() {
    for linkedin in [json!(null), json!("ask her"), json!("https://linkedin.com.example.org/in/x")] {
        let error = look_up("Ingrid Berg", vec![person("Ingrid Berg", linkedin)]).unwrap_err();
        assert_eq!(error.kind, ErrorType::NotFound);
    }
    for url in [
        "http://www.linkedin.com/in/x",
        "https://evil.example/https://www.linkedin.com/",
        "https://notlinkedin.com/in/x",
        "https://a@b.linkedin.com/in/x",
        "https://linkedin.com",
    ] {
        let record = with_url(RecordKind::Person, "Ingrid Berg", url);
        assert_eq!(look_up("Ingrid Berg", vec![record]).unwrap_err().kind, ErrorType::NotFound, "{url}");
    }
}

#[test]
fn a_name_or_an_id_is_needed() {
    let error = block_on(execute(Args::default(), FakeContext::new())).unwrap_err();
    assert_eq!(error.kind, ErrorType::Validation);
}
