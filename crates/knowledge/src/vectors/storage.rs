//! Where the vectors of a base are.

use quarterdeck_contracts::EmbeddingModel;

use super::{RemoteVectors, Vectors};

pub(crate) enum VectorStorage {
    Memory(Vectors),
    Remote(RemoteVectors),
}

impl VectorStorage {
    pub(crate) fn model(&self) -> &EmbeddingModel {
        match self {
            Self::Memory(vectors) => &vectors.model,
            Self::Remote(vectors) => &vectors.model,
        }
    }

    pub(crate) fn records(&self) -> usize {
        match self {
            Self::Memory(vectors) => vectors.starts.len().saturating_sub(1),
            Self::Remote(vectors) => vectors.records(),
        }
    }

    pub(crate) fn passages(&self) -> usize {
        match self {
            Self::Memory(vectors) => vectors.rows.len(),
            Self::Remote(vectors) => vectors.passages(),
        }
    }

    pub(crate) fn in_memory(&self) -> Option<&Vectors> {
        match self {
            Self::Memory(vectors) => Some(vectors),
            Self::Remote(_) => None,
        }
    }
}
