//! What a conversion could not say, and where.

use std::collections::BTreeMap;

/// Lossy notes: each with every place where it happened, as JSON pointers into the parameters.
#[derive(Debug, Default)]
pub(super) struct Notes {
    places: BTreeMap<&'static str, Vec<String>>,
}

impl Notes {
    /// Notes a loss once per place: a definition that is used twice is still one place.
    pub(super) fn add(&mut self, what: &'static str, at: &str) {
        let places = self.places.entry(what).or_default();
        if !places.iter().any(|place| place == at) {
            places.push(at.to_owned());
        }
    }

    /// The notes by name, alphabetically.
    pub(super) fn into_places(self) -> BTreeMap<&'static str, Vec<String>> {
        self.places
    }
}
