//! Building a base that is kept in a file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::{Embedder, EmbeddingModel, KnowledgeRecord};
use rusqlite::Connection;

use super::{Changes, FileError, KnowledgeFile, Sources, vectors};
use crate::base::KnowledgeBase;
use crate::search::ScoreThresholds;
use crate::snapshot::{BuildError, Fresh, Progress, Watch};
use crate::vectors::Key;

/// How much work an interrupted build may lose. More often would be more time at the disk than at the model.
const KEPT_EVERY: Duration = Duration::from_secs(2);

impl KnowledgeFile {
    /// Builds a base of these records and saves it. Vectors that the file has are not made again, and those that are
    /// made are kept on the way: whoever is interrupted goes on from there.
    pub fn build(
        &mut self,
        records: Vec<KnowledgeRecord>,
        embedder: Option<Arc<dyn Embedder>>,
        floor: ScoreThresholds,
        sources: &Sources,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(KnowledgeBase, Changes), FileError> {
        let model = embedder.as_ref().map(|embedder| embedder.model().clone());
        let known = match &model {
            Some(model) => Some(self.vectors(model)?),
            None => None,
        };
        let base = keeping(&self.connection, model.as_ref(), |keep| {
            let mut watch = Watch { progress, keep };
            KnowledgeBase::build_watched(records, embedder, known.as_ref(), floor, &mut watch)
        })?;
        drop(known);
        let changes = self.save(&base, sources)?;
        Ok((base, changes))
    }

    /// Puts other records in place of those of a base, and saves it. Searches see the old base until the new one is
    /// complete.
    pub fn replace(
        &mut self,
        base: &KnowledgeBase,
        records: Vec<KnowledgeRecord>,
        sources: &Sources,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Changes, FileError> {
        keeping(&self.connection, base.model().as_ref(), |keep| {
            base.replace_watched(records, &mut Watch { progress, keep })
        })?;
        self.save(base, sources)
    }
}

/// Runs a build whose vectors are kept, also when it fails.
fn keeping<T>(
    connection: &Connection,
    model: Option<&EmbeddingModel>,
    build: impl FnOnce(&mut dyn FnMut(&[Fresh<'_>]) -> Result<(), BuildError>) -> Result<T, BuildError>,
) -> Result<T, BuildError> {
    let mut waiting: Vec<(Key, Vec<i8>, f32)> = Vec::new();
    let mut last = Instant::now();
    let built = build(&mut |fresh| {
        waiting.extend(fresh.iter().map(|(key, bytes, scale)| (*key, bytes.to_vec(), *scale)));
        if last.elapsed() >= KEPT_EVERY {
            keep(connection, model, &mut waiting)?;
            last = Instant::now();
        }
        Ok(())
    });
    keep(connection, model, &mut waiting)?;
    built
}

fn keep(
    connection: &Connection,
    model: Option<&EmbeddingModel>,
    waiting: &mut Vec<(Key, Vec<i8>, f32)>,
) -> Result<(), BuildError> {
    let Some(model) = model.filter(|_| !waiting.is_empty()) else { return Ok(()) };
    let fresh: Vec<Fresh<'_>> =
        waiting.iter().map(|(key, bytes, scale)| (*key, &bytes[..], *scale)).collect();
    let put = || {
        let transaction = connection.unchecked_transaction()?;
        vectors::put(&transaction, model, &fresh)?;
        transaction.commit()
    };
    put().map_err(|error: rusqlite::Error| BuildError::Keep(error.to_string()))?;
    waiting.clear();
    Ok(())
}
