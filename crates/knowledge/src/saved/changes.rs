//! What a base was made from, and what came of it.

/// What a base was built from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// What they looked like from outside; the same means that they have not changed.
    pub fingerprint: String,
    /// How many problems there were with them.
    pub left_out: usize,
}

/// What a save came to, in records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// New ids.
    pub added: usize,
    /// Known ids with other content.
    pub changed: usize,
    /// Ids that are gone.
    pub removed: usize,
    /// The rest.
    pub unchanged: usize,
}
