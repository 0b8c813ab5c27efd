//! Which members and items of a value some keyword has judged, for `unevaluatedProperties` and `unevaluatedItems`.

use std::collections::HashSet;

/// What was judged.
#[derive(Debug, Default)]
pub(super) struct EvaluatedParts<'v> {
    members: HashSet<&'v str>,
    all_members: bool,
    items: HashSet<usize>,
    /// Everything before this index.
    prefix: usize,
    all_items: bool,
}

impl<'v> EvaluatedParts<'v> {
    pub(super) fn merge(&mut self, other: &Self) {
        self.members.extend(&other.members);
        self.items.extend(&other.items);
        self.all_members |= other.all_members;
        self.all_items |= other.all_items;
        self.prefix = self.prefix.max(other.prefix);
    }

    /// How much there is to merge.
    pub(super) fn len(&self) -> usize {
        self.members.len() + self.items.len()
    }

    pub(super) fn member(&mut self, name: &'v str) {
        self.members.insert(name);
    }

    pub(super) fn every_member(&mut self) {
        self.all_members = true;
    }

    pub(super) fn item(&mut self, index: usize) {
        self.items.insert(index);
    }

    pub(super) fn items_before(&mut self, end: usize) {
        self.prefix = self.prefix.max(end);
    }

    pub(super) fn every_item(&mut self) {
        self.all_items = true;
    }

    pub(super) fn has_member(&self, name: &str) -> bool {
        self.all_members || self.members.contains(name)
    }

    pub(super) fn has_item(&self, index: usize) -> bool {
        self.all_items || index < self.prefix || self.items.contains(&index)
    }
}
