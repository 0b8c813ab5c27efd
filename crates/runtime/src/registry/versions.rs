//! The versions that are loaded at the same time, and which of them a new session gets.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::rollout::{Candidate, Choice, PinReason, Rollout};
use super::{BundleError, LoadError, RolloutError, Snapshot};

/// The fewest digits of a digest that name a version.
const MIN_DIGEST_DIGITS: usize = 8;

/// Whether a loaded version takes new sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionState {
    Active,
    /// It takes none, and is dropped when the last of those that it has ends.
    Retiring,
}

/// The version that a session gets, and by which kind of rule.
#[derive(Clone)]
pub struct Pin {
    pub snapshot: Arc<Snapshot>,
    pub reason: PinReason,
}

/// A loaded version, for lists.
#[derive(Clone)]
pub struct VersionView {
    pub snapshot: Arc<Snapshot>,
    pub state: VersionState,
    /// Whether the server was started with it.
    pub is_base: bool,
    /// Whether sessions get it that no rule is about.
    pub is_rest: bool,
}

/// Why an operator's change was not made. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    #[error("`{digest}` is no digest; give the 64 hexadecimal digits that `quarterdeck build` prints")]
    NotADigest { digest: String },
    #[error(
        "the server is locked, and {digest} is not on its list; start it with `--allow-digests {digest}`, or add it to \
         `tools.allowed_digests`"
    )]
    NotAllowed { digest: String },
    #[error("{digest} is not stored here; give its artifact with `--artifact FILE`")]
    NotStored { digest: String },
    #[error("the artifact has the digest {found}, not {wanted}; give the artifact that has it")]
    OtherDigest { wanted: String, found: String },
    #[error("{max} versions are loaded, which is the limit; retire one, or raise `versions.max_loaded`")]
    TooMany { max: usize },
    #[error("there is no loaded version `{name}`; `quarterdeck registry list` shows those that are")]
    Unknown { name: String },
    #[error("`{name}` stands for several versions; give more digits of the digest")]
    Ambiguous { name: String },
    #[error("{version} is retiring and takes no new sessions; activate it again first")]
    Retiring { version: String },
    #[error(
        "new sessions get {version}; change that first with `quarterdeck registry rollout`, or activate another version"
    )]
    InUse { version: String },
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    #[error("the artifact cannot be loaded:\n{0}")]
    Load(#[from] LoadError),
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// What cannot be stored is not done: after a restart it would be undone.
    #[error("the change could not be stored: {0}; nothing was changed, try again")]
    Store(String),
}

struct Version {
    snapshot: Arc<Snapshot>,
    state: VersionState,
}

/// The loaded versions. There is always one, and one that takes new sessions.
pub(crate) struct Versions {
    loaded: Vec<Version>,
    /// The digest of the artifact that the server was started with.
    base: String,
    rollout: Rollout,
}

impl Versions {
    pub(crate) fn new(base: Arc<Snapshot>) -> Self {
        let digest = base.content_hash().to_owned();
        let base = Version { snapshot: base, state: VersionState::Active };
        Self { loaded: vec![base], base: digest, rollout: Rollout::default() }
    }

    /// Puts another artifact in the place of the one that was loaded at the start.
    pub(crate) fn replace_base(&mut self, base: Arc<Snapshot>) {
        let digest = base.content_hash().to_owned();
        self.loaded.retain(|version| {
            version.snapshot.content_hash() != self.base && version.snapshot.content_hash() != digest
        });
        self.loaded.insert(0, Version { snapshot: base, state: VersionState::Active });
        self.base = digest;
    }

    /// The same, where the one before may still have sessions: it takes no new ones, unless a rule names it.
    pub(crate) fn succeed_base(&mut self, base: Arc<Snapshot>) {
        let digest = base.content_hash().to_owned();
        self.add(base, VersionState::Active);
        let before = std::mem::replace(&mut self.base, digest);
        let is_replaced = before != self.base && !self.rollout.names(&before);
        if let Some(version) = self.get_mut(&before).filter(|_| is_replaced) {
            version.state = VersionState::Retiring;
        }
    }

    /// Drops the oldest retiring versions beyond a number of loaded ones; their digests. Sessions in memory keep theirs.
    pub(crate) fn drop_excess(&mut self, max_loaded: usize) -> Vec<String> {
        let mut excess = self.loaded.len().saturating_sub(max_loaded);
        let mut dropped = Vec::new();
        self.loaded.retain(|version| {
            let is_dropped = excess > 0 && version.state == VersionState::Retiring;
            if is_dropped {
                excess -= 1;
                dropped.push(version.snapshot.content_hash().to_owned());
            }
            !is_dropped
        });
        dropped
    }

    /// What a new session gets that no rule is about.
    pub(crate) fn rest(&self) -> &Arc<Snapshot> {
        let named = self.rollout.rest.as_deref().and_then(|digest| self.open(digest));
        // A version that the rules name may be missing after a restart.
        let version = named.or_else(|| self.open(&self.base));
        let any_open = || self.loaded.iter().find(|version| version.state == VersionState::Active);
        let version = version.or_else(any_open).or(self.loaded.first());
        &version.expect("a version is always loaded").snapshot
    }

    /// What a new session gets. An error is for a request that names a version which takes no new sessions.
    pub(crate) fn choose(&self, candidate: &Candidate<'_>) -> Result<Pin, VersionError> {
        let by = |snapshot: &Arc<Snapshot>, reason| Pin { snapshot: snapshot.clone(), reason };
        match self.rollout.choose(candidate, |digest| self.open(digest).is_some()) {
            Choice::Requested(name) => {
                let snapshot = self.find_open(name)?;
                Ok(by(&snapshot, PinReason::Header))
            }
            Choice::Version(digest, reason) => {
                Ok(by(self.open(digest).map_or_else(|| self.rest(), |version| &version.snapshot), reason))
            }
            Choice::Rest => Ok(by(self.rest(), PinReason::Rest)),
        }
    }

    /// A loaded version by its digest, also one that takes no new sessions.
    pub(crate) fn find(&self, digest: &str) -> Option<&Arc<Snapshot>> {
        self.get(digest).map(|version| &version.snapshot)
    }

    /// The same by its readable label, for sessions of earlier releases.
    pub(crate) fn find_by_label(&self, label: &str) -> Option<&Arc<Snapshot>> {
        self.loaded.iter().map(|version| &version.snapshot).find(|snapshot| snapshot.version() == label)
    }

    /// The version that a name stands for: a digest, the beginning of one, or a label.
    pub(crate) fn find_named(&self, name: &str) -> Result<&Arc<Snapshot>, VersionError> {
        let name = name.trim();
        let lower = name.to_ascii_lowercase();
        let is_meant = |snapshot: &&Arc<Snapshot>| {
            snapshot.version() == name
                || (lower.len() >= MIN_DIGEST_DIGITS && snapshot.content_hash().starts_with(&lower))
        };
        let mut meant = self.loaded.iter().map(|version| &version.snapshot).filter(is_meant);
        match (meant.next(), meant.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => Err(VersionError::Unknown { name: shortened(name) }),
            (Some(_), Some(_)) => Err(VersionError::Ambiguous { name: shortened(name) }),
        }
    }

    /// The same, for a version that must take new sessions.
    pub(crate) fn find_open(&self, name: &str) -> Result<Arc<Snapshot>, VersionError> {
        let snapshot = self.find_named(name)?;
        match self.open(snapshot.content_hash()) {
            Some(_) => Ok(snapshot.clone()),
            None => Err(VersionError::Retiring { version: snapshot.version().to_owned() }),
        }
    }

    /// Adds a version, or has one that is loaded take new sessions again.
    pub(crate) fn add(&mut self, snapshot: Arc<Snapshot>, state: VersionState) {
        match self.get_mut(snapshot.content_hash()) {
            Some(known) => known.state = state,
            None => self.loaded.push(Version { snapshot, state }),
        }
    }

    /// Takes no new sessions for it from now on.
    pub(crate) fn retire(&mut self, digest: &str) -> Result<(), VersionError> {
        let is_rest = self.rest().content_hash() == digest;
        let is_named = self.rollout.names(digest);
        let Some(version) = self.get_mut(digest) else {
            return Err(VersionError::Unknown { name: digest.to_owned() });
        };
        if is_rest || is_named {
            return Err(VersionError::InUse { version: version.snapshot.version().to_owned() });
        }
        version.state = VersionState::Retiring;
        Ok(())
    }

    /// Undoes [`Versions::retire`].
    pub(crate) fn reopen(&mut self, digest: &str) {
        if let Some(version) = self.get_mut(digest) {
            version.state = VersionState::Active;
        }
    }

    /// The retiring versions that nothing in this process holds any more. One that is in a session, or that a session is
    /// being opened with, is held.
    pub(crate) fn unused(&self) -> Vec<String> {
        let unused = self.loaded.iter().filter(|version| is_unused(version));
        unused.map(|version| version.snapshot.content_hash().to_owned()).collect()
    }

    /// Drops a version if nothing holds it.
    pub(crate) fn remove_unused(&mut self, digest: &str) -> bool {
        let before = self.loaded.len();
        self.loaded.retain(|version| version.snapshot.content_hash() != digest || !is_unused(version));
        self.loaded.len() < before
    }

    pub(crate) fn set_rollout(&mut self, rollout: Rollout) {
        self.rollout = rollout;
    }

    pub(crate) fn rollout(&self) -> &Rollout {
        &self.rollout
    }

    /// Checks rules, and replaces short names of versions by digests.
    pub(crate) fn resolve(&self, rollout: Rollout) -> Result<Rollout, VersionError> {
        rollout.check()?;
        if rollout.rest.is_none() && self.open(&self.base).is_none() {
            return Err(VersionError::Retiring {
                version: "the version that the server was started with".into(),
            });
        }
        rollout.resolve(|name| self.find_open(name).map(|snapshot| snapshot.content_hash().to_owned()))
    }

    pub(crate) fn views(&self) -> Vec<VersionView> {
        let rest = self.rest().content_hash();
        let view = |version: &Version| VersionView {
            snapshot: version.snapshot.clone(),
            state: version.state,
            is_base: version.snapshot.content_hash() == self.base,
            is_rest: version.snapshot.content_hash() == rest,
        };
        self.loaded.iter().map(view).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.loaded.len()
    }

    fn get(&self, digest: &str) -> Option<&Version> {
        self.loaded.iter().find(|version| version.snapshot.content_hash() == digest)
    }

    fn get_mut(&mut self, digest: &str) -> Option<&mut Version> {
        self.loaded.iter_mut().find(|version| version.snapshot.content_hash() == digest)
    }

    fn open(&self, digest: &str) -> Option<&Version> {
        self.get(digest).filter(|version| version.state == VersionState::Active)
    }
}

/// Only a read lock is needed to take a copy, and a retiring version is copied only for a session that has it already, so
/// under the write lock the count is final.
fn is_unused(version: &Version) -> bool {
    version.state == VersionState::Retiring && Arc::strong_count(&version.snapshot) == 1
}

/// Names come from headers and command lines.
fn shortened(name: &str) -> String {
    name.chars().take(80).collect()
}
