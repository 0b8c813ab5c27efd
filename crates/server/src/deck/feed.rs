//! The live audit feed: every event goes to the log and to the operators who follow.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use quarterdeck_runtime::audit::{AuditEvent, AuditLog, AuditSink, LostLines};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

/// Events that a reader may lag behind. Beyond that it loses the oldest and is told how many.
const MAX_LAG_EVENTS: usize = 256;

/// Access to the audit log of a server.
#[derive(Clone)]
pub struct AuditLogHandle {
    /// Writes it.
    pub feed: Arc<AuditFeed>,
    /// The file.
    pub path: PathBuf,
    /// The name of its chain in the store.
    pub node: String,
    /// The file that verifying compares the ends of closed segments with.
    pub seal_file: Option<PathBuf>,
}

/// Writes the audit log and forwards its events to live readers.
pub struct AuditFeed {
    log: Arc<AuditLog>,
    sender: Sender<Arc<Value>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FeedItem {
    /// A line of the log without its chain fields.
    Line(Arc<Value>),
    /// How many were skipped.
    Lost(u64),
}

impl AuditFeed {
    /// A feed in front of a log.
    pub fn new(log: Arc<AuditLog>) -> Self {
        Self { log, sender: Sender::new(MAX_LAG_EVENTS) }
    }

    pub(crate) fn follow(&self) -> Receiver<Arc<Value>> {
        self.sender.subscribe()
    }

    pub(crate) fn record_operator_action(&self, action: &str, by: &str, details: Value, now: SystemTime) {
        let mut fields = Map::from_iter([("action".to_owned(), json!(action)), ("by".to_owned(), json!(by))]);
        if let Value::Object(details) = details {
            fields.extend(details);
        }
        self.record(AuditEvent { event: "operator".into(), time: now, fields });
    }

    /// Waits until everything recorded is in the file. Blocks.
    pub(crate) fn flush(&self) {
        self.log.flush();
    }

    /// Events that could not be written and are not yet mentioned in the log.
    pub(crate) fn lost(&self) -> u64 {
        self.log.lost()
    }
}

impl AuditSink for AuditFeed {
    fn record(&self, event: AuditEvent) {
        // Without readers there is nothing to copy.
        if self.sender.receiver_count() > 0 {
            let time = Timestamp::try_from(event.time).unwrap_or(Timestamp::UNIX_EPOCH);
            let mut line = event.fields.clone();
            line.insert("event".into(), json!(event.event));
            line.insert("time".into(), json!(format!("{time:.3}")));
            // Fails if the last reader has just left.
            let _ = self.sender.send(Arc::new(Value::Object(line)));
        }
        self.log.record(event);
    }

    fn lost_lines(&self) -> LostLines {
        self.log.lost_lines()
    }
}

/// `None` when the feed has ended.
pub(crate) async fn next_item(receiver: &mut Receiver<Arc<Value>>) -> Option<FeedItem> {
    match receiver.recv().await {
        Ok(line) => Some(FeedItem::Line(line)),
        Err(RecvError::Lagged(lost)) => Some(FeedItem::Lost(lost)),
        Err(RecvError::Closed) => None,
    }
}
