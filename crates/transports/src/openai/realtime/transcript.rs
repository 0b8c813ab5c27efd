//! Words of one item that come in pieces.

/// How much of an item is remembered.
const MAX_ITEM_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Transcript {
    item: String,
    text: String,
}

impl Transcript {
    /// Adds a piece, and gives it back.
    pub(super) fn add(&mut self, item: &str, piece: &str) -> String {
        if self.item != item {
            item.clone_into(&mut self.item);
            self.text.clear();
        }
        if self.text.len() + piece.len() <= MAX_ITEM_BYTES {
            self.text.push_str(piece);
        }
        piece.to_owned()
    }

    /// What has come so far.
    pub(super) fn whole(&self) -> &str {
        &self.text
    }

    /// What is missing at the end of an item, now that all of it is known. Nothing, if it reads otherwise: what was
    /// said stands.
    pub(super) fn rest(&mut self, item: &str, all: &str) -> String {
        let known = std::mem::take(self);
        let known = if known.item == item { known.text } else { String::new() };
        all.strip_prefix(known.as_str()).unwrap_or_default().to_owned()
    }
}
