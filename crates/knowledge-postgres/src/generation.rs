//! Which base is the current one.

use quarterdeck_contracts::EmbeddingModel;
use quarterdeck_knowledge::saved::Sources;
use tokio_postgres::{Client, Row};

use crate::{KnowledgeDatabase, KnowledgeError};

/// A finished base, as its row describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// Grows by one with every build that changed something.
    pub number: i64,
    /// What it was built from, as the node that built it saw it.
    pub sources: Sources,
    pub records: usize,
    pub(crate) record_bytes: usize,
    pub passages: usize,
    pub(crate) records_digest: Vec<u8>,
    /// What made the vectors, if there are any.
    pub model: Option<EmbeddingModel>,
    /// The table that pgvector searches, if there is one.
    pub(crate) embeddings: Option<String>,
}

impl KnowledgeDatabase {
    /// `None` when nothing was ever built.
    pub async fn generation(&self) -> Result<Option<Generation>, KnowledgeError> {
        of_rows(&self.query(self.select_generation(), vec![]).await?)
    }

    pub(crate) async fn read_generation(
        &self,
        client: &Client,
    ) -> Result<Option<Generation>, KnowledgeError> {
        of_rows(&client.query_typed(&self.select_generation(), &[]).await?)
    }

    fn select_generation(&self) -> String {
        format!(
            "SELECT number, fingerprint, left_out, records, record_bytes, passages, records_digest, model, embeddings
             FROM {}.generation",
            self.schema
        )
    }
}

fn of_rows(rows: &[Row]) -> Result<Option<Generation>, KnowledgeError> {
    let Some(row) = rows.first() else { return Ok(None) };
    let count = |at: usize| usize::try_from(row.get::<_, i64>(at)).unwrap_or_default();
    let model: Option<&str> = row.get(7);
    let model = model.map(serde_json::from_str).transpose();
    Ok(Some(Generation {
        number: row.get(0),
        sources: Sources { fingerprint: row.get(1), left_out: count(2) },
        records: count(3),
        record_bytes: count(4),
        passages: count(5),
        records_digest: row.get(6),
        model: model.map_err(|_| KnowledgeError::Damaged("its model is not described".to_owned()))?,
        embeddings: row.get(8),
    }))
}
