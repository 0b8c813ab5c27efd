//! Loads, locks and reloads the registry, and hands out the snapshots that sessions pin.

mod invoke;
mod load;
mod snapshot;
mod tool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use quarterdeck_contracts::handler::{HandlerHost, HostHealth, HostObserver};
use quarterdeck_contracts::{Artifact, HandlerKind};

pub use load::{LoadError, LoadProblem};
pub use snapshot::{NotBuilt, Snapshot};
pub use tool::LoadedTool;

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

/// The tools that can be called, as one artifact has them.
pub struct Registry {
    artifact: PathBuf,
    tools: PathBuf,
    hosts: Hosts,
    is_locked: AtomicBool,
    current: RwLock<Arc<Snapshot>>,
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

impl Registry {
    /// Loads the artifact at `artifact`, whose handlers lie under `tools`. Fails with all problems at once.
    pub fn load(artifact: &Path, tools: &Path, hosts: Hosts) -> Result<Self, LoadError> {
        let snapshot = load::from_file(artifact, tools, &hosts)?;
        Ok(Self::new(artifact, tools, hosts, snapshot))
    }

    /// Loads an artifact that was just compiled and never written.
    pub fn from_artifact(artifact: Artifact, tools: &Path, hosts: Hosts) -> Result<Self, LoadError> {
        let snapshot = load::from_artifact(artifact, tools, &hosts)?;
        let path = tools.join("tool_registry.json");
        Ok(Self::new(&path, tools, hosts, snapshot))
    }

    fn new(artifact: &Path, tools: &Path, hosts: Hosts, snapshot: Snapshot) -> Self {
        Self {
            artifact: artifact.to_owned(),
            tools: tools.to_owned(),
            hosts,
            is_locked: AtomicBool::new(false),
            current: RwLock::new(Arc::new(snapshot)),
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

    /// Loads the artifact anew. Sessions keep the snapshot they started with; new ones get the new tools.
    pub fn reload(&self) -> Result<Arc<Snapshot>, ReloadError> {
        if self.is_locked() {
            return Err(ReloadError::Locked);
        }
        let snapshot = Arc::new(load::from_file(&self.artifact, &self.tools, &self.hosts)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = snapshot.clone();
        Ok(snapshot)
    }

    /// Sets the observer of handlers that are taken out of service.
    pub fn observe_hosts(&self, observer: &Arc<dyn HostObserver>) {
        for host in self.hosts.all() {
            host.observe(observer.clone());
        }
    }

    /// Stuck threads and quarantines of all hosts.
    pub fn host_health(&self) -> HostHealth {
        let mut health = HostHealth::default();
        for host in self.hosts.all() {
            let of_host = host.health();
            health.stuck_threads += of_host.stuck_threads;
            health.quarantines_total += of_host.quarantines_total;
            health.quarantines.extend(of_host.quarantines);
        }
        health
    }

    /// Puts the handler of a tool back into service. False if it was not out of service.
    pub fn lift_quarantine(&self, tool_id: &str) -> bool {
        let lifted = self.hosts.all().filter(|host| host.lift_quarantine(tool_id));
        lifted.count() > 0
    }

    /// What a session pins: a cheap shared reference that never changes.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
