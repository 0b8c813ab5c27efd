//! Searches the knowledge base.

mod fields;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use quarterdeck_contracts::handler::{Context, kb_find};
use quarterdeck_contracts::{EmptyReason, KnowledgeQuery, Mode, Namespace, RecordFilters, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use fields::{Field, shown};

/// In voice, a sentence or two is enough.
const SPOKEN_SNIPPET: usize = 160;
const WRITTEN_SNIPPET: usize = 300;

/// The arguments, after the registry has checked them and filled in the defaults of `schema.json`.
#[derive(Debug, Deserialize)]
pub struct Args {
    pub query: String,
    pub namespace: Namespace,
    #[serde(default)]
    pub filters: RecordFilters,
    pub top_k: usize,
    pub return_fields: Vec<Field>,
    pub include_snippets: bool,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The best first.
    pub results: Vec<Value>,
    pub query_time_ms: u64,
    /// Whether a gate lowered `top_k`.
    pub clamped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty: Option<EmptyReason>,
    /// How many records match without the filters, when these are why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_filters: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub degraded: bool,
}

pub async fn execute(args: Args, context: Arc<dyn Context>) -> Result<Answer, ToolError> {
    let facts = context.facts();
    let is_spoken = facts.mode == Mode::Voice;
    let query = KnowledgeQuery {
        query: args.query,
        namespace: args.namespace,
        filters: args.filters,
        top_k: args.top_k,
        include_snippets: args.include_snippets && args.return_fields.contains(&Field::Snippet),
        snippet_length: if is_spoken { SPOKEN_SNIPPET } else { WRITTEN_SNIPPET },
    };
    let found = kb_find(&*context, query).await?;
    // In voice a whole record is too long, whatever the model has asked for.
    let fields: Vec<_> =
        args.return_fields.into_iter().filter(|field| !(is_spoken && *field == Field::FullText)).collect();
    Ok(Answer {
        results: found.results.iter().map(|evidence| shown(evidence, &fields)).collect(),
        query_time_ms: found.took_ms.round() as u64,
        clamped: facts.clamped.contains_key("top_k"),
        empty: found.empty,
        without_filters: found.without_filters,
        degraded: found.degraded,
    })
}
