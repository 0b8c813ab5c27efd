//! Records page by page, for clients that browse.

use quarterdeck_contracts::{RecordListing, RecordPage};

use crate::index::{Doc, Index};

/// Whatever a caller asks for, a page holds no more than this.
const MAX_PAGE_RECORDS: usize = 1_000;

/// The records that follow `after` in the order of ids. One that may not be read does not exist.
pub(crate) fn list(index: &Index, listing: &RecordListing) -> RecordPage {
    let RecordListing { readable, kind, id_prefix, after, limit } = listing;
    let limit = (*limit).min(MAX_PAGE_RECORDS);
    let records = &index.records;
    let after_end = after.as_deref().map_or(0, |after| records.partition_point(|id| id <= after));
    let first = after_end.max(records.partition_point(|id| id < id_prefix.as_str()));
    let mut page = RecordPage::default();
    for doc in first as Doc..records.len() as Doc {
        if !records.id(doc).starts_with(id_prefix.as_str()) {
            break;
        }
        let (namespace, own_kind) = index.filters.namespace_and_kind(doc);
        if !readable.contains(&namespace) || kind.is_some_and(|kind| kind != own_kind) {
            continue;
        }
        if page.records.len() == limit {
            page.has_more = true;
            break;
        }
        // A record that cannot be read back is one that `get` does not give either.
        page.records.extend(records.get(doc).ok());
    }
    page
}
