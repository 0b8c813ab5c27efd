//! What a conversion could not say, and where.

use std::collections::BTreeMap;

use indexmap::IndexSet;

/// Lossy notes: each with every place where it happened, as JSON pointers into the parameters.
#[derive(Debug, Default)]
pub(super) struct Notes {
    places: BTreeMap<&'static str, IndexSet<String>>,
}

impl Notes {
    /// Notes a loss once per place: a definition that is used twice is still one place.
    pub(super) fn add(&mut self, what: &'static str, at: &str) {
        self.places.entry(what).or_default().insert(at.to_owned());
    }

    /// The notes by name, alphabetically.
    pub(super) fn into_places(self) -> BTreeMap<&'static str, Vec<String>> {
        self.places.into_iter().map(|(what, places)| (what, places.into_iter().collect())).collect()
    }
}
