//! What is told of a record.

use quarterdeck_contracts::handler::CapabilityErrorCode;
use quarterdeck_contracts::{ErrorType, Namespace, RecordKind};
use quarterdeck_testkit::{FakeContext, block_on};

use super::*;

fn record(id: &str) -> KnowledgeRecord {
    KnowledgeRecord {
        id: id.into(),
        kind: RecordKind::Doc,
        namespace: Namespace::Studio,
        title: "The hull".into(),
        text: "Round.".into(),
        tags: vec!["ship".into()],
        url: None,
        source_type: "museum".into(),
        last_updated: None,
        metadata: serde_json::Map::new(),
        sources: vec![],
    }
}

#[test]
fn records_come_in_the_order_of_their_ids_with_everything() {
    let context = FakeContext::new();
    context.set_records(vec![record("doc:a"), record("doc:b")]);
    let ids = Some(vec!["doc:b".to_owned(), "doc:a".to_owned()]);
    let answer = block_on(execute(Args { ids, ..Args::default() }, context)).unwrap();
    let ids: Vec<_> = answer.records.iter().map(|record| &record["id"]).collect();
    assert_eq!(ids, ["doc:b", "doc:a"]);
    assert_eq!(answer.records[0]["full_text"], "Round.");
    assert_eq!(answer.records[0].as_object().unwrap().len(), 10);
}

#[test]
fn only_the_fields_that_were_asked_for_are_told() {
    let context = FakeContext::new();
    context.set_records(vec![record("doc:a")]);
    let args = Args { id: Some("doc:a".into()), return_fields: Some(vec![Field::Tags]), ..Args::default() };
    let answer = block_on(execute(args, context)).unwrap();
    assert_eq!(answer.records[0].get("full_text"), None);
    assert_eq!(answer.records[0]["tags"], json!(["ship"]));
}

#[test]
fn one_of_id_and_ids_is_needed() {
    for args in [Args::default(), Args { id: Some("a:b".into()), ids: Some(vec![]), return_fields: None }] {
        let error = block_on(execute(args, FakeContext::new())).unwrap_err();
        assert_eq!(error.kind, ErrorType::Validation);
    }
}

#[test]
fn an_unknown_id_is_not_found() {
    let context = FakeContext::new();
    context.fail_knowledge(CapabilityErrorCode::NotFound);
    let error = block_on(execute(Args { id: Some("doc:x".into()), ..Args::default() }, context)).unwrap_err();
    assert_eq!(error.kind, ErrorType::NotFound);
}
