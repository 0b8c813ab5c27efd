//! Building a base that is kept in a file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::{Embedder, EmbeddingModel, KnowledgeRecord};
use rusqlite::Connection;

use super::{Changes, FileError, KnowledgeFile, Sources, vectors};
use crate::base::KnowledgeBase;
use crate::search::ScoreThresholds;
use crate::snapshot::{BuildError, BuildObserver, NewVector, Progress};
use crate::vectors::Key;

/// How much work an interrupted build may lose. Saving more often would take more time than the model does.
const SAVE_INTERVAL: Duration = Duration::from_secs(2);

impl KnowledgeFile {
    /// Builds a base of these records and saves it. Vectors that the file has are not made again, and new ones are
    /// saved on the way, so that an interrupted build continues from there.
    pub fn build(
        &mut self,
        records: Vec<KnowledgeRecord>,
        embedder: Option<Arc<dyn Embedder>>,
        thresholds: ScoreThresholds,
        sources: &Sources,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(KnowledgeBase, Changes), FileError> {
        let model = embedder.as_ref().map(|embedder| embedder.model().clone());
        let known = match &model {
            Some(model) => Some(self.vectors(model)?),
            None => None,
        };
        let base = save_while_building(&self.connection, model.as_ref(), |keep| {
            let mut observer = BuildObserver { progress, keep };
            KnowledgeBase::build_observed(records, embedder, known.as_ref(), thresholds, &mut observer)
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
        save_while_building(&self.connection, base.model().as_ref(), |keep| {
            base.replace_observed(records, &mut BuildObserver { progress, keep })
        })?;
        self.save(base, sources)
    }
}

/// Runs a build and saves its vectors, also when it fails.
fn save_while_building<T>(
    connection: &Connection,
    model: Option<&EmbeddingModel>,
    build: impl FnOnce(&mut dyn FnMut(&[NewVector<'_>]) -> Result<(), BuildError>) -> Result<T, BuildError>,
) -> Result<T, BuildError> {
    let mut waiting: Vec<(Key, Vec<i8>, f32)> = Vec::new();
    let mut last = Instant::now();
    let built = build(&mut |fresh| {
        waiting.extend(fresh.iter().map(|(key, bytes, scale)| (*key, bytes.to_vec(), *scale)));
        if last.elapsed() >= SAVE_INTERVAL {
            save(connection, model, &mut waiting)?;
            last = Instant::now();
        }
        Ok(())
    });
    save(connection, model, &mut waiting)?;
    built
}

fn save(
    connection: &Connection,
    model: Option<&EmbeddingModel>,
    waiting: &mut Vec<(Key, Vec<i8>, f32)>,
) -> Result<(), BuildError> {
    let Some(model) = model.filter(|_| !waiting.is_empty()) else { return Ok(()) };
    let fresh: Vec<NewVector<'_>> =
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
