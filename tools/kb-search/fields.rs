//! What is told of a record.

use quarterdeck_contracts::SearchResult;
use serde::Deserialize;
use serde_json::{Value, json};

/// A field that a model may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    Snippet,
    FullText,
    Metadata,
    Sources,
    Url,
}

/// One result. What a record does not have is null or empty, so that its shape depends on the question alone.
pub(super) fn shown(evidence: &SearchResult, fields: &[Field]) -> Value {
    let record = &evidence.record;
    let mut shown = json!({
        "id": record.id, "type": record.kind, "title": record.title,
        "score": (evidence.score * 1_000.0).round() / 1_000.0,
        "source_type": record.source_type, "last_updated": record.last_updated,
    });
    for field in fields {
        match field {
            Field::Snippet => shown["snippet"] = json!(evidence.snippet),
            Field::FullText => shown["full_text"] = json!(record.text),
            Field::Metadata => shown["metadata"] = json!(record.metadata),
            Field::Sources => shown["sources"] = json!(record.sources),
            Field::Url => shown["url"] = json!(record.url),
        }
    }
    shown
}
