//! What operators do with versions: activate, retire, and set the rollout, while sessions go on.
//!
//! A change is stored before it is made, and changes are made one after another. Sessions are never touched: each keeps
//! the version that it has.

mod follow;
mod nodes;
mod shared_bundles;
mod state;

use std::collections::BTreeSet;
use std::sync::Arc;

use quarterdeck_contracts::StoreError;
use serde_json::json;
use tokio::sync::Mutex;

use crate::audit::AuditEvent;
use crate::orchestrator::Orchestrator;
use crate::registry::{
    Bundle, BundleFolder, Registry, Rollout, Snapshot, VersionError, VersionState, VersionView, is_digest,
};
use crate::version_holders::{Holders, is_held};

use nodes::Known;
use state::{StoredVersion, StoredVersions};

/// Which digests may be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedDigests {
    Any,
    /// Only those on the list that was given at the start, besides the artifact that the server was started with.
    Listed(BTreeSet<String>),
}

/// Limits of [`VersionAdmin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionSettings {
    /// How many versions are loaded at the most, retiring ones included.
    pub max_loaded: usize,
    /// How many versions are kept on the disk in addition to the loaded ones.
    pub max_stored: usize,
}

impl Default for VersionSettings {
    fn default() -> Self {
        Self { max_loaded: 4, max_stored: 8 }
    }
}

/// What an activation changes for new sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// All of them get the version, and all rules are dropped.
    Everyone,
    /// The rollout stays as it is.
    Unchanged,
}

/// Loads versions beside the one that the server was started with, and drops them again.
pub struct VersionAdmin {
    registry: Arc<Registry>,
    orchestrator: Orchestrator,
    bundles: BundleFolder,
    allowed: AllowedDigests,
    max_loaded: usize,
    /// Held while a change is made.
    changing: Mutex<Known>,
}

/// A version that was retired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retired {
    pub version: String,
    pub digest: String,
    /// Whether it was dropped at once, because no session has it.
    pub is_dropped: bool,
}

impl VersionAdmin {
    pub fn new(
        registry: Arc<Registry>,
        orchestrator: Orchestrator,
        bundles: BundleFolder,
        allowed: AllowedDigests,
        max_loaded: usize,
    ) -> Self {
        Self { registry, orchestrator, bundles, allowed, max_loaded, changing: Mutex::default() }
    }

    /// Stores the artifact that the server was started with, so that its version can be activated later by its digest.
    pub fn keep_base(&self, bundle: &Bundle) {
        if self.bundles.contains(bundle.digest()) {
            return;
        }
        if let Err(error) = self.bundles.save(bundle) {
            tracing::warn!(error = %error, "version could not be stored; it is served all the same");
        }
    }

    /// Loads what was loaded before a restart, as far as it is stored and allowed. To be called before sessions are
    /// resumed: those whose version is missing are pinned anew.
    pub async fn restore(&self) -> Result<(), StoreError> {
        let mut known = self.changing.lock().await;
        if self.is_shared() {
            return self.synchronise(&mut known).await.map(drop);
        }
        let (before, _) = StoredVersions::load(self.orchestrator.store()).await?;
        for version in before.in_order_of_need() {
            if self.registry.find_pinned(&version.digest, "").is_some() {
                continue;
            }
            match self.load_stored(&version.digest).await {
                Ok(snapshot) => {
                    let state = version.state_after_restart(&before.rollout);
                    self.registry.change(|versions| versions.add(snapshot, state));
                }
                Err(error) => self.report_missing(&version.digest, &version.version, &error),
            }
        }
        self.registry.change(|versions| versions.set_rollout(before.rollout.clone()));
        let now = self.stored_versions().with_missing(&before);
        if now != before {
            now.save(self.orchestrator.store(), None)
                .await
                .map_err(|error| StoreError::Failed(error.to_string()))?;
        }
        Ok(())
    }

    /// Loads a version, from a bundle or from what is stored, and lets new sessions have it.
    pub async fn activate(
        &self,
        digest: &str,
        bundle: Option<Bundle>,
        audience: Audience,
    ) -> Result<Arc<Snapshot>, VersionError> {
        let digest = digest.trim().to_ascii_lowercase();
        if !is_digest(&digest) {
            return Err(VersionError::NotADigest { digest: digest.chars().take(80).collect() });
        }
        self.check_allowed(&digest)?;
        if let Some(bundle) = bundle.as_ref().filter(|bundle| bundle.digest() != digest) {
            return Err(VersionError::OtherDigest { wanted: digest, found: bundle.digest().to_owned() });
        }
        let mut known = self.changing.lock().await;
        let mut next = self.present(&mut known).await?;
        let snapshot = match self.registry.find_pinned(&digest, "") {
            Some(loaded) => loaded,
            None => self.load(&digest, bundle).await?,
        };
        self.share_bundle(&digest).await?;
        next.activate(&snapshot);
        if audience == Audience::Everyone {
            next.rollout = Rollout::all(Some(digest.clone()));
        }
        self.save(&next, &mut known).await?;
        self.registry.change(|versions| {
            versions.add(snapshot.clone(), VersionState::Active);
            versions.set_rollout(next.rollout);
        });
        self.bundles.remove_oldest(|digest| self.registry.find_pinned(digest, "").is_some());
        self.remove_shared_bundles().await;
        Ok(snapshot)
    }

    /// Lets no new session have a version, and drops it if no session has it. Otherwise [`VersionAdmin::drop_unheld`] does
    /// when the last one has ended.
    pub async fn retire(&self, name: &str) -> Result<Retired, VersionError> {
        let mut changing = self.changing.lock().await;
        let mut next = self.present(&mut changing).await?;
        let (version, digest) = self.registry.change(|versions| {
            let snapshot = versions.find_named(name)?;
            let names = (snapshot.version().to_owned(), snapshot.content_hash().to_owned());
            versions.retire(&names.1).map(|()| names)
        })?;
        if self.is_shared() {
            next.retire(&digest);
        } else {
            next = self.stored_versions();
        }
        if let Err(error) = self.save(&next, &mut changing).await {
            self.registry.change(|versions| versions.reopen(&digest));
            return Err(error);
        }
        drop(changing);
        let dropped = self.drop_unheld().await;
        // It is retired either way, and the next look will find out.
        let dropped =
            dropped.inspect_err(|error| tracing::error!(error = %error, "store failed")).unwrap_or_default();
        Ok(Retired { is_dropped: dropped.contains(&digest), version, digest })
    }

    /// Sets the rules for new sessions. Versions may be named by a digest, the beginning of one, or their label.
    pub async fn set_rollout(&self, rollout: Rollout) -> Result<Rollout, VersionError> {
        let mut known = self.changing.lock().await;
        let before = self.present(&mut known).await?;
        let rollout = self.registry.change(|versions| versions.resolve(rollout))?;
        let next = StoredVersions { rollout: rollout.clone(), ..before };
        // A rule may name the artifact of the start, which is not listed otherwise.
        let next = next.with_named(&self.registry.versions());
        self.save(&next, &mut known).await?;
        self.registry.change(|versions| versions.set_rollout(rollout.clone()));
        Ok(rollout)
    }

    /// Drops the retiring versions that no session has any more, neither in memory nor in the store; their digests. To be
    /// called every now and then.
    pub async fn drop_unheld(&self) -> Result<Vec<String>, StoreError> {
        let mut known = self.changing.lock().await;
        let mut dropped = Vec::new();
        for digest in self.registry.change(|versions| versions.unused()) {
            if Self::is_base_elsewhere(&known, &digest) {
                continue;
            }
            // A session that is resumed while this looks is found here, or holds the version after it.
            if !is_held(self.orchestrator.shared(), &digest, self.holders()).await?
                && self.registry.change(|versions| versions.remove_unused(&digest))
            {
                tracing::info!(digest, "version dropped");
                self.audit("version_dropped", json!({ "digest": digest }));
                dropped.push(digest);
            }
        }
        if !dropped.is_empty()
            && let Err(error) = self.unlist(&dropped, &mut known).await
        {
            tracing::error!(error = %error, "dropped version is still listed in the store");
        }
        Ok(dropped)
    }

    /// The digests of versions that are stored and not loaded, the latest first.
    pub fn stored(&self) -> Vec<String> {
        let mut digests = self.bundles.digests();
        digests.retain(|digest| self.registry.find_pinned(digest, "").is_none());
        digests
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub fn max_loaded(&self) -> usize {
        self.max_loaded
    }

    pub fn allowed(&self) -> &AllowedDigests {
        &self.allowed
    }

    async fn load(&self, digest: &str, bundle: Option<Bundle>) -> Result<Arc<Snapshot>, VersionError> {
        let Some(bundle) = bundle else { return self.load_stored(digest).await };
        let snapshot = self.prepare(bundle.clone()).await?;
        self.bundles.save(&bundle)?;
        Ok(snapshot)
    }

    async fn load_stored(&self, digest: &str) -> Result<Arc<Snapshot>, VersionError> {
        self.check_allowed(digest)?;
        let mut bundle = self.bundles.load(digest)?;
        if bundle.is_none() && self.is_shared() {
            bundle = shared_bundles::load(&**self.orchestrator.store(), digest).await?;
            bundle.iter().for_each(|bundle| self.keep_base(bundle));
        }
        self.prepare(bundle.ok_or_else(|| VersionError::NotStored { digest: digest.to_owned() })?).await
    }

    /// What is listed at present, as a change starts from it. Where several nodes share the list, it is read again.
    async fn present(&self, known: &mut Known) -> Result<StoredVersions, VersionError> {
        if !self.is_shared() {
            return Ok(self.stored_versions());
        }
        self.synchronise(known).await.map_err(|error| VersionError::Store(error.to_string()))
    }

    /// Puts a version where every node finds it.
    async fn share_bundle(&self, digest: &str) -> Result<(), VersionError> {
        if !self.is_shared() {
            return Ok(());
        }
        let Some(bundle) = self.bundles.load(digest)? else { return Ok(()) };
        shared_bundles::save(&**self.orchestrator.store(), &bundle, self.orchestrator.now_ms()).await
    }

    async fn remove_shared_bundles(&self) {
        if !self.is_shared() {
            return;
        }
        let is_used = |digest: &str| self.registry.find_pinned(digest, "").is_some();
        let store = &**self.orchestrator.store();
        if let Err(error) = shared_bundles::remove_oldest(store, self.bundles.max_stored(), is_used).await {
            tracing::warn!(error = %error, "old versions could not be removed from the store");
        }
    }

    /// Takes versions off the list that were dropped.
    async fn unlist(&self, dropped: &[String], known: &mut Known) -> Result<(), VersionError> {
        if !self.is_shared() {
            return self.save(&self.stored_versions(), known).await;
        }
        // Not by taking over what is listed: that would load them again.
        let stored = StoredVersions::load(self.orchestrator.store()).await;
        let (mut next, row) = stored.map_err(|error| VersionError::Store(error.to_string()))?;
        known.row = row;
        if next.unlist(dropped) { self.save(&next, known).await } else { Ok(()) }
    }

    /// Which sessions keep a version loaded.
    fn holders(&self) -> Holders {
        if self.registry.is_followed() { Holders::Unmovable } else { Holders::Resumable }
    }

    /// Prepares every handler, on a thread of its own: engines are made, and sources compiled.
    async fn prepare(&self, bundle: Bundle) -> Result<Arc<Snapshot>, VersionError> {
        if self.registry.change(|versions| versions.len()) >= self.max_loaded {
            return Err(VersionError::TooMany { max: self.max_loaded });
        }
        self.prepare_beyond_limit(bundle).await
    }

    async fn prepare_beyond_limit(&self, bundle: Bundle) -> Result<Arc<Snapshot>, VersionError> {
        let registry = self.registry.clone();
        match tokio::task::spawn_blocking(move || registry.prepare(bundle)).await {
            Ok(prepared) => Ok(Arc::new(prepared?)),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    fn check_allowed(&self, digest: &str) -> Result<(), VersionError> {
        let is_base = |view: &VersionView| view.is_base && view.snapshot.content_hash() == digest;
        match &self.allowed {
            AllowedDigests::Any => Ok(()),
            AllowedDigests::Listed(list) if list.contains(digest) => Ok(()),
            AllowedDigests::Listed(_) if self.registry.versions().iter().any(is_base) => Ok(()),
            AllowedDigests::Listed(_) => Err(VersionError::NotAllowed { digest: digest.to_owned() }),
        }
    }

    /// What is to be loaded again after a restart. Where the folder is compiled, a session follows it: the artifact of the
    /// start is on the list only where a rule names it.
    fn stored_versions(&self) -> StoredVersions {
        let rollout = self.registry.rollout();
        let keeps_base = matches!(self.allowed, AllowedDigests::Listed(_));
        // What a folder was in between is not stored, and its sessions follow the folder.
        let is_stored = |view: &&VersionView| {
            !self.registry.is_followed() || self.bundles.contains(view.snapshot.content_hash())
        };
        let views = self.registry.versions();
        let listed = views
            .iter()
            .filter(|view| !view.is_base || keeps_base || rollout.names(view.snapshot.content_hash()))
            .filter(is_stored)
            .map(StoredVersion::from)
            .collect();
        StoredVersions { versions: listed, rollout }
    }

    fn report_missing(&self, digest: &str, version: &str, error: &VersionError) {
        let reason = error.to_string();
        tracing::error!(version, digest, reason, "version is not loaded again");
        self.audit(
            "version_not_loaded",
            json!({ "registryVersion": version, "digest": digest, "reason": reason }),
        );
    }

    fn audit(&self, event: &'static str, fields: serde_json::Value) {
        let shared = self.orchestrator.shared();
        if let serde_json::Value::Object(fields) = fields {
            shared.audit.record(AuditEvent { event: event.into(), time: shared.clock.now(), fields });
        }
    }
}
