//! What the store keeps of versions: those to be loaded after a restart, and the rollout.

use std::sync::Arc;

use quarterdeck_contracts::{Commit, CommitError, Store, StoreError, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::registry::{Rollout, Snapshot, VersionError, VersionState, VersionView};

const KEY: &str = "state";

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StoredVersions {
    pub(super) versions: Vec<StoredVersion>,
    pub(super) rollout: Rollout,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredVersion {
    pub(super) digest: String,
    /// The readable label, for messages.
    pub(super) version: String,
    pub(super) state: VersionState,
    /// Whether the server was started with it.
    pub(super) is_base: bool,
}

impl From<&VersionView> for StoredVersion {
    fn from(view: &VersionView) -> Self {
        Self {
            digest: view.snapshot.content_hash().to_owned(),
            version: view.snapshot.version().to_owned(),
            state: view.state,
            is_base: view.is_base,
        }
    }
}

impl StoredVersion {
    /// An artifact that a server was started with and that no rule names has had its time with the next artifact. Its
    /// sessions keep it.
    pub(super) fn state_after_restart(&self, rollout: &Rollout) -> VersionState {
        let is_replaced = self.is_base && !rollout.names(&self.digest);
        if is_replaced { VersionState::Retiring } else { self.state }
    }
}

impl StoredVersions {
    /// What is stored, and the version of its row.
    pub(super) async fn load(store: &Arc<dyn Store>) -> Result<(Self, Option<u64>), StoreError> {
        let row = store.get(Table::Versions, KEY).await?;
        let Some(row) = row else { return Ok((Self::default(), None)) };
        let stored = serde_json::from_value(row.value).unwrap_or_else(|error| {
            tracing::error!(error = %error, "stored rollout cannot be read; set it again");
            Self::default()
        });
        Ok((stored, Some(row.version)))
    }

    /// Stores it, and gives the version of its row. `seen` is the version that the row must have, where other nodes may
    /// change it too.
    pub(super) async fn save(
        &self,
        store: &Arc<dyn Store>,
        seen: Option<Option<u64>>,
    ) -> Result<u64, VersionError> {
        let mut commit = Commit::default().put(Table::Versions, KEY, json!(self));
        if let Some(version) = seen {
            commit = commit.check(Table::Versions, KEY, version);
        }
        match store.commit(commit).await {
            Ok(version) => Ok(version),
            Err(CommitError::Conflict { .. }) => {
                Err(VersionError::Store("another node has changed the versions at the same time".into()))
            }
            Err(error) => Err(VersionError::Store(error.to_string())),
        }
    }

    pub(super) fn lists(&self, digest: &str) -> bool {
        self.versions.iter().any(|version| version.digest == digest)
    }

    /// Lists a version as one that takes no new sessions.
    pub(super) fn retire(&mut self, digest: &str) {
        for version in self.versions.iter_mut().filter(|version| version.digest == digest) {
            version.state = VersionState::Retiring;
        }
    }

    /// Takes versions off the list; `false` if none was on it.
    pub(super) fn unlist(&mut self, digests: &[String]) -> bool {
        let before = self.versions.len();
        self.versions.retain(|version| !digests.contains(&version.digest));
        self.versions.len() < before
    }

    /// Lists a version as one that takes new sessions.
    pub(super) fn activate(&mut self, snapshot: &Snapshot) {
        let digest = snapshot.content_hash();
        match self.versions.iter_mut().find(|version| version.digest == digest) {
            Some(known) => known.state = VersionState::Active,
            None => self.versions.push(StoredVersion {
                digest: digest.to_owned(),
                version: snapshot.version().to_owned(),
                state: VersionState::Active,
                is_base: false,
            }),
        }
    }

    /// Lists the loaded versions that rules name.
    pub(super) fn with_named(mut self, loaded: &[VersionView]) -> Self {
        for view in loaded {
            let digest = view.snapshot.content_hash();
            let is_listed = self.versions.iter().any(|version| version.digest == digest);
            if !is_listed && self.rollout.names(digest) {
                self.versions.push(view.into());
            }
        }
        self
    }

    /// Keeps what was listed, is named by a rule and could not be loaded: the next start tries again.
    pub(super) fn with_missing(mut self, before: &Self) -> Self {
        for version in &before.versions {
            let is_listed = self.versions.iter().any(|listed| listed.digest == version.digest);
            if !is_listed && self.rollout.names(&version.digest) {
                self.versions.push(version.clone());
            }
        }
        self
    }

    /// The versions that rules name first, retiring ones last: there may be more than the limit now allows.
    pub(super) fn in_order_of_need(&self) -> Vec<&StoredVersion> {
        let mut versions: Vec<_> = self.versions.iter().collect();
        versions.sort_by_key(|version| {
            (!self.rollout.names(&version.digest), version.state == VersionState::Retiring)
        });
        versions
    }
}
