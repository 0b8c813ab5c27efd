//! A base in parts, for whatever keeps it: records with their hashes, vectors by what was embedded, and the finished
//! index, so that a start need not build it. Everything derived is tied to the records by a digest.

mod build;
mod changes;
pub(crate) mod digest;
mod packed;
mod passages;
pub(crate) mod read;
mod taken_apart;

pub use build::build_keeping;
pub use changes::{Changes, Sources};
pub use digest::{Part, RecordsDigest, hash_of};
pub use packed::vector_from_packed;
pub use passages::{PassageList, VectorReader};
pub use read::{BaseReader, DamagedRecord, LoadedVectors};
pub use taken_apart::SavedBase;

pub(crate) use packed::{pack, unpack};

pub use crate::base::LoadedBase;
pub use crate::vectors::{Key, PackedVector, Scope, SourceError, VectorSource};
