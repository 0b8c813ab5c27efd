//! Records as they are kept: their JSON, in one piece of memory. A search reads the few that it answers with.

use quarterdeck_contracts::KnowledgeRecord;

use super::Doc;
use super::strings::Strings;

#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Sorted.
    pub(super) ids: Strings,
    pub(super) bodies: Strings,
}

impl Records {
    /// Takes a record as JSON; ids come in their order.
    pub(crate) fn push(&mut self, id: &str, body: &str) {
        self.ids.push(id);
        self.bodies.push(body);
    }

    pub(crate) fn shrink(&mut self) {
        self.ids.shrink();
        self.bodies.shrink();
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn id(&self, doc: Doc) -> &str {
        self.ids.get(doc as usize)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.ids.iter()
    }

    /// A record. What was taken is what serialising gave, so it can be read; a record that nests deeper than JSON is
    /// read is the exception.
    pub(crate) fn get(&self, doc: Doc) -> Result<KnowledgeRecord, serde_json::Error> {
        serde_json::from_str(self.bodies.get(doc as usize))
    }

    pub(crate) fn find(&self, id: &str) -> Option<Doc> {
        let at = self.partition_point(|other| other < id);
        (at < self.len() && self.ids.get(at) == id).then_some(at as Doc)
    }

    /// How many ids stand before the first of which `is_before` does not hold; it holds of none after that.
    pub(crate) fn partition_point(&self, is_before: impl Fn(&str) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(self.ids.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}
