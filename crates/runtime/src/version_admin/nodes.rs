//! Versions where several nodes share the store: what one of them is told, the others load, and the row of the rollout is
//! the truth for all.
//!
//! Each node has the artifact that it was started with, its base. During an upgrade there are two. Every node loads the
//! bases of the others as well, for sessions that come from there, but gives them to no new ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use quarterdeck_contracts::{Commit, StoreError, Table};
use serde_json::json;

use super::state::StoredVersions;
use super::{VersionAdmin, shared_bundles};
use crate::cluster_events::topic;
use crate::registry::{VersionError, VersionState};
use crate::store_keys::all_rows;

/// The keys in [`Table::Versions`] of the artifacts that nodes were started with.
const BASE_PREFIX: &str = "base/";
/// How long an artifact counts as a node's base without that node saying so again, and how often it does.
const BASE_LIFETIME_MS: u64 = 3_600_000;
const BASE_RENEWAL_MS: u64 = 600_000;

/// What is known of the stored state. Held while a change is made.
#[derive(Default)]
pub(super) struct Known {
    /// The version of the row as it was last seen.
    pub(super) row: Option<u64>,
    /// The bases of other nodes.
    bases: BTreeSet<String>,
    /// What could not be loaded, and was reported.
    reported: BTreeSet<String>,
}

impl VersionAdmin {
    /// Whether other nodes use the same rows.
    pub(super) fn is_shared(&self) -> bool {
        self.orchestrator.node_name().is_some()
    }

    /// Follows what other nodes do with versions. To be called before [`crate::Orchestrator::follow_changes`].
    pub fn follow(self: &Arc<Self>) {
        let admin = Arc::downgrade(self);
        self.orchestrator.on_change(topic::REGISTRY, move |_| {
            let admin = admin.upgrade();
            Box::pin(async move {
                let Some(admin) = admin else { return };
                if let Err(error) = admin.catch_up().await {
                    tracing::warn!(error = %error, "versions of other nodes could not be read");
                }
            })
        });
    }

    /// Loads what other nodes have activated, and takes over the rollout.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        let mut known = self.changing.lock().await;
        self.synchronise(&mut known).await.map(drop)
    }

    pub(super) async fn synchronise(&self, known: &mut Known) -> Result<StoredVersions, StoreError> {
        let (stored, row) = StoredVersions::load(self.orchestrator.store()).await?;
        if known.row != row {
            known.reported.clear();
        }
        known.row = row;
        for version in stored.in_order_of_need() {
            self.load_listed(&version.digest, &version.version, version.state, known).await;
        }
        self.registry.change(|versions| versions.set_rollout(stored.rollout.clone()));
        if let Err(error) = self.exchange_bases(known).await {
            tracing::warn!(error = %error, "artifacts of other nodes could not be exchanged");
        }
        for view in self.registry.versions() {
            let digest = view.snapshot.content_hash();
            let is_wanted = view.is_base || stored.lists(digest) || known.bases.contains(digest);
            if !is_wanted && view.state == VersionState::Active {
                // Another node has dropped it. Sessions of this process keep it.
                let _ = self.registry.change(|versions| versions.retire(digest));
            }
        }
        Ok(stored)
    }

    /// Whether another node was started with a version.
    pub(super) fn is_base_elsewhere(known: &Known, digest: &str) -> bool {
        known.bases.contains(digest)
    }

    async fn load_listed(&self, digest: &str, label: &str, state: VersionState, known: &mut Known) {
        let loaded = self.registry.find_pinned(digest, "");
        let snapshot = match loaded {
            Some(snapshot) => Ok(snapshot),
            None if known.reported.contains(digest) => return,
            None => self.load_stored(digest).await,
        };
        match snapshot {
            Ok(snapshot) => self.registry.change(|versions| versions.add(snapshot, state)),
            Err(error) => {
                known.reported.insert(digest.to_owned());
                self.report_missing(digest, label, &error);
            }
        }
    }

    /// Tells the other nodes what this one was started with, and loads what they were.
    async fn exchange_bases(&self, known: &mut Known) -> Result<(), VersionError> {
        let failed = |error: StoreError| VersionError::Store(error.to_string());
        let store = self.orchestrator.store();
        let now_ms = self.orchestrator.now_ms();
        let views = self.registry.versions();
        let Some(own) = views.iter().find(|view| view.is_base) else { return Ok(()) };
        let own = own.snapshot.clone();
        drop(views);
        let mut is_own_told = false;
        let mut others = Vec::new();
        for (key, value) in all_rows(&**store, Table::Versions, BASE_PREFIX).await.map_err(failed)? {
            let (digest, told_ms) = (&key[BASE_PREFIX.len()..], value["toldMs"].as_u64().unwrap_or_default());
            if digest == own.content_hash() {
                is_own_told = told_ms + BASE_RENEWAL_MS > now_ms;
            } else if told_ms + BASE_LIFETIME_MS > now_ms {
                others.push((digest.to_owned(), value["version"].as_str().unwrap_or_default().to_owned()));
            }
        }
        known.bases = others.iter().map(|(digest, _)| digest.clone()).collect();
        if !is_own_told {
            self.tell_base(own.content_hash(), own.version(), now_ms).await?;
        }
        for (digest, label) in others {
            if self.registry.find_pinned(&digest, "").is_none() {
                self.load_listed(&digest, &label, VersionState::Retiring, known).await;
            }
        }
        Ok(())
    }

    async fn tell_base(&self, digest: &str, label: &str, now_ms: u64) -> Result<(), VersionError> {
        let store = self.orchestrator.store();
        // What a followed folder was in between is not stored, and stays on its node.
        let Some(bundle) = self.bundles.load(digest)? else { return Ok(()) };
        shared_bundles::save(&**store, &bundle, now_ms).await?;
        let told = json!({ "version": label, "toldMs": now_ms });
        let expires = Some(now_ms + 2 * BASE_LIFETIME_MS);
        let commit =
            Commit::default().put_until(Table::Versions, format!("{BASE_PREFIX}{digest}"), told, expires);
        store.commit(commit).await.map_err(|error| VersionError::Store(error.to_string()))?;
        self.orchestrator.shared().announce(topic::REGISTRY, "base");
        Ok(())
    }

    /// Saves a change that was made to what [`Self::synchronise`] has read.
    pub(super) async fn save(&self, next: &StoredVersions, known: &mut Known) -> Result<(), VersionError> {
        let seen = self.is_shared().then_some(known.row);
        known.row = Some(next.save(self.orchestrator.store(), seen).await?);
        self.orchestrator.shared().announce(topic::REGISTRY, known.row.unwrap_or_default().to_string());
        Ok(())
    }
}
