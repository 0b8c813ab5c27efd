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
}

#[test]
fn a_name_or_an_id_is_needed() {
    let error = block_on(execute(Args::default(), FakeContext::new())).unwrap_err();
    assert_eq!(error.kind, ErrorType::Validation);
}
