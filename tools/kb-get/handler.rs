//! Gives whole records.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use quarterdeck_contracts::handler::{Context, kb_get};
use quarterdeck_contracts::{KnowledgeRecord, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::refusal::refuse;

/// The arguments, after the registry has checked them.
#[derive(Debug, Default, Deserialize)]
pub struct Args {
    pub id: Option<String>,
    pub ids: Option<Vec<String>>,
    pub return_fields: Option<Vec<Field>>,
}

/// A field that a model may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    FullText,
    Tags,
    Metadata,
    Sources,
    Url,
}

const EVERYTHING: [Field; 5] = [Field::FullText, Field::Tags, Field::Metadata, Field::Sources, Field::Url];

#[derive(Debug, PartialEq, Serialize)]
pub struct Answer {
    /// In the order of the ids.
    pub records: Vec<Value>,
}

pub async fn execute(args: Args, context: Arc<dyn Context>) -> Result<Answer, ToolError> {
    let ids = match (args.id, args.ids) {
        (Some(id), None) => vec![id],
        (None, Some(ids)) => ids,
        _ => return Err(refuse("id", "required", "Give either id or ids, not both.")),
    };
    let fields = args.return_fields.unwrap_or_else(|| EVERYTHING.to_vec());
    let records = kb_get(&*context, &ids).await?;
    Ok(Answer { records: records.iter().map(|record| shown(record, &fields)).collect() })
}

fn shown(record: &KnowledgeRecord, fields: &[Field]) -> Value {
    let mut shown = json!({
        "id": record.id, "type": record.kind, "title": record.title, "source_type": record.source_type,
        "last_updated": record.last_updated,
    });
    for field in fields {
        match field {
            Field::FullText => shown["full_text"] = json!(record.text),
            Field::Tags => shown["tags"] = json!(record.tags),
            Field::Metadata => shown["metadata"] = json!(record.metadata),
            Field::Sources => shown["sources"] = json!(record.sources),
            Field::Url => shown["url"] = json!(record.url),
        }
    }
    shown
}
