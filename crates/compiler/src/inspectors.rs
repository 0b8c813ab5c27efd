//! Which kinds of handlers a build knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use quarterdeck_contracts::HandlerKind;
use quarterdeck_contracts::handler::{FileType, Inspector};

/// The inspectors of a build, by the kind of handlers that they look at.
#[derive(Clone, Default)]
pub struct Inspectors(BTreeMap<HandlerKind, Arc<dyn Inspector>>);

impl Inspectors {
    /// Registers an inspector for a kind, in the place of one that was registered before.
    pub fn with(mut self, kind: HandlerKind, inspector: Arc<dyn Inspector>) -> Self {
        self.0.insert(kind, inspector);
        self
    }

    /// In the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&HandlerKind, &dyn Inspector)> {
        self.0.iter().map(|(kind, inspector)| (kind, &**inspector))
    }

    /// The type of the files with an extension that can be part of a handler. What is text for one kind is text for all.
    pub(crate) fn file_type(&self, extension: &str) -> Option<FileType> {
        let types = self.0.values().flat_map(|inspector| inspector.file_types()).copied();
        types.filter(|file_type| file_type.extension == extension).max_by_key(|file_type| file_type.is_text)
    }

    /// The entry files for a message: `` `handler.js` or `handler.rs` ``.
    pub(crate) fn entry_files(&self) -> String {
        let names: Vec<_> =
            self.0.values().map(|inspector| format!("`{}`", inspector.entry_file())).collect();
        names.join(" or ")
    }
}
