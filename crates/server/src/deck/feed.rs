//! The audit trail while it is written: everything goes to the file, and past whoever is looking.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use quarterdeck_runtime::audit::{AuditEvent, AuditLog, AuditSink};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

/// How many happenings a reader may be behind. Beyond that it loses the oldest, and is told how many.
const BEHIND: usize = 256;

/// The audit trail of a server.
#[derive(Clone)]
pub struct AuditLogHandle {
    /// What writes it.
    pub feed: Arc<AuditFeed>,
    /// The file.
    pub path: PathBuf,
    /// The name of its chain in the store.
    pub node: String,
}

/// Writes the trail, and shows it to whoever is looking.
pub struct AuditFeed {
    log: Arc<AuditLog>,
    sender: Sender<Arc<Value>>,
}

/// What a reader hears.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Heard {
    /// A line of the trail, but for its place in the chain.
    Line(Arc<Value>),
    /// So many were missed.
    Lost(u64),
}

impl AuditFeed {
    /// In front of a trail.
    pub fn new(log: Arc<AuditLog>) -> Self {
        Self { log, sender: Sender::new(BEHIND) }
    }

    pub(crate) fn follow(&self) -> Receiver<Arc<Value>> {
        self.sender.subscribe()
    }

    /// Records what an operator has done.
    pub(crate) fn operator_did(&self, action: &str, by: &str, details: Value, now: SystemTime) {
        let mut fields = Map::from_iter([("action".to_owned(), json!(action)), ("by".to_owned(), json!(by))]);
        if let Value::Object(details) = details {
            fields.extend(details);
        }
        self.record(AuditEvent { event: "operator".into(), time: now, fields });
    }

    /// Waits until everything that was recorded is in the file. It blocks.
    pub(crate) fn flush(&self) {
        self.log.flush();
    }
}

impl AuditSink for AuditFeed {
    fn record(&self, happening: AuditEvent) {
        // Nobody is shown what nobody looks at.
        if self.sender.receiver_count() > 0 {
            let time = Timestamp::try_from(happening.time).unwrap_or(Timestamp::UNIX_EPOCH);
            let mut line = happening.fields.clone();
            line.insert("event".into(), json!(happening.event));
            line.insert("time".into(), json!(format!("{time:.3}")));
            // It fails when the last reader has just left.
            let _ = self.sender.send(Arc::new(Value::Object(line)));
        }
        self.log.record(happening);
    }
}

/// The next thing that a reader hears; `None` when there is nobody left to say anything.
pub(crate) async fn next(receiver: &mut Receiver<Arc<Value>>) -> Option<Heard> {
    match receiver.recv().await {
        Ok(line) => Some(Heard::Line(line)),
        Err(RecvError::Lagged(lost)) => Some(Heard::Lost(lost)),
        Err(RecvError::Closed) => None,
    }
}
