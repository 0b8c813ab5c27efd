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
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.ids.get(middle).cmp(id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle as Doc),
            }
        }
        None
    }
}
