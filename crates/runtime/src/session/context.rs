//! A handler's world: what it may know, and what it did.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::SystemTime;

use quarterdeck_contracts::handler::{
    BoxFuture, CallFacts, CapabilityCall, CapabilityError, Context, LogLevel, SessionFacts,
};
use quarterdeck_contracts::{Commit, Mode, Overlay};
use serde_json::{Value, json};

use super::admit::{Ancestor, Work};
use super::events::ClientEvent;
use super::{Desk, Inner};

/// How many entries one call may add to the trail, and how many notes on progress it may send.
const MOST_ENTRIES: usize = 100;
/// The longest event name or note that is kept.
const LONGEST_TEXT: usize = 500;

/// The context of one execution. A retry gets a new one, so that nothing of a failed attempt is left.
pub(super) struct CallContext {
    /// Itself, for work that goes on after a request was made.
    pub(super) me: Weak<Self>,
    pub(super) inner: Arc<Inner>,
    pub(super) facts: CallFacts,
    pub(super) writes: bool,
    pub(super) ancestors: Vec<Ancestor>,
    overlay: OnceLock<Arc<Overlay>>,
    pub(super) did: Mutex<Did>,
}

/// What a handler did.
#[derive(Default)]
pub(super) struct Did {
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
    /// Whether dropping all this undoes everything the handler did.
    pub(super) is_contained: bool,
}

impl CallContext {
    pub(super) fn new(inner: Arc<Inner>, work: &Work) -> Arc<Self> {
        let session = inner.session_facts(work.entry.turn);
        let clamped = work
            .clamped
            .iter()
            .map(|clamped| {
                (clamped.parameter.to_owned(), json!({ "asked": clamped.asked, "given": clamped.given }))
            })
            .collect::<BTreeMap<_, _>>();
        let facts = CallFacts {
            client_id: inner.client.clone(),
            mode: inner.mode,
            call_id: work.entry.call_id.clone(),
            // The registry fills in the tool's own part from the definition.
            tool: inner.shared.no_tool.clone(),
            session,
            clamped,
            capabilities: inner.shared.no_capabilities.clone(),
        };
        let mut ancestors = work.ancestors.clone();
        ancestors.push(Ancestor { call_id: work.entry.call_id.clone(), tool: work.entry.tool.clone() });
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            inner,
            facts,
            writes: work.entry.writes,
            ancestors,
            overlay: OnceLock::new(),
            did: Mutex::default(),
        })
    }

    /// The call's own view of the store.
    pub(super) fn overlay(&self) -> Arc<Overlay> {
        self.overlay.get_or_init(|| Arc::new(Overlay::new(self.inner.shared.store.clone()))).clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Did> {
        self.did.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tool this is about.
    pub(super) fn tool(&self) -> &Arc<str> {
        // There is always one: the call itself.
        &self.ancestors[self.ancestors.len() - 1].tool
    }

    /// What the handler wants made real.
    pub(super) fn effects(&self) -> Effects {
        let did = std::mem::take(&mut *self.lock());
        let reaches_network =
            self.inner.snapshot.find(self.tool()).is_some_and(|tool| !tool.metadata().network.is_empty());
        Effects {
            commit: self.overlay.get().map_or_else(Commit::default, |overlay| overlay.take()),
            messages: did.messages,
            blocks: did.blocks,
            is_contained: !did.reached_outside && !reaches_network,
        }
    }

    /// Whether one more entry is within what a call may leave.
    fn one_more(&self) -> bool {
        let mut did = self.lock();
        did.entries += 1;
        did.entries <= MOST_ENTRIES
    }
}

impl Context for CallContext {
    fn facts(&self) -> &CallFacts {
        &self.facts
    }

    fn now(&self) -> SystemTime {
        self.inner.now()
    }

    fn log(&self, level: LogLevel, text: &str) {
        if let Some(watch) = &self.inner.shared.watch {
            watch(&format!("{}: {text}", format!("{level:?}").to_lowercase()));
        }
        let (session, turn) = (&*self.inner.id, self.facts.session.turn);
        let (call, tool) = (&*self.facts.call_id, &**self.tool());
        match level {
            LogLevel::Debug => tracing::debug!(session, turn, call, tool, text, "handler"),
            LogLevel::Info => tracing::info!(session, turn, call, tool, text, "handler"),
            LogLevel::Warn => tracing::warn!(session, turn, call, tool, text, "handler"),
            LogLevel::Error => tracing::error!(session, turn, call, tool, text, "handler"),
        }
    }

    fn audit(&self, event: &str, data: Value) {
        if !self.one_more() {
            return;
        }
        if let Some(watch) = &self.inner.shared.watch {
            watch(&format!("audit {event}: {data}"));
        }
        let mut fields = self.inner.who_and_where();
        fields.insert("callId".into(), json!(self.facts.call_id));
        fields.insert("toolId".into(), json!(self.tool()));
        fields.insert("data".into(), data);
        // A handler's own names must not pass for ours.
        let event = format!("handler.{}", shortened(event));
        self.inner.record(&event, fields);
    }

    fn progress(&self, text: &str) {
        if !self.one_more() {
            return;
        }
        if let Some(watch) = &self.inner.shared.watch {
            watch(&format!("progress: {text}"));
        }
        let event = ClientEvent::Progress { call_id: self.facts.call_id.clone(), text: shortened(text) };
        let mut desk = self.inner.lock();
        if desk.connection.is_some() {
            self.inner.tell(&mut desk, event);
        }
    }

    fn request(&self, call: CapabilityCall) -> BoxFuture<Result<Value, CapabilityError>> {
        self.use_power(call)
    }
}

impl Inner {
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
        let voices = self.shared.voices.changes();
        let mut desk = self.lock();
        if let Some((made, facts)) = &desk.facts
            && *made == voices
        {
            return facts.clone();
        }
        let facts = Arc::new(self.make_facts(&desk));
        desk.facts = Some((voices, facts.clone()));
        facts
    }

    fn make_facts(&self, desk: &Desk) -> SessionFacts {
        let state = desk.controller.state();
        let mut copy = json!(state);
        let speaks = self.mode == Mode::Voice && state.is_active;
        copy["voiceActive"] = (speaks || self.shared.voices.speaks(&self.client)).into();
        SessionFacts {
            id: self.id.to_string(),
            is_active: state.is_active,
            turn: desk.ledger.turn_number(),
            tools_version: self.snapshot.version().to_owned(),
            state: copy,
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}
