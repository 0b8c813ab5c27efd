//! Building a base that is kept in a file.

use std::sync::Arc;

use quarterdeck_contracts::{Embedder, EmbeddingModel, KnowledgeRecord};

use super::{Changes, FileError, KnowledgeFile, Sources, vectors};
use crate::base::KnowledgeBase;
use crate::search::Floor;
use crate::snapshot::{BuildError, Fresh, Progress, Watch};

impl KnowledgeFile {
    /// Builds a base of these records and saves it. Vectors that the file has are not made again, and those that are
    /// made are kept at once: whoever is interrupted goes on from there.
    pub fn build(
        &mut self,
        records: Vec<KnowledgeRecord>,
        embedder: Option<Arc<dyn Embedder>>,
        floor: Floor,
        sources: &Sources,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(KnowledgeBase, Changes), FileError> {
        let model = embedder.as_ref().map(|embedder| embedder.model().clone());
        let known = match &model {
            Some(model) => Some(self.vectors(model)?),
            None => None,
        };
        let keep = &mut |fresh: &[Fresh<'_>]| self.keep(model.as_ref(), fresh);
        let mut watch = Watch { progress, keep };
        let base = KnowledgeBase::build_watched(records, embedder, known.as_ref(), floor, &mut watch)?;
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
        let model = base.model();
        let keep = &mut |fresh: &[Fresh<'_>]| self.keep(model.as_ref(), fresh);
        base.replace_watched(records, &mut Watch { progress, keep })?;
        self.save(base, sources)
    }

    fn keep(&self, model: Option<&EmbeddingModel>, fresh: &[Fresh<'_>]) -> Result<(), BuildError> {
        let Some(model) = model else { return Ok(()) };
        let put = || {
            let transaction = self.connection.unchecked_transaction()?;
            vectors::put(&transaction, model, fresh)?;
            transaction.commit()
        };
        put().map_err(|error: rusqlite::Error| BuildError::Keep(error.to_string()))
    }
}
