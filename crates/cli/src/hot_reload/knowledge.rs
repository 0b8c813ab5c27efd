//! The records of the knowledge base.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use quarterdeck_contracts::Store;
use quarterdeck_knowledge::{KnowledgeBase, fingerprint, read_folder};
use quarterdeck_knowledge_postgres::announce;
use tokio::runtime::Handle;

use super::{NotLive, Problem, Source};
use crate::terminal::count;
use crate::wire::{self, ProgressLines, SharedKnowledge};

/// Where what was saved goes.
pub(crate) enum KnowledgeHome {
    /// The file in this data folder.
    File(PathBuf),
    /// The database, from which this node loads it as any other does.
    Database { shared: SharedKnowledge, store: Arc<dyn Store>, runtime: Handle },
}

pub(crate) struct KnowledgeSource {
    folder: PathBuf,
    home: KnowledgeHome,
    base: KnowledgeBase,
    lines: ProgressLines,
    /// The files that had records which could not be served from the start. `None` before the first look.
    left_out: Option<BTreeSet<PathBuf>>,
}

impl KnowledgeSource {
    pub(crate) fn new(
        folder: PathBuf,
        home: KnowledgeHome,
        base: KnowledgeBase,
        lines: ProgressLines,
    ) -> Self {
        Self { folder, home, base, lines, left_out: None }
    }

    /// Indexes what is in the folder now, and says how many records that is.
    fn update(&self) -> anyhow::Result<usize> {
        match &self.home {
            KnowledgeHome::File(data) => {
                wire::knowledge::update(&self.base, &self.folder, data, &self.lines)?;
                Ok(self.base.stats().records)
            }
            KnowledgeHome::Database { shared, store, runtime } => {
                let built = runtime.block_on(shared.build(&self.folder, &self.lines))?;
                announce(&**store, built.generation);
                Ok(built.records)
            }
        }
    }

    /// What a server does at its start: the model is loaded, and what has changed since the last build is indexed.
    fn begin(&mut self) -> anyhow::Result<()> {
        self.update()?;
        let (_, problems) = read_folder(&self.folder);
        let left_out = problems.into_iter().filter(|problem| !problem.is_served);
        self.left_out = Some(left_out.map(|problem| problem.file).collect());
        Ok(())
    }
}

impl Source for KnowledgeSource {
    fn name(&self) -> &'static str {
        "knowledge"
    }

    fn fingerprint(&self) -> String {
        fingerprint(&self.folder).unwrap_or_else(|error| error.to_string())
    }

    fn reload(&mut self) -> Result<Vec<String>, NotLive> {
        let before = self.fingerprint();
        let Some(known) = &self.left_out else {
            self.begin().map_err(|error| NotLive::because(format!("{error:#}")))?;
            return Ok(Vec::new());
        };
        let (_, problems) = read_folder(&self.folder);
        let broken: Vec<_> = problems.into_iter().filter(|problem| !problem.is_served).collect();
        let new: Vec<_> = broken.iter().filter(|problem| !known.contains(&problem.file)).collect();
        if !new.is_empty() {
            let text = |problem| Problem::new(format!("{}/{problem}", self.folder.display()));
            return Err(NotLive::Problems(new.into_iter().map(text).collect()));
        }
        if self.fingerprint() != before {
            return Err(NotLive::Changing);
        }
        let records = self.update().map_err(|error| NotLive::because(format!("{error:#}")))?;
        // A file that was corrected must not break again unnoticed.
        self.left_out = Some(broken.into_iter().map(|problem| problem.file).collect());
        Ok(vec![format!("~ {} changed: {}", self.folder.display(), count(records, "record"))])
    }
}
