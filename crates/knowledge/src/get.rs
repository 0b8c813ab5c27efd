//! Records by their ids.

use std::fmt::Write;

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{KnowledgeRecord, Namespaces};

use crate::index::{Index, edit_distance};

const MAX_IDS: usize = 1_000;
/// Suggested when an id is unknown.
const MAX_SUGGESTED_IDS: usize = 3;
/// How far a suggestion may be from the id that was asked for.
const MAX_ID_EDITS: usize = 4;

/// Records by id. One that may not be read is one that does not exist, so that ids tell nothing.
pub(crate) fn get(
    index: &Index,
    ids: &[String],
    readable: &Namespaces,
) -> Result<Vec<KnowledgeRecord>, CapabilityError> {
    if ids.len() > MAX_IDS {
        let message = format!("at most {MAX_IDS} records can be asked for at once");
        return Err(CapabilityError::new(CapabilityErrorCode::InvalidArgument, message));
    }
    let find = |id: &String| {
        let doc =
            index.records.find(id).filter(|doc| readable.contains(&index.filters.namespace_and_kind(*doc).0));
        let Some(doc) = doc else { return Err(unknown(index, id, readable)) };
        index.records.get(doc).map_err(|_| {
            let message = format!("the record `{id}` cannot be read");
            CapabilityError::new(CapabilityErrorCode::NotAvailable, message)
        })
    };
    ids.iter().map(find).collect()
}

fn unknown(index: &Index, id: &str, readable: &Namespaces) -> CapabilityError {
    let shown: String = id.chars().filter(|letter| !letter.is_control()).take(80).collect();
    let mut message = format!("there is no record `{shown}`");
    let near = nearest_ids(index, id, readable);
    if !near.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(message, "; the nearest ids are {}", near.join(", "));
    }
    CapabilityError::new(CapabilityErrorCode::NotFound, message)
}

fn nearest_ids<'a>(index: &'a Index, id: &str, readable: &Namespaces) -> Vec<&'a str> {
    let letters: Vec<char> = id.chars().collect();
    let mut max_edits = (letters.len() / 4).clamp(2, MAX_ID_EDITS);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for (other, doc) in index.records.ids().zip(0..) {
        let Some(edits) = edit_distance(&letters, other, max_edits) else { continue };
        if readable.contains(&index.filters.namespace_and_kind(doc).0) {
            near.push((edits, other));
            near.sort_unstable();
            near.truncate(MAX_SUGGESTED_IDS);
            if near.len() == MAX_SUGGESTED_IDS {
                // Only a nearer one can still matter.
                max_edits = near.last().map_or(max_edits, |(edits, _)| *edits);
            }
        }
    }
    near.into_iter().map(|(_, id)| id).collect()
}
