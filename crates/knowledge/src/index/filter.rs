//! What must hold for a record to be considered at all, as one set that every leg of a search asks first.

use std::collections::HashMap;

use quarterdeck_contracts::{KnowledgeRecord, Namespace, RecordFilters, RecordKind};

use super::{BitSet, Doc};
use crate::day::Day;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`dateRange` takes days such as 2025-03-14; `{0}` is not one")]
pub(crate) struct FilterError(String);

/// Which records have which properties.
#[derive(Debug, PartialEq)]
pub(crate) struct FilterIndex {
    namespaces: [BitSet; 3],
    kinds: [BitSet; 5],
    /// By tag, in lower case.
    pub(super) tags: HashMap<String, Vec<Doc>>,
    pub(super) days: Vec<Option<Day>>,
}

impl FilterIndex {
    pub(super) fn new(records: &[KnowledgeRecord]) -> Self {
        let mut tags: HashMap<String, Vec<Doc>> = HashMap::new();
        for (doc, record) in records.iter().enumerate() {
            for tag in &record.tags {
                let docs = tags.entry(normal(tag)).or_default();
                if docs.last() != Some(&(doc as Doc)) {
                    docs.push(doc as Doc);
                }
            }
        }
        let days = records.iter().map(|record| Day::parse(record.last_updated.as_deref()?)).collect();
        Self::from_parts(|at| records[at].namespace, |at| records[at].kind, tags, days)
    }

    /// From the properties of each record.
    pub(super) fn from_parts(
        namespace: impl Fn(usize) -> Namespace,
        kind: impl Fn(usize) -> RecordKind,
        tags: HashMap<String, Vec<Doc>>,
        days: Vec<Option<Day>>,
    ) -> Self {
        Self {
            namespaces: Namespace::ALL.map(|one| BitSet::of(days.len(), |at| namespace(at) == one)),
            kinds: RecordKind::ALL.map(|one| BitSet::of(days.len(), |at| kind(at) == one)),
            tags,
            days,
        }
    }

    pub(crate) fn namespace_and_kind(&self, doc: Doc) -> (Namespace, RecordKind) {
        let namespace = Namespace::ALL.into_iter().find(|one| self.namespaces[*one as usize].contains(doc));
        let kind = RecordKind::ALL.into_iter().find(|one| self.kinds[*one as usize].contains(doc));
        (namespace.unwrap_or_default(), kind.unwrap_or(RecordKind::Doc))
    }

    pub(crate) fn namespace(&self, namespace: Namespace) -> BitSet {
        self.namespaces[namespace as usize].clone()
    }

    /// The records of a namespace that pass every filter. A record without a day is in no range of days.
    pub(crate) fn select(
        &self,
        namespace: Namespace,
        filters: &RecordFilters,
    ) -> Result<BitSet, FilterError> {
        let mut passing = self.namespace(namespace);
        if let Some(kind) = filters.kind {
            passing.intersect(&self.kinds[kind as usize]);
        }
        for tag in &filters.tags {
            let docs = self.tags.get(&normal(tag)).map_or(&[][..], Vec::as_slice);
            passing.intersect(&BitSet::of_docs(self.days.len(), docs));
        }
        if let Some(range) = &filters.date_range {
            let (start, end) = (day(range.start.as_deref())?, day(range.end.as_deref())?);
            if start.is_some() || end.is_some() {
                passing.intersect(&BitSet::of(self.days.len(), |at| {
                    self.days[at].is_some_and(|day| {
                        start.is_none_or(|start| start <= day) && end.is_none_or(|end| day <= end)
                    })
                }));
            }
        }
        Ok(passing)
    }
}

fn normal(tag: &str) -> String {
    tag.trim().to_lowercase()
}

fn day(text: Option<&str>) -> Result<Option<Day>, FilterError> {
    let Some(text) = text else { return Ok(None) };
    Day::parse(text).map(Some).ok_or_else(|| FilterError(text.chars().take(40).collect()))
}
