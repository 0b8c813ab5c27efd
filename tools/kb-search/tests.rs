//! What a search shows, of a base that a test gives.

use quarterdeck_contracts::handler::CapabilityErrorCode;
use quarterdeck_contracts::{ErrorType, KnowledgeRecord, RecordKind, SearchResult, SearchResults};
use quarterdeck_testkit::{FakeContext, block_on};
use serde_json::json;

use super::*;

fn evidence() -> SearchResult {
    let record = KnowledgeRecord {
        id: "doc:hull".into(),
        kind: RecordKind::Doc,
        namespace: Namespace::Studio,
        title: "The hull".into(),
        text: "Round.".into(),
        tags: vec!["ship".into()],
        url: None,
        source_type: "museum".into(),
        last_updated: Some("2025-03-14".into()),
        metadata: serde_json::Map::new(),
        sources: vec!["a book".into()],
    };
    SearchResult { record, score: 0.712_34, snippet: Some("Round.".into()), matched: vec![] }
}

fn args(fields: &[Field]) -> Args {
    Args {
        query: "hull".into(),
        namespace: Namespace::Studio,
        filters: RecordFilters::default(),
        top_k: 5,
        return_fields: fields.to_vec(),
        include_snippets: true,
    }
}

#[test]
fn a_result_has_the_fields_that_were_asked_for() {
    let context = FakeContext::new();
    context.set_search_results(SearchResults {
        results: vec![evidence()],
        took_ms: 2.6,
        ..SearchResults::default()
    });
    let answer = block_on(execute(args(&[Field::Snippet, Field::Url, Field::Sources]), context)).unwrap();
    assert_eq!(
        json!(answer),
        json!({
            "results": [{
                "id": "doc:hull", "type": "doc", "title": "The hull", "score": 0.712, "source_type": "museum",
                "last_updated": "2025-03-14", "snippet": "Round.", "url": null, "sources": ["a book"],
            }],
            "query_time_ms": 3, "clamped": false,
        })
    );
}

#[test]
fn voice_gets_no_full_text_and_short_snippets() {
    let context = FakeContext::in_voice();
    context.set_search_results(SearchResults { results: vec![evidence()], ..SearchResults::default() });
    let answer = block_on(execute(args(&[Field::Snippet, Field::FullText]), context.clone())).unwrap();
    assert_eq!(answer.results[0].get("full_text"), None);
    assert_eq!(context.recorded().questions[0]["snippetLength"], SPOKEN_SNIPPET);
}

#[test]
fn nothing_is_an_answer_that_says_why() {
    let context = FakeContext::new();
    let found = SearchResults {
        empty: Some(EmptyReason::Filtered),
        without_filters: Some(4),
        ..SearchResults::default()
    };
    context.set_search_results(found);
    let answer = block_on(execute(args(&[Field::Snippet]), context)).unwrap();
    assert_eq!(json!(answer)["empty"], "filtered");
    assert_eq!(json!(answer)["without_filters"], 4);
}

#[test]
fn a_namespace_that_may_not_be_read_is_refused() {
    let context = FakeContext::new();
    context.fail_knowledge(CapabilityErrorCode::InvalidNamespace);
    let error = block_on(execute(args(&[Field::Snippet]), context)).unwrap_err();
    assert_eq!(error.kind, ErrorType::Validation);
}
