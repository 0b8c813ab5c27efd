//! What must hold for a record to be considered at all, as one set that every leg of a search asks first.

use std::collections::HashMap;

use quarterdeck_contracts::{KnowledgeRecord, Namespace, RecordFilters, RecordKind};

use super::Bits;
use crate::day::Day;

/// Why a filter cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`dateRange` takes days such as 2025-03-14; `{0}` is not one")]
pub(crate) struct BadFilter(String);

/// Which records have which properties.
pub(crate) struct FilterIndex {
    namespaces: [Bits; 3],
    kinds: [Bits; 5],
    /// By tag, in lower case.
    tags: HashMap<String, Vec<u32>>,
    days: Vec<Option<Day>>,
}

impl FilterIndex {
    pub(super) fn new(records: &[KnowledgeRecord]) -> Self {
        let mut tags: HashMap<String, Vec<u32>> = HashMap::new();
        for (doc, record) in records.iter().enumerate() {
            for tag in &record.tags {
                let docs = tags.entry(normal(tag)).or_default();
                if docs.last() != Some(&(doc as u32)) {
                    docs.push(doc as u32);
                }
            }
        }
        Self {
            namespaces: Namespace::ALL.map(|one| Bits::of(records.len(), |at| records[at].namespace == one)),
            kinds: RecordKind::ALL.map(|one| Bits::of(records.len(), |at| records[at].kind == one)),
            tags,
            days: records.iter().map(|record| Day::parse(record.last_updated.as_deref()?)).collect(),
        }
    }

    /// The records of a namespace.
    pub(crate) fn namespace(&self, namespace: Namespace) -> Bits {
        self.namespaces[namespace as usize].clone()
    }

    /// The records of a namespace that pass every filter. A record without a day is in no range of days.
    pub(crate) fn passing(&self, namespace: Namespace, filters: &RecordFilters) -> Result<Bits, BadFilter> {
        let mut passing = self.namespace(namespace);
        if let Some(kind) = filters.kind {
            passing.keep(&self.kinds[kind as usize]);
        }
        for tag in &filters.tags {
            let docs = self.tags.get(&normal(tag)).map_or(&[][..], Vec::as_slice);
            let mut docs = docs.iter().copied().peekable();
            passing.keep(&Bits::of(self.days.len(), |at| docs.next_if_eq(&(at as u32)).is_some()));
        }
        if let Some(range) = &filters.date_range {
            let (start, end) = (day(range.start.as_deref())?, day(range.end.as_deref())?);
            if start.is_some() || end.is_some() {
                passing.keep(&Bits::of(self.days.len(), |at| {
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

fn day(text: Option<&str>) -> Result<Option<Day>, BadFilter> {
    let Some(text) = text else { return Ok(None) };
    Day::parse(text).map(Some).ok_or_else(|| BadFilter(text.chars().take(40).collect()))
}
