//! What one node works with: its data folder, and the store, which it has for itself or shares.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::backup::refuse_unfinished;
use crate::config::{Cluster, StoreConfig};
use crate::data;
use crate::store_url::StoreUrl;

/// The name of the audit chain in a store that one node has for itself.
pub(crate) const LOCAL_CHAIN: &str = "local";

/// The data folder of a node and its store.
#[derive(Debug, Clone)]
pub(crate) struct NodeData {
    pub(crate) folder: PathBuf,
    pub(crate) url: StoreUrl,
    pub(crate) config: StoreConfig,
    /// The name of the node's audit chain in the store.
    pub(crate) chain: String,
}

/// Locks on everything that one process alone may use; they end with it.
pub(crate) struct NodeLock {
    _folder: File,
    /// Of a SQLite file elsewhere, which another node's folder could name too.
    _store: Option<File>,
}

impl NodeData {
    pub(crate) fn new(folder: &Path, config: &StoreConfig, cluster: &Cluster) -> Self {
        let url = config.url.clone().unwrap_or_else(|| StoreUrl::Sqlite(data::store_file(folder)));
        let chain = if config.is_shared() { cluster.node.clone() } else { LOCAL_CHAIN.to_owned() };
        Self { folder: folder.to_owned(), url, config: config.clone(), chain }
    }

    pub(crate) fn audit_file(&self) -> PathBuf {
        data::audit_file(&self.folder)
    }

    /// The chain of what operators do beside a running server. No node has such a name.
    pub(crate) fn operator_chain(&self) -> String {
        format!("{}@operator", self.chain)
    }

    /// Locks what this node has for itself: its folder, and a SQLite file wherever it is.
    pub(crate) fn lock(&self) -> anyhow::Result<NodeLock> {
        self.try_lock()?.with_context(|| {
            format!(
                "another quarterdeck uses {}\n\
                 help: use the operators' page of the running server at /deck, or stop it and run this again",
                self.folder.display()
            )
        })
    }

    /// The same; `None` where another process has locked it.
    pub(crate) fn try_lock(&self) -> anyhow::Result<Option<NodeLock>> {
        refuse_unfinished(&self.folder)?;
        let Some(folder) = data::try_lock(&self.folder.join(data::LOCK_FILE))? else { return Ok(None) };
        let store = match &self.url {
            StoreUrl::Sqlite(file) if *file != data::store_file(&self.folder) => {
                match data::try_lock(&lock_beside(file))? {
                    None => return Ok(None),
                    locked => locked,
                }
            }
            _ => None,
        };
        Ok(Some(NodeLock { _folder: folder, _store: store }))
    }
}

/// A lock on a SQLite file, whatever folder it belongs to. A database needs none.
pub(crate) struct StoreLock {
    _locks: Vec<File>,
}

impl StoreLock {
    pub(crate) fn take(url: &StoreUrl) -> anyhow::Result<Self> {
        let StoreUrl::Sqlite(file) = url else { return Ok(Self { _locks: Vec::new() }) };
        // The file of a data folder is locked by the folder's lock, any other by one beside it.
        let folder = file.parent().map(|folder| folder.join(data::LOCK_FILE)).filter(|lock| lock.exists());
        let mut locks = Vec::new();
        for lock in folder.into_iter().chain([lock_beside(file)]) {
            locks.push(data::try_lock(&lock)?.with_context(|| {
                format!("another quarterdeck uses {}\nhelp: stop it, and run this again", file.display())
            })?);
        }
        Ok(Self { _locks: locks })
    }
}

fn lock_beside(file: &Path) -> PathBuf {
    let mut name = file.to_owned().into_os_string();
    name.push(".lock");
    name.into()
}
