//! The base's methods as handlers call them: JSON in, JSON out, the same for every backend.

use serde_json::{Map, Value, json};

use super::{Knowledge, KnowledgeQuery, KnowledgeRecord, Namespaces, SearchResult, SearchResults};
use crate::handler::{CapabilityError, CapabilityErrorCode};

/// What `context.kb` can do, by the names that handlers use. `find` is `query` with whole records, for handlers in Rust.
pub const KNOWLEDGE_METHODS: [&str; 4] = ["search", "query", "get", "find"];

/// Fields that come only when they are asked for: they may be long.
const ON_REQUEST: [&str; 2] = ["full_text", "sources"];

/// Answers one use of the capability `kb`, for a client who may read `readable`.
pub async fn answer_knowledge(
    knowledge: &dyn Knowledge,
    readable: &Namespaces,
    method: &str,
    args: &[Value],
) -> Result<Value, CapabilityError> {
    match method {
        "search" | "query" => {
            let (asked, fields) = question(args)?;
            let found = search(knowledge, readable, asked).await?;
            let results: Vec<_> = found.results.iter().map(|evidence| shown(evidence, &fields)).collect();
            if method == "search" {
                return Ok(json!(results));
            }
            Ok(json!({
                "results": results, "empty": found.empty, "withoutFilters": found.without_filters,
                "degraded": found.degraded, "tookMs": found.took_ms,
            }))
        }
        "find" => {
            let (asked, _) = question(args)?;
            Ok(json!(search(knowledge, readable, asked).await?))
        }
        "get" => get(knowledge, readable, args).await,
        unknown => {
            let known = KNOWLEDGE_METHODS[..3].join(", ");
            Err(invalid(format!("kb.{unknown} does not exist; there are {known}")))
        }
    }
}

async fn search(
    knowledge: &dyn Knowledge,
    readable: &Namespaces,
    query: KnowledgeQuery,
) -> Result<SearchResults, CapabilityError> {
    if !readable.contains(&query.namespace) {
        let message = format!("the namespace {} may not be read by this client", query.namespace.as_str());
        return Err(CapabilityError::new(CapabilityErrorCode::InvalidNamespace, message));
    }
    knowledge.search(query).await
}

async fn get(
    knowledge: &dyn Knowledge,
    readable: &Namespaces,
    args: &[Value],
) -> Result<Value, CapabilityError> {
    let (ids, is_one) = match args.first() {
        Some(Value::String(id)) => (vec![id.clone()], true),
        Some(Value::Array(ids)) if ids.iter().all(Value::is_string) => {
            (ids.iter().filter_map(Value::as_str).map(str::to_owned).collect(), false)
        }
        _ => return Err(invalid("kb.get takes an id or a list of ids")),
    };
    let records = knowledge.get(ids, readable.clone()).await?;
    Ok(if is_one { json!(records.first()) } else { json!(records) })
}

/// The question, and the fields that were asked for.
fn question(args: &[Value]) -> Result<(KnowledgeQuery, Vec<String>), CapabilityError> {
    let Some(Value::Object(given)) = args.first() else {
        return Err(invalid("kb.search takes an object with a `query`"));
    };
    let mut given: Map<String, Value> = given.clone();
    let fields = match given.remove("returnFields") {
        None | Some(Value::Null) => Vec::new(),
        Some(fields) => {
            serde_json::from_value(fields).map_err(|_| invalid("`returnFields` is a list of names"))?
        }
    };
    // What JavaScript leaves undefined or null is what was not said.
    given.retain(|_, value| !value.is_null());
    let query = serde_json::from_value(Value::Object(given)).map_err(|error| invalid(error.to_string()))?;
    Ok((query, fields))
}

/// A result, as handlers in JavaScript see it.
fn shown(evidence: &SearchResult, fields: &[String]) -> Value {
    let KnowledgeRecord { id, kind, title, text, url, source_type, last_updated, metadata, sources, .. } =
        &evidence.record;
    let mut shown = json!({
        "id": id, "type": kind, "title": title, "snippet": evidence.snippet, "score": evidence.score,
        "sourceType": source_type, "lastUpdated": last_updated, "url": url, "metadata": metadata,
    });
    for field in ON_REQUEST.iter().filter(|field| fields.iter().any(|asked| asked == *field)) {
        shown[*field] = if *field == "full_text" { json!(text) } else { json!(sources) };
    }
    shown
}

fn invalid(message: impl Into<String>) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, message)
}
