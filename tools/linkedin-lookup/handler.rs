//! Gives the profile that is stored for a person, and never guesses one.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use quarterdeck_contracts::handler::{Context, kb_find, kb_get};
use quarterdeck_contracts::{
    ErrorType, KnowledgeQuery, KnowledgeRecord, Namespace, RecordFilters, RecordKind, ToolError,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::refusal::refuse;

/// How many records of a name are looked at.
const MAX_RECORDS: usize = 5;

/// The arguments, after the registry has checked them.
#[derive(Debug, Default, Deserialize)]
pub struct Args {
    pub name: Option<String>,
    pub id: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Profile {
    pub id: String,
    pub name: String,
    pub url: String,
}

pub async fn execute(args: Args, context: Arc<dyn Context>) -> Result<Profile, ToolError> {
    let (records, asked) = match (args.id, args.name) {
        (Some(id), _) => (kb_get(&*context, std::slice::from_ref(&id)).await?, id),
        (None, Some(name)) => (records_named(&*context, &name, RecordKind::Person).await?, name),
        (None, None) => return Err(refuse("name", "required", "Give a name or an id.")),
    };
    if let Some(profile) = records.iter().find_map(profile) {
        return Ok(profile);
    }
    // A record of a link is called after the person whose profile it is.
    let person = records.iter().find(|record| record.kind == RecordKind::Person);
    let name = person.map_or(asked.as_str(), |person| person.title.as_str());
    let links = records_named(&*context, name, RecordKind::Link).await?;
    links.iter().find_map(profile).ok_or_else(|| {
        ToolError::new(ErrorType::NotFound, format!("The base has no LinkedIn profile for {asked}."))
            .with_suggestion("Say that you do not have it; do not guess an address.")
    })
}

/// Records of a kind whose title has every part of the name: the wrong profile is worse than none.
async fn records_named(
    context: &dyn Context,
    name: &str,
    kind: RecordKind,
) -> Result<Vec<KnowledgeRecord>, ToolError> {
    let query = KnowledgeQuery {
        query: name.to_owned(),
        namespace: Namespace::default(),
        filters: RecordFilters { kind: Some(kind), ..RecordFilters::default() },
        top_k: MAX_RECORDS,
        include_snippets: false,
        snippet_length: 0,
    };
    let parts: Vec<String> = name.split_whitespace().map(str::to_lowercase).collect();
    let has_name = |record: &KnowledgeRecord| {
        let title = record.title.to_lowercase();
        record.kind == kind && !parts.is_empty() && parts.iter().all(|part| title.contains(part.as_str()))
    };
    let found = kb_find(context, query).await?;
    Ok(found.results.into_iter().map(|evidence| evidence.record).filter(has_name).collect())
}

/// The profile that a record holds: under `metadata.linkedin`, or as its own address.
fn profile(record: &KnowledgeRecord) -> Option<Profile> {
    let declared = record.metadata.get("linkedin").and_then(Value::as_str);
    let url = [declared, record.url.as_deref()].into_iter().flatten().find(|url| is_on_linkedin(url))?;
    Some(Profile { url: url.to_owned(), id: record.id.clone(), name: record.title.clone() })
}

fn is_on_linkedin(url: &str) -> bool {
    let Some((host, _)) = url.strip_prefix("https://").and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    // Countries have hosts of their own, such as no.linkedin.com.
    host == "linkedin.com"
        || host
            .strip_suffix(".linkedin.com")
            .is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_alphabetic()))
}
