//! A world for calls that come from the terminal and from case files: one client, one session, a store in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use jiff::Timestamp;
use quarterdeck_contracts::handler::{
    BoxFuture, CallFacts, CapabilityCall, CapabilityError, CapabilityErrorCode, Context, LogLevel,
    SessionFacts, ToolFacts,
};
use quarterdeck_contracts::{
    Capability, Case, Confirmation, ConfirmationAnswer, ErrorType, Mode, ToolError, ToolResponse,
};
use quarterdeck_runtime::{LoadedTool, Snapshot};
use serde_json::{Value, json};

use crate::terminal::say;

/// One client and one session.
pub(crate) struct World {
    mode: Mode,
    now: Option<SystemTime>,
    turn: u64,
    calls: u64,
    store: Arc<Mutex<BTreeMap<String, Value>>>,
    speaks: bool,
}

impl Default for World {
    fn default() -> Self {
        Self { mode: Mode::Text, now: None, turn: 1, calls: 0, store: Arc::default(), speaks: false }
    }
}

impl World {
    /// The world that a case describes.
    pub(crate) fn of(case: &Case) -> Result<Self, String> {
        let now = match &case.now {
            None => None,
            Some(text) => {
                let now: Timestamp =
                    text.parse().map_err(|_| format!("`now` is {text:?}, not an RFC 3339 time"))?;
                Some(SystemTime::from(now))
            }
        };
        if case.given.is_some() {
            return Err(
                "`given` needs a knowledge base or a calendar, which this version does not have".into()
            );
        }
        Ok(Self { mode: case.mode.unwrap_or(Mode::Text), now, ..Self::default() })
    }

    /// A world for someone at a terminal, who sees what a handler logs.
    pub(crate) fn at_terminal(mode: Mode) -> Self {
        Self { mode, speaks: true, ..Self::default() }
    }

    pub(crate) fn begin_turn(&mut self) {
        self.turn += 1;
    }

    /// Runs one call in this world, in which the person answers a request for confirmation with `answer`.
    pub(crate) async fn call(
        &mut self,
        snapshot: &Snapshot,
        tool: &str,
        args: Value,
        answer: Option<ConfirmationAnswer>,
    ) -> ToolResponse {
        self.calls += 1;
        let context = Arc::new(CallContext {
            facts: self.facts(tool, snapshot.version()),
            now: self.now,
            store: self.store.clone(),
            speaks: self.speaks,
        });
        match snapshot.find(tool).and_then(|found| self.refusal(found, &args, answer)) {
            Some(refusal) => snapshot.refuse(tool, refusal, context.now()),
            None => snapshot.execute(tool, args, context).await,
        }
    }

    fn refusal(
        &self,
        tool: &LoadedTool,
        args: &Value,
        answer: Option<ConfirmationAnswer>,
    ) -> Option<ToolError> {
        let metadata = tool.metadata();
        let id = &metadata.tool_id;
        let refuse = |kind, message| {
            Some(ToolError { partial_side_effects: Some(false), ..ToolError::new(kind, message) })
        };
        if !metadata.allowed_modes.contains(&self.mode) {
            let mode = if self.mode == Mode::Voice { "voice" } else { "text" };
            return refuse(ErrorType::ModeRestricted, format!("{id} is not available in {mode} mode."));
        }
        // Nobody is asked to approve a call that could not run.
        if let Err(refusal) = tool.validate(&mut args.clone()) {
            return Some(refusal);
        }
        match (metadata.requires_confirmation, answer) {
            (Confirmation::Never, _) | (_, Some(ConfirmationAnswer::Approve)) => None,
            (_, Some(ConfirmationAnswer::Deny)) => {
                refuse(ErrorType::ConfirmationDenied, format!("The person did not approve {id}."))
            }
            (_, None) => {
                refuse(ErrorType::ConfirmationRequired, format!("A person must approve {id} first."))
            }
        }
    }

    fn facts(&self, tool: &str, version: &str) -> CallFacts {
        CallFacts {
            client_id: "terminal".into(),
            mode: self.mode,
            call_id: format!("call_{}", self.calls).into(),
            // The registry fills in the rest from the definition.
            tool: Arc::new(ToolFacts { id: tool.to_owned(), version: String::new(), idempotent: false }),
            session: Arc::new(SessionFacts {
                id: "terminal".into(),
                is_active: true,
                turn: self.turn,
                tools_version: version.to_owned(),
                state: json!({ "isActive": true, "mode": self.mode }),
            }),
            clamped: BTreeMap::new(),
            capabilities: Arc::new([]),
        }
    }
}

struct CallContext {
    facts: CallFacts,
    now: Option<SystemTime>,
    store: Arc<Mutex<BTreeMap<String, Value>>>,
    speaks: bool,
}

impl CallContext {
    fn say(&self, text: &str) {
        if self.speaks {
            say(text);
        }
    }

    fn answer(&self, call: &CapabilityCall) -> Result<Value, CapabilityError> {
        let argument = |index: usize| call.args.get(index).cloned().unwrap_or(Value::Null);
        let key = || match argument(0) {
            // Values belong to one tool for one client.
            Value::String(key) => Ok(format!("{}/{key}", self.facts.tool.id)),
            other => {
                let message = format!("a key is a text, not {other}");
                Err(CapabilityError::new(CapabilityErrorCode::InvalidArgument, message))
            }
        };
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        match (call.capability, call.method.as_str()) {
            (Capability::Messaging, "send") => self.say(&format!("message: {}", argument(0))),
            (Capability::Store, "get") => return Ok(store.get(&key()?).cloned().unwrap_or(Value::Null)),
            (Capability::Store, "put") => drop(store.insert(key()?, argument(1))),
            (Capability::Store, "delete") => drop(store.remove(&key()?)),
            (capability, _) => {
                let message = format!("{} is not available here", capability.as_str());
                return Err(CapabilityError::new(CapabilityErrorCode::NotAvailable, message));
            }
        }
        Ok(Value::Null)
    }
}

impl Context for CallContext {
    fn facts(&self) -> &CallFacts {
        &self.facts
    }

    fn now(&self) -> SystemTime {
        self.now.unwrap_or_else(SystemTime::now)
    }

    fn log(&self, level: LogLevel, text: &str) {
        self.say(&format!("{}: {text}", format!("{level:?}").to_lowercase()));
    }

    fn audit(&self, event: &str, data: Value) {
        self.say(&format!("audit {event}: {data}"));
    }

    fn progress(&self, text: &str) {
        self.say(&format!("progress: {text}"));
    }

    fn request(&self, call: CapabilityCall) -> BoxFuture<Result<Value, CapabilityError>> {
        Box::pin(std::future::ready(self.answer(&call)))
    }
}
