//! Vectors in the file: each under the digest of what was embedded, so that a build which was interrupted goes on where
//! it was.

use std::collections::HashMap;

use quarterdeck_contracts::EmbeddingModel;
use rusqlite::{Connection, params};

use super::{FileError, KnowledgeFile};
use crate::saved::{pack, unpack};
use crate::snapshot::{KnownVectors, NewVector};
use crate::vectors::{Key, Rows};

impl KnowledgeFile {
    /// The vectors of a model, whether the build that made them was finished or not.
    pub fn vectors(&self, model: &EmbeddingModel) -> Result<KnownVectors, FileError> {
        let mut known =
            KnownVectors { model: model.clone(), rows: Rows::zeroed(model.dimension, 0), at: HashMap::new() };
        self.each_vector(model, |key, bytes, scale| {
            known.at.insert(key, known.rows.len());
            known.rows.push(bytes, scale);
        })?;
        Ok(known)
    }

    pub(super) fn each_vector(
        &self,
        model: &EmbeddingModel,
        mut each: impl FnMut(Key, &[i8], f32),
    ) -> Result<(), FileError> {
        let mut statement = self.connection.prepare("SELECT key, vector FROM vectors WHERE model = ?1")?;
        let mut rows = statement.query([&model.digest])?;
        let mut bytes = Vec::with_capacity(model.dimension);
        while let Some(row) = rows.next()? {
            let (key, vector) = (row.get_ref(0)?.as_blob(), row.get_ref(1)?.as_blob());
            let (Ok(key), Ok(vector)) = (key, vector) else {
                return Err(self.damaged("a vector is not bytes"));
            };
            let read = Key::try_from(key).ok().and_then(|key| {
                let scale = unpack(&key, vector, model.dimension, &mut bytes)?;
                Some((key, scale))
            });
            let (key, scale) = read.ok_or_else(|| self.damaged("a vector is not what was stored"))?;
            each(key, &bytes, scale);
        }
        Ok(())
    }
}

/// Adds vectors; those that are there stay.
pub(super) fn put(
    connection: &Connection,
    model: &EmbeddingModel,
    fresh: &[NewVector<'_>],
) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached(
        "INSERT INTO vectors (model, key, vector) VALUES (?1, ?2, ?3) ON CONFLICT (model, key) DO NOTHING",
    )?;
    for (key, bytes, scale) in fresh {
        put.execute(params![model.digest, &key[..], pack(key, bytes, *scale)])?;
    }
    Ok(())
}
