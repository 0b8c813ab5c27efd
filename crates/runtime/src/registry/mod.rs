//! Loads, locks and reloads the registry, holds the versions of it that are loaded, and chooses which one a session pins.

mod bundle;
mod bundle_folder;
mod invoke;
mod load;
mod rollout;
mod snapshot;
mod tool;
mod versions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use quarterdeck_contracts::handler::{HandlerHost, HostObserver};
use quarterdeck_contracts::{Artifact, HandlerKind, UpstreamMonitor, UpstreamView};
use tokio::sync::watch;

pub use bundle::{Bundle, MAX_BUNDLE_BYTES};
pub use bundle_folder::{BundleError, BundleFolder};
pub use load::{LoadError, LoadProblem};
pub use rollout::{
    Candidate, ClaimRule, NotAPercentage, OrganisationRule, Percent, PinReason, RequestedVersion, Rollout,
    RolloutError, Share,
};
pub use snapshot::{NotBuilt, Snapshot};
pub use tool::LoadedTool;
pub use versions::{Pin, VersionError, VersionState, VersionView};

pub(crate) use bundle_folder::is_digest;

use load::{HandlerSource, OnUnloadable};
pub(crate) use versions::Versions;

/// The hosts that run handlers, by their kind.
#[derive(Clone, Default)]
pub struct Hosts(BTreeMap<HandlerKind, Arc<dyn HandlerHost>>);

impl Hosts {
    /// Registers the host of a kind, in the place of one that was registered before.
    pub fn with(mut self, kind: HandlerKind, host: Arc<dyn HandlerHost>) -> Self {
        self.0.insert(kind, host);
        self
    }

    fn find(&self, kind: &HandlerKind) -> Option<&dyn HandlerHost> {
        self.0.get(kind).map(|host| &**host)
    }

    fn all(&self) -> impl Iterator<Item = &dyn HandlerHost> {
        self.0.values().map(|host| &**host)
    }
}

/// The tools that can be called: those of the artifact that was loaded first, and of other versions beside it. A version
/// never changes.
pub struct Registry {
    artifact: PathBuf,
    tools: PathBuf,
    hosts: Hosts,
    is_locked: AtomicBool,
    is_followed: AtomicBool,
    versions: RwLock<Versions>,
    /// How often the versions have changed.
    changes: watch::Sender<u64>,
}

/// Why a registry was not reloaded. What was loaded before still is.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// In production the registry does not change under its sessions.
    #[error("the registry is locked; restart to load another one")]
    Locked,
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl UpstreamMonitor for Registry {
    fn list(&self) -> Vec<UpstreamView> {
        self.upstreams()
    }
}

impl Registry {
    /// Loads the artifact at `artifact`, whose handlers lie under `tools`. Fails with all problems at once; a tool whose handler
    /// cannot run here is left out, see [`Snapshot::left_out`].
    pub fn load(artifact: &Path, tools: &Path, hosts: Hosts) -> Result<Self, LoadError> {
        let snapshot = load::from_file(artifact, tools, &hosts)?;
        Ok(Self::new(artifact, tools, hosts, snapshot))
    }

    /// Loads an artifact that was just compiled and never written.
    pub fn from_artifact(artifact: Artifact, tools: &Path, hosts: Hosts) -> Result<Self, LoadError> {
        let snapshot =
            load::from_artifact(artifact, &HandlerSource::Folder(tools), &hosts, OnUnloadable::LeaveOut)?;
        let path = tools.join("tool_registry.json");
        Ok(Self::new(&path, tools, hosts, snapshot))
    }

    /// Loads an artifact with the handlers that were read together with it from `tools`.
    pub fn from_bundle(bundle: Bundle, tools: &Path, hosts: Hosts) -> Result<Self, LoadError> {
        let source = HandlerSource::Bundle(&bundle.files);
        let snapshot = load::from_artifact(bundle.artifact, &source, &hosts, OnUnloadable::LeaveOut)?;
        Ok(Self::new(&tools.join("tool_registry.json"), tools, hosts, snapshot))
    }

    fn new(artifact: &Path, tools: &Path, hosts: Hosts, snapshot: Snapshot) -> Self {
        Self {
            artifact: artifact.to_owned(),
            tools: tools.to_owned(),
            hosts,
            is_locked: AtomicBool::new(false),
            is_followed: AtomicBool::new(false),
            versions: RwLock::new(Versions::new(Arc::new(snapshot))),
            changes: watch::Sender::new(0),
        }
    }

    /// Makes the registry immutable, for good.
    pub fn lock(&self) {
        self.is_locked.store(true, Ordering::Release);
    }

    /// Whether [`Registry::reload`] is refused.
    pub fn is_locked(&self) -> bool {
        self.is_locked.load(Ordering::Acquire)
    }

    /// Lets text sessions move on to a newer version between two turns, for good. For development: what was just saved is
    /// in the next answer.
    pub fn follow(&self) {
        self.is_followed.store(true, Ordering::Release);
    }

    /// Whether text sessions move on to a newer version.
    pub fn is_followed(&self) -> bool {
        self.is_followed.load(Ordering::Acquire)
    }

    /// Loads the artifact anew. Sessions keep the snapshot they started with; new ones get the new tools.
    pub fn reload(&self) -> Result<Arc<Snapshot>, ReloadError> {
        if self.is_locked() {
            return Err(ReloadError::Locked);
        }
        let snapshot = Arc::new(load::from_file(&self.artifact, &self.tools, &self.hosts)?);
        self.write().replace_base(snapshot.clone());
        self.announce();
        Ok(snapshot)
    }

    /// Says that there may be other tools. Whether a client gets others is for [`Registry::choose`] to say.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn announce(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Sets the observer of what happens in the hosts.
    pub fn observe_hosts(&self, observer: &Arc<dyn HostObserver>) {
        for host in self.hosts.all() {
            host.observe(observer.clone());
        }
    }

    /// The servers elsewhere of all hosts, by name.
    pub fn upstreams(&self) -> Vec<UpstreamView> {
        let monitors = self.hosts.all().filter_map(|host| host.upstreams());
        let mut servers: Vec<_> = monitors.flat_map(UpstreamMonitor::list).collect();
        servers.sort_by(|one, other| one.name.cmp(&other.name));
        servers
    }

    /// What a session pins that no rule of the rollout is about: a cheap shared reference that never changes.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.read().rest().clone()
    }

    /// What a new session of a client pins. It fails only for a request that names a version.
    pub fn choose(&self, candidate: &Candidate<'_>) -> Result<Pin, VersionError> {
        self.read().choose(candidate)
    }

    /// The version that a session was pinned to, if it is still loaded. Sessions of earlier releases are stored without a
    /// digest.
    pub(crate) fn find_pinned(&self, digest: &str, label: &str) -> Option<Arc<Snapshot>> {
        let versions = self.read();
        let found =
            versions.find(digest).or_else(|| versions.find_by_label(label).filter(|_| digest.is_empty()));
        found.cloned()
    }

    /// Whether a snapshot is among the loaded versions.
    pub(crate) fn has(&self, snapshot: &Snapshot) -> bool {
        self.read().find(snapshot.content_hash()).is_some()
    }

    /// The loaded versions, the oldest first.
    pub fn versions(&self) -> Vec<VersionView> {
        self.read().views()
    }

    pub fn rollout(&self) -> Rollout {
        self.read().rollout().clone()
    }

    /// Prepares an artifact for these hosts, without loading it beside the others yet. It may take a while.
    pub(crate) fn prepare(&self, bundle: Bundle) -> Result<Snapshot, LoadError> {
        let source = HandlerSource::Bundle(&bundle.files);
        load::from_artifact(bundle.artifact, &source, &self.hosts, OnUnloadable::Refuse)
    }

    /// Changes the set of loaded versions. Nothing that waits may happen in `change`.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Versions) -> T) -> T {
        let changed = change(&mut self.write());
        self.announce();
        changed
    }

    fn read(&self) -> RwLockReadGuard<'_, Versions> {
        self.versions.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Versions> {
        self.versions.write().unwrap_or_else(PoisonError::into_inner)
    }
}
