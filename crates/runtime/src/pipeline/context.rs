//! What a handler may know and do during one execution, and what it has done.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Instant, SystemTime};

use quarterdeck_contracts::handler::{
    BoxFuture, CallFacts, CancellationToken, CapabilityCall, CapabilityError, Context, HandlerFault, LogLevel,
};
use quarterdeck_contracts::telemetry::TraceContext;
use quarterdeck_contracts::{Commit, Overlay};
use serde_json::{Value, json};

use super::call::{Ancestor, ToolCall};
use super::partial_results::PartialResults;
use crate::audit::HANDLER_SOURCE;
use crate::session::{ClientEvent, SessionCore};
use crate::tasks::Task;

/// How many audit entries and progress notes one call may make, together.
const MAX_ENTRIES: usize = 100;
/// How much is kept of an event name or note.
const MAX_TEXT_CHARS: usize = 500;

/// The context of one execution. A retry gets a new one, so that nothing of a failed attempt is left.
pub(super) struct CallContext {
    /// Itself, for work that goes on after a request was made.
    pub(super) me: Weak<Self>,
    pub(super) core: Arc<SessionCore>,
    pub(super) facts: CallFacts,
    pub(super) writes: bool,
    pub(super) ancestors: Vec<Ancestor>,
    /// See [`CapabilityScope::call_key`](quarterdeck_contracts::handler::CapabilityScope::call_key).
    pub(super) call_key: Arc<str>,
    signal: CancellationToken,
    /// The span of the call.
    pub(super) span: Option<TraceContext>,
    /// What the call goes on as, if it may.
    task: Option<Arc<Task>>,
    overlay: OnceLock<Arc<Overlay>>,
    pending: Mutex<PendingEffects>,
}

/// What a handler has done so far.
#[derive(Default)]
pub(super) struct PendingEffects {
    pub(super) messages: Vec<Value>,
    /// The farewell to the client that it blocks.
    pub(super) block_message: Option<String>,
    pub(super) block_seconds: u64,
    /// Whether it did something that cannot be taken back by dropping the overlay.
    pub(super) reached_outside: bool,
    pub(super) entries: usize,
    partial: PartialResults,
}

/// What must be made real with the call's record, or not at all.
pub(super) struct Effects {
    pub(super) commit: Commit,
    pub(super) messages: Vec<Value>,
    /// The farewell to the client that is blocked, if one is.
    pub(super) block_message: Option<String>,
    /// Whether dropping all this undoes everything that the handler has done.
    pub(super) is_contained: bool,
}

impl CallContext {
    pub(super) fn new(core: Arc<SessionCore>, call: &ToolCall) -> Arc<Self> {
        Self::with_writes(core, call, call.entry.writes)
    }

    /// For a look at a call before it is approved, which changes nothing.
    pub(super) fn for_precheck(core: Arc<SessionCore>, call: &ToolCall) -> Arc<Self> {
        Self::with_writes(core, call, false)
    }

    fn with_writes(core: Arc<SessionCore>, call: &ToolCall, writes: bool) -> Arc<Self> {
        let session = core.facts_at(call.entry.turn);
        let clamped = call
            .clamped
            .iter()
            .map(|clamped| {
                (clamped.parameter.to_owned(), json!({ "asked": clamped.asked, "given": clamped.given }))
            })
            .collect::<BTreeMap<_, _>>();
        let (tool, blank) = (core.snapshot.find(&call.entry.tool), &core.shared.blank_tool);
        let facts = CallFacts {
            client_id: core.client.clone(),
            mode: core.mode,
            call_id: call.entry.call_id.clone(),
            tool: tool.map_or_else(|| blank.facts.clone(), |tool| tool.facts.clone()),
            session,
            clamped,
            capabilities: tool.map_or_else(|| blank.capabilities.clone(), |tool| tool.capabilities.clone()),
            seen: call.seen.as_deref().cloned().unwrap_or_default(),
        };
        let mut ancestors = call.ancestors.clone();
        ancestors.push(Ancestor { call_id: call.entry.call_id.clone(), tool: call.entry.tool.clone() });
        // Only a write needs it, and making it costs a hash.
        let call_key = match writes {
            true => format!("{}/{}", core.id, call.entry.key()).into(),
            false => core.id.clone(),
        };
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            core,
            facts,
            writes,
            ancestors,
            call_key,
            signal: call.cancellation().clone(),
            span: call.span.context(),
            task: call.task.clone(),
            overlay: OnceLock::new(),
            pending: Mutex::default(),
        })
    }

    /// The call's own view of the store.
    pub(super) fn store_overlay(&self) -> Arc<Overlay> {
        self.overlay.get_or_init(|| Arc::new(Overlay::new(self.core.shared.store.clone()))).clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, PendingEffects> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tool(&self) -> &Arc<str> {
        // There is always one: the call itself.
        &self.ancestors[self.ancestors.len() - 1].tool
    }

    pub(super) fn take_effects(&self) -> Effects {
        let pending = std::mem::take(&mut *self.lock());
        let reaches_network =
            self.core.snapshot.find(self.tool()).is_some_and(|tool| !tool.metadata().network.is_empty());
        Effects {
            commit: self.overlay.get().map_or_else(Commit::default, |overlay| overlay.take()),
            messages: pending.messages,
            block_message: pending.block_message,
            is_contained: !pending.reached_outside && !reaches_network,
        }
    }

    /// Shows something to the client while it is connected. It never waits: an older one that was not read is replaced.
    fn show(&self, event: ClientEvent) {
        let mut data = self.core.lock();
        if data.connection.current.is_some() {
            self.core.push_event(&mut data, event);
        }
    }

    /// Whether one more entry is within the limit.
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

    fn mark_outside_effect(&self) {
        self.lock().reached_outside = true;
    }

    fn has_outside_effect(&self) -> bool {
        self.lock().reached_outside
    }

    fn now(&self) -> SystemTime {
        self.core.now()
    }

    fn log(&self, level: LogLevel, text: &str) {
        if let Some(log_sink) = &self.core.shared.site.log_sink {
            log_sink(&format!("{}: {text}", format!("{level:?}").to_lowercase()));
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

    fn report_fault(&self, fault: HandlerFault) {
        let (session, turn) = (&*self.core.id, self.facts.session.turn);
        let (call, tool) = (&*self.facts.call_id, &**self.tool());
        let hint = fault.hint.as_deref();
        tracing::debug!(session, turn, call, tool, fault = %fault, hint, "handler fault");
        self.core.set_fault(fault);
    }

    fn audit(&self, event: &str, data: Value) {
        if !self.count_entry() {
            return;
        }
        if let Some(log_sink) = &self.core.shared.site.log_sink {
            log_sink(&format!("audit {event}: {data}"));
        }
        let mut fields = self.core.session_fields();
        fields.insert("callId".into(), json!(self.facts.call_id));
        fields.insert("toolId".into(), json!(self.tool()));
        fields.insert("data".into(), data);
        // It is a handler's own name, which must not pass for one of ours.
        fields.insert("source".into(), HANDLER_SOURCE.into());
        self.core.audit(&shortened(event), fields);
    }

    fn progress(&self, text: &str) {
        if !self.count_entry() {
            return;
        }
        if let Some(log_sink) = &self.core.shared.site.log_sink {
            log_sink(&format!("progress: {text}"));
        }
        let text = shortened(text);
        if let Some(task) = &self.task {
            task.set_progress(&text);
            self.core.share_progress(task);
        }
        self.show(ClientEvent::Progress { call_id: self.facts.call_id.clone(), text });
    }

    fn emit(&self, chunk: Value) -> bool {
        // In a statement of its own: the session's lock is not taken under this one.
        let refusal = self.lock().partial.admit(&chunk, Instant::now());
        if let Some(refusal) = refusal {
            if refusal.is_first {
                self.log(LogLevel::Warn, refusal.reason);
            }
            return false;
        }
        if let Some(log_sink) = &self.core.shared.site.log_sink {
            log_sink(&format!("partial: {chunk}"));
        }
        if let Some(task) = &self.task {
            task.set_partial(&chunk);
            self.core.share_progress(task);
        }
        let response = Arc::new(self.core.snapshot.succeed(self.tool(), chunk, self.core.now()));
        self.show(ClientEvent::Partial { call_id: self.facts.call_id.clone(), response });
        true
    }

    fn signal(&self) -> CancellationToken {
        self.signal.clone()
    }

    fn span(&self) -> Option<TraceContext> {
        self.span
    }

    fn request(&self, call: CapabilityCall) -> BoxFuture<Result<Value, CapabilityError>> {
        self.call_capability(call)
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}
