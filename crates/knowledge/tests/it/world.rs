//! Small bases and questions.

use quarterdeck_contracts::{
    Knowledge, KnowledgeQuery, KnowledgeRecord, Namespace, RecordKind, SearchResults,
};
use quarterdeck_knowledge::KnowledgeBase;
use quarterdeck_testkit::block_on;

/// A record of the studio.
pub(crate) fn record(id: &str, title: &str, text: &str) -> KnowledgeRecord {
    KnowledgeRecord {
        id: id.to_owned(),
        kind: RecordKind::Doc,
        namespace: Namespace::Studio,
        title: title.to_owned(),
        text: text.to_owned(),
        tags: Vec::new(),
        url: None,
        source_type: "note".to_owned(),
        last_updated: None,
        metadata: Default::default(),
        sources: Vec::new(),
    }
}

/// A question without filters and snippets.
pub(crate) fn ask(question: &str, top_k: usize) -> KnowledgeQuery {
    KnowledgeQuery {
        query: question.to_owned(),
        namespace: Namespace::Studio,
        filters: Default::default(),
        top_k,
        include_snippets: false,
        snippet_length: 300,
    }
}

/// A base that is searched by words.
pub(crate) fn by_words(records: Vec<KnowledgeRecord>) -> KnowledgeBase {
    KnowledgeBase::from_records(records, None, None).unwrap()
}

/// The answer.
pub(crate) fn search(base: &KnowledgeBase, query: KnowledgeQuery) -> SearchResults {
    block_on(base.search(query)).unwrap()
}

/// The ids of what was found.
pub(crate) fn ids(found: &SearchResults) -> Vec<&str> {
    found.results.iter().map(|hit| hit.record.id.as_str()).collect()
}
