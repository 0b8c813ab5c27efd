//! A world for one call, held still.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use quarterdeck_contracts::handler::{
    BoxFuture, CallFacts, CapabilityCall, CapabilityError, CapabilityErrorCode, Context, LogLevel,
    SessionFacts, ToolFacts,
};
use quarterdeck_contracts::{Capability, Mode};
use serde_json::{Value, json};

/// A context whose clock stands still, whose store is a map, and which remembers what a handler did.
pub struct FakeContext {
    facts: CallFacts,
    now: SystemTime,
    seen: Mutex<Seen>,
}

/// What a handler did.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// Lines for the log, with their level.
    pub logs: Vec<(LogLevel, String)>,
    /// Entries for the audit trail.
    pub audits: Vec<(String, Value)>,
    /// Notes on progress.
    pub progress: Vec<String>,
    /// Messages to the client.
    pub messages: Vec<Value>,
    /// The values that were put.
    pub store: BTreeMap<String, Value>,
}

impl FakeContext {
    /// At 2026-01-13T09:00:00Z, in text, with every capability.
    pub fn new() -> Arc<Self> {
        Self::at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_294_800))
    }

    /// At another time.
    pub fn at(now: SystemTime) -> Arc<Self> {
        use Capability::{Calendar, Kb, Moderation, Store, Tools};
        let facts = CallFacts {
            client_id: "client_1".into(),
            mode: Mode::Text,
            call_id: "call_1".into(),
            tool: Arc::new(ToolFacts { id: "tool".into(), version: "1.0.0".into(), idempotent: true }),
            session: Arc::new(SessionFacts {
                id: "session_1".into(),
                is_active: true,
                turn: 1,
                tools_version: "1.0.00000000".into(),
                state: json!({ "isActive": true, "mode": "text" }),
            }),
            clamped: BTreeMap::new(),
            capabilities: [Kb, Calendar, Store, Tools, Moderation].into(),
        };
        Arc::new(Self { facts, now, seen: Mutex::default() })
    }

    /// What the handler did so far.
    pub fn seen(&self) -> Seen {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, call: CapabilityCall) -> Result<Value, CapabilityError> {
        let argument = |index: usize| call.args.get(index).cloned().unwrap_or(Value::Null);
        let key = argument(0).as_str().unwrap_or_default().to_owned();
        let mut seen = self.lock();
        match (call.capability, call.method.as_str()) {
            (Capability::Messaging, "send") => seen.messages.push(argument(0)),
            (Capability::Store, "get") => return Ok(seen.store.get(&key).cloned().unwrap_or(Value::Null)),
            (Capability::Store, "put") => drop(seen.store.insert(key, argument(1))),
            (Capability::Store, "delete") => drop(seen.store.remove(&key)),
            (capability, method) => {
                let message = format!("{capability:?}.{method} is not in this world");
                return Err(CapabilityError::new(CapabilityErrorCode::NotAvailable, message));
            }
        }
        Ok(Value::Null)
    }
}

impl Context for FakeContext {
    fn facts(&self) -> &CallFacts {
        &self.facts
    }

    fn now(&self) -> SystemTime {
        self.now
    }

    fn log(&self, level: LogLevel, text: &str) {
        self.lock().logs.push((level, text.to_owned()));
    }

    fn audit(&self, event: &str, data: Value) {
        self.lock().audits.push((event.to_owned(), data));
    }

    fn progress(&self, text: &str) {
        self.lock().progress.push(text.to_owned());
    }

    fn request(&self, call: CapabilityCall) -> BoxFuture<Result<Value, CapabilityError>> {
        Box::pin(std::future::ready(self.answer(call)))
    }
}
