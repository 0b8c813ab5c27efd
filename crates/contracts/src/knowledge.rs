//! The knowledge base: records found by words and by meaning.

mod methods;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::handler::{BoxFuture, CapabilityError};

pub use methods::{KNOWLEDGE_METHODS, answer_knowledge};

/// A base of records, whatever keeps it.
///
/// An implementation gives the same answer to the same question while the base does not change. What it finds is data:
/// nothing in a record may change how it is treated.
pub trait Knowledge: Send + Sync {
    /// The records that answer a question best, the best first.
    fn search(&self, query: KnowledgeQuery) -> BoxFuture<Result<SearchResults, CapabilityError>>;

    /// Records by their ids, in the order of the ids. An unknown one is `NotFound`, with the nearest ids.
    fn get(
        &self,
        ids: Vec<String>,
        readable: Namespaces,
    ) -> BoxFuture<Result<Vec<KnowledgeRecord>, CapabilityError>>;

    /// A page of the records, in the order of their ids, for clients that browse. The end of one page is where the
    /// next begins, also when the base was replaced in between.
    fn list(&self, listing: RecordListing) -> BoxFuture<Result<RecordPage, CapabilityError>>;
}

/// Turns texts into vectors of one length whose cosine says how alike they are in meaning.
///
/// The same text gives the same vector. It computes, so async code calls it on a thread that may
/// be held.
pub trait Embedder: Send + Sync {
    /// What made the vectors: name, dimension and a digest of the weights. Vectors of different models are never
    /// compared.
    fn model(&self) -> &EmbeddingModel;

    /// One vector of length one for each text, in their order.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Which model made a vector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddingModel {
    /// Its usual name.
    pub name: String,
    /// How long its vectors are.
    pub dimension: usize,
    /// SHA-256 of the weights.
    pub digest: String,
}

/// Why there is no vector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the embedding model failed: {0}")]
pub struct EmbedError(pub String);

/// A record, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnowledgeRecord {
    /// `type:slug`.
    pub id: String,
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: RecordKind,
    /// Who may read it.
    pub namespace: Namespace,
    /// Its title.
    pub title: String,
    /// What it says.
    pub text: String,
    /// Words it is filed under.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Where it can be read.
    #[serde(default)]
    pub url: Option<String>,
    /// Where it comes from: `article`, `note`, …
    #[serde(default)]
    pub source_type: String,
    /// When it was last changed: `2025-03-14`.
    #[serde(default)]
    pub last_updated: Option<String>,
    /// Anything else.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// What it rests on.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum RecordKind {
    Project,
    Person,
    Process,
    Link,
    Doc,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Project, Self::Person, Self::Process, Self::Link, Self::Doc];

    /// The name in an id.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Person => "person",
            Self::Process => "process",
            Self::Link => "link",
            Self::Doc => "doc",
        }
    }
}

/// Who may read a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Namespace {
    #[default]
    Studio,
    Personal,
    Public,
}

impl Namespace {
    /// Every namespace.
    pub const ALL: [Self; 3] = [Self::Studio, Self::Personal, Self::Public];

    /// The name in a path.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Studio => "studio",
            Self::Personal => "personal",
            Self::Public => "public",
        }
    }
}

/// The namespaces that a client may read.
pub type Namespaces = BTreeSet<Namespace>;

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgeQuery {
    /// In words.
    pub query: String,
    /// Where to look.
    #[serde(default)]
    pub namespace: Namespace,
    /// What must hold, exactly.
    #[serde(default)]
    pub filters: RecordFilters,
    /// How many records at the most.
    #[serde(default = "five")]
    pub top_k: usize,
    /// Whether to pick a passage of each.
    #[serde(default = "yes")]
    pub include_snippets: bool,
    /// How long a snippet is at the most, in characters.
    #[serde(default = "snippet_length")]
    pub snippet_length: usize,
}

/// What must hold for a record to be considered at all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordFilters {
    /// Its type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RecordKind>,
    /// Tags that it all has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_range: Option<DateRange>,
}

/// From one day to another, both included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DateRange {
    /// The first day: `2025-03-14`, or the beginning of a date-time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// The last day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
}

/// Which records a page holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordListing {
    /// Where they are. A record elsewhere does not exist for the listing.
    pub readable: Namespaces,
    /// Only of this type.
    pub kind: Option<RecordKind>,
    /// What their ids begin with.
    pub id_prefix: String,
    /// The last id of the page before.
    pub after: Option<String>,
    /// How many at the most.
    pub limit: usize,
}

/// Some records, in the order of their ids.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordPage {
    /// At most as many as were asked for.
    pub records: Vec<KnowledgeRecord>,
    /// Whether others follow.
    pub has_more: bool,
}

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchResults {
    /// The best first; one for each record.
    pub results: Vec<SearchResult>,
    /// Why there are none, when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<EmptyReason>,
    /// How many would match without the filters, when they are why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_filters: Option<usize>,
    /// Whether it was searched by words only.
    #[serde(default)]
    pub degraded: bool,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub took_ms: f64,
}

/// One record that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    /// The whole record; the caller picks the fields to show.
    pub record: KnowledgeRecord,
    /// How well it answers, between 0 and 1.
    pub score: f64,
    /// The passage that answers best, in whole sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
    /// Words of the question that it contains, as they stand in it.
    #[serde(default)]
    pub matched: Vec<String>,
}

/// Why a search found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyReason {
    /// Nothing about it exists.
    None,
    /// Something exists, but nothing that passes the filters.
    Filtered,
}

fn five() -> usize {
    5
}

fn yes() -> bool {
    true
}

fn snippet_length() -> usize {
    300
}
