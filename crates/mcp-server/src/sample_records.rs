//! Records for the tests of resources and completion.

use quarterdeck_contracts::{KnowledgeRecord, Namespace, Namespaces, RecordKind};
use quarterdeck_knowledge::KnowledgeBase;

pub(crate) fn record(namespace: Namespace, kind: RecordKind, id: &str) -> KnowledgeRecord {
    KnowledgeRecord {
        id: id.to_owned(),
        kind,
        namespace,
        title: format!("About {id}"),
        text: String::new(),
        tags: Vec::new(),
        url: None,
        source_type: "note".to_owned(),
        last_updated: None,
        metadata: Default::default(),
        sources: Vec::new(),
    }
}

pub(crate) fn base(records: Vec<KnowledgeRecord>) -> KnowledgeBase {
    KnowledgeBase::from_records(records, None, None).unwrap()
}

/// Two records for everyone and one for those who have signed in.
pub(crate) fn small_base() -> KnowledgeBase {
    let mut sledges = record(Namespace::Studio, RecordKind::Doc, "doc:sledges");
    sledges.text = "# Sledges\n\nFive sledges were built\nof ash.\n\nLater more.".to_owned();
    sledges.tags = vec!["ice".to_owned()];
    let mut secret = record(Namespace::Personal, RecordKind::Person, "person:tuva");
    secret.text = "Her telephone number.".to_owned();
    base(vec![sledges, secret, record(Namespace::Public, RecordKind::Doc, "17")])
}

pub(crate) fn visitor() -> Namespaces {
    Namespaces::from([Namespace::Studio, Namespace::Public])
}
