//! A handler's world: what it may know, and what it has done.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::SystemTime;

use quarterdeck_contracts::handler::{
    BoxFuture, CallFacts, CapabilityCall, CapabilityError, Context, LogLevel, SessionFacts,
};
use quarterdeck_contracts::{Commit, Mode, Overlay};
use serde_json::{Value, json};

use super::admit::{Ancestor, ToolCall};
use super::events::ClientEvent;
use super::{SessionCore, SessionData};

/// How many entries one call may add to the trail, and how many notes on progress it may send.
const MAX_ENTRIES: usize = 100;
/// The longest event name or note that is kept.
const MAX_TEXT_CHARS: usize = 500;

/// The context of one execution. A retry gets a new one, so that nothing of a failed attempt is left.
pub(super) struct CallContext {
    /// Itself, for work that goes on after a request was made.
    pub(super) me: Weak<Self>,
    pub(super) core: Arc<SessionCore>,
    pub(super) facts: CallFacts,
    pub(super) writes: bool,
    pub(super) ancestors: Vec<Ancestor>,
    overlay: OnceLock<Arc<Overlay>>,
    pub(super) pending: Mutex<PendingEffects>,
}

/// What a handler has done so far.
#[derive(Default)]
pub(super) struct PendingEffects {
    pub(super) messages: Vec<Value>,
    pub(super) blocks: bool,
    /// How long, in seconds.
    pub(super) block_seconds: u64,
    /// Whether it did something that cannot be taken back by dropping the overlay.
    pub(super) reached_outside: bool,
    pub(super) entries: usize,
}

/// What must be made real with the call's record, or not at all.
pub(super) struct Effects {
    pub(super) commit: Commit,
    pub(super) messages: Vec<Value>,
    pub(super) blocks: bool,
    /// Whether dropping all this undoes everything that the handler has done.
    pub(super) is_contained: bool,
}

impl CallContext {
    pub(super) fn new(core: Arc<SessionCore>, call: &ToolCall) -> Arc<Self> {
        let session = core.session_facts(call.entry.turn);
        let clamped = call
            .clamped
            .iter()
            .map(|clamped| {
                (clamped.parameter.to_owned(), json!({ "asked": clamped.asked, "given": clamped.given }))
            })
            .collect::<BTreeMap<_, _>>();
        let facts = CallFacts {
            client_id: core.client.clone(),
            mode: core.mode,
            call_id: call.entry.call_id.clone(),
            // The registry fills in the tool's own part from the definition.
            tool: core.shared.no_tool.clone(),
            session,
            clamped,
            capabilities: core.shared.no_capabilities.clone(),
        };
        let mut ancestors = call.ancestors.clone();
        ancestors.push(Ancestor { call_id: call.entry.call_id.clone(), tool: call.entry.tool.clone() });
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            core,
            facts,
            writes: call.entry.writes,
            ancestors,
            overlay: OnceLock::new(),
            pending: Mutex::default(),
        })
    }

    /// The call's own view of the store.
    pub(super) fn overlay(&self) -> Arc<Overlay> {
        self.overlay.get_or_init(|| Arc::new(Overlay::new(self.core.shared.store.clone()))).clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, PendingEffects> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tool this is about.
    pub(super) fn tool(&self) -> &Arc<str> {
        // There is always one: the call itself.
        &self.ancestors[self.ancestors.len() - 1].tool
    }

    /// What the handler wants made real.
    pub(super) fn effects(&self) -> Effects {
        let pending = std::mem::take(&mut *self.lock());
        let reaches_network =
            self.core.snapshot.find(self.tool()).is_some_and(|tool| !tool.metadata().network.is_empty());
        Effects {
            commit: self.overlay.get().map_or_else(Commit::default, |overlay| overlay.take()),
            messages: pending.messages,
            blocks: pending.blocks,
            is_contained: !pending.reached_outside && !reaches_network,
        }
    }

    /// Whether one more entry is within what a call may leave.
    fn count_entry(&self) -> bool {
        let mut pending = self.lock();
        pending.entries += 1;
        pending.entries <= MAX_ENTRIES
    }
}

impl Context for CallContext {
    fn facts(&self) -> &CallFacts {
        &self.facts
    }

    fn now(&self) -> SystemTime {
        self.core.now()
    }

    fn log(&self, level: LogLevel, text: &str) {
        if let Some(watch) = &self.core.shared.watch {
            watch(&format!("{}: {text}", format!("{level:?}").to_lowercase()));
        }
        let (session, turn) = (&*self.core.id, self.facts.session.turn);
        let (call, tool) = (&*self.facts.call_id, &**self.tool());
        match level {
            LogLevel::Debug => tracing::debug!(session, turn, call, tool, text, "handler"),
            LogLevel::Info => tracing::info!(session, turn, call, tool, text, "handler"),
            LogLevel::Warn => tracing::warn!(session, turn, call, tool, text, "handler"),
            LogLevel::Error => tracing::error!(session, turn, call, tool, text, "handler"),
        }
    }

    fn audit(&self, event: &str, data: Value) {
        if !self.count_entry() {
            return;
        }
        if let Some(watch) = &self.core.shared.watch {
            watch(&format!("audit {event}: {data}"));
        }
        let mut fields = self.core.session_fields();
        fields.insert("callId".into(), json!(self.facts.call_id));
        fields.insert("toolId".into(), json!(self.tool()));
        fields.insert("data".into(), data);
        // A handler's own names must not pass for ours.
        let event = format!("handler.{}", shortened(event));
        self.core.record(&event, fields);
    }

    fn progress(&self, text: &str) {
        if !self.count_entry() {
            return;
        }
        if let Some(watch) = &self.core.shared.watch {
            watch(&format!("progress: {text}"));
        }
        let event = ClientEvent::Progress { call_id: self.facts.call_id.clone(), text: shortened(text) };
        let mut data = self.core.lock();
        if data.connection.is_some() {
            self.core.push_event(&mut data, event);
        }
    }

    fn request(&self, call: CapabilityCall) -> BoxFuture<Result<Value, CapabilityError>> {
        self.call_capability(call)
    }
}

impl SessionCore {
    /// What handlers are told about the session. Shared between calls until something changes.
    fn session_facts(&self, turn: u64) -> Arc<SessionFacts> {
        let facts = self.present_facts();
        if facts.turn == turn {
            return facts;
        }
        // A call that had to wait belongs to the turn that asked for it.
        Arc::new(SessionFacts { turn, ..(*facts).clone() })
    }

    fn present_facts(&self) -> Arc<SessionFacts> {
        let voice_sessions = self.shared.voice_sessions.changes();
        let mut data = self.lock();
        if let Some((made, facts)) = &data.facts
            && *made == voice_sessions
        {
            return facts.clone();
        }
        let facts = Arc::new(self.make_facts(&data));
        data.facts = Some((voice_sessions, facts.clone()));
        facts
    }

    fn make_facts(&self, data: &SessionData) -> SessionFacts {
        let state = data.controller.state();
        let mut copy = json!(state);
        let speaks = self.mode == Mode::Voice && state.is_active;
        copy["voiceActive"] = (speaks || self.shared.voice_sessions.has_open(&self.client)).into();
        SessionFacts {
            id: self.id.to_string(),
            is_active: state.is_active,
            turn: data.ledger.turn_number(),
            tools_version: self.snapshot.version().to_owned(),
            state: copy,
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}
