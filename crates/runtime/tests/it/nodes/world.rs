//! Nodes that share a store, each with a clock of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quarterdeck_contracts::{Mode, Scan, Store, Table};
use quarterdeck_runtime::{
    Client, Clock, Holder, NodeParts, Orchestrator, RuntimeParts, Session, SessionError, Snapshot,
};
use quarterdeck_store::MemoryStore;
use serde_json::Value;

use crate::orchestrator::fixture::{EffectLog, ManualClock, snapshot};

/// What all nodes share.
pub(super) struct Cluster {
    pub(super) store: Arc<dyn Store>,
    pub(super) effects: Arc<EffectLog>,
    pub(super) snapshot: Arc<Snapshot>,
    /// Opens the store as a process of its own would.
    open: Box<dyn Fn() -> Arc<dyn Store> + Send + Sync>,
}

/// One process.
pub(super) struct TestNode {
    pub(super) orchestrator: Orchestrator,
    pub(super) clock: Arc<ManualClock>,
    snapshot: Arc<Snapshot>,
}

impl Cluster {
    pub(super) fn new() -> Self {
        Self::on(Arc::new(MemoryStore::new()))
    }

    pub(super) fn on(store: Arc<dyn Store>) -> Self {
        Self::opening(move || store.clone())
    }

    /// With a handle of its own on the store for every node.
    pub(super) fn opening(open: impl Fn() -> Arc<dyn Store> + Send + Sync + 'static) -> Self {
        let effects = Arc::new(EffectLog::default());
        Self { store: open(), snapshot: snapshot(&effects), effects, open: Box::new(open) }
    }

    /// A node that has joined.
    pub(super) async fn node(&self, name: &str) -> TestNode {
        let node = self.node_on(name, (self.open)());
        node.orchestrator.renew_node().await.unwrap();
        node
    }

    /// The same behind a store of its own making.
    pub(super) fn node_on(&self, name: &str, store: Arc<dyn Store>) -> TestNode {
        let clock = ManualClock::new();
        let node = NodeParts { name: name.into(), address: format!("http://{name}.test") };
        let orchestrator = Orchestrator::new(RuntimeParts {
            clock: clock.clone(),
            topics: BTreeMap::from([("sensitive".to_owned(), vec!["weapons".to_owned()])]).into(),
            node: Some(node),
            ..RuntimeParts::new(store)
        });
        TestNode { orchestrator, clock, snapshot: self.snapshot.clone() }
    }

    /// Every row of the tables that sessions write.
    pub(super) async fn rows(&self) -> Vec<(Table, String, Value, u64)> {
        let mut all = Vec::new();
        for table in Table::ALL.into_iter().filter(|table| !matches!(table, Table::Nodes | Table::Audit)) {
            let rows = self.store.scan(table, Scan::prefix("", 10_000)).await.unwrap();
            all.extend(rows.into_iter().map(|(key, row)| (table, key, row.value, row.version)));
        }
        all
    }
}

impl TestNode {
    pub(super) async fn open(&self, mode: Mode) -> Session {
        let session = self.orchestrator.open(ann(), mode, self.snapshot.clone()).await.unwrap();
        session.begin_turn(None);
        session
    }

    pub(super) async fn resume(&self, id: &str) -> Result<Session, SessionError> {
        self.orchestrator.resume(id, ann(), self.snapshot.clone()).await
    }

    /// Resumes a session that this node may have, and holds it.
    pub(super) async fn take(&self, id: &str) -> Session {
        let session = self.resume(id).await.unwrap();
        session.hold().await.unwrap();
        session
    }

    /// Takes a session from whatever node has it, as if that had not answered.
    pub(super) async fn take_over(&self, id: &str) -> Session {
        let dead = self.holder(id).await;
        let session =
            self.orchestrator.resume_from_dead(id, ann(), self.snapshot.clone(), &dead).await.unwrap();
        session.hold().await.unwrap();
        session
    }

    pub(super) async fn holder(&self, id: &str) -> Holder {
        self.orchestrator.holder(id).await.unwrap().expect("another node has it")
    }

    /// Time passes for this node, without its renewing its row.
    pub(super) fn sleep(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(super) fn set_clock_ahead(&self, by: Duration) {
        let now: SystemTime = self.clock.now();
        self.clock.set(now + by);
    }
}

pub(super) fn ann() -> Client {
    Client::anonymous("ann")
}
