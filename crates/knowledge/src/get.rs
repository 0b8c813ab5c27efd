//! Records by their ids.

use std::fmt::Write;

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{KnowledgeRecord, Namespaces};

use crate::index::{Index, slips};

/// How many records may be asked for by id at once.
const MOST_IDS: usize = 1_000;
/// How many ids are named when one is unknown.
const MOST_NEAR: usize = 3;
/// How many slips an id may be away to be named.
const MOST_SLIPS: usize = 4;

/// Records by id. One that may not be read is one that does not exist, so that ids tell nothing.
pub(crate) fn get(
    index: &Index,
    ids: &[String],
    readable: &Namespaces,
) -> Result<Vec<KnowledgeRecord>, CapabilityError> {
    if ids.len() > MOST_IDS {
        let message = format!("at most {MOST_IDS} records can be asked for at once");
        return Err(CapabilityError::new(CapabilityErrorCode::InvalidArgument, message));
    }
    let find = |id: &String| {
        let doc = index.records.find(id).filter(|doc| readable.contains(&index.filters.about(*doc).0));
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
    let mut reach = (letters.len() / 4).clamp(2, MOST_SLIPS);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for (other, doc) in index.records.ids().zip(0..) {
        let Some(slips) = slips(&letters, other, reach) else { continue };
        if readable.contains(&index.filters.about(doc).0) {
            near.push((slips, other));
            near.sort_unstable();
            near.truncate(MOST_NEAR);
            if near.len() == MOST_NEAR {
                // Only a nearer one can still matter.
                reach = near.last().map_or(reach, |(slips, _)| *slips);
            }
        }
    }
    near.into_iter().map(|(_, id)| id).collect()
}
