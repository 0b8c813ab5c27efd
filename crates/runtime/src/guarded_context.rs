//! Keeps a handler to what its definition names.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use quarterdeck_contracts::handler::{
    BoxFuture, CallFacts, CancellationToken, CapabilityCall, CapabilityError, Context, HandlerFault, LogLevel,
};
use quarterdeck_contracts::telemetry::TraceContext;
use serde_json::Value;

use crate::redact::Secrets;

/// A context that refuses the capabilities that the tool did not declare, and keeps what is sensitive out of log and
/// log even when the handler writes it there.
pub(crate) struct GuardedContext {
    inner: Arc<dyn Context>,
    /// Where they differ from those of the context within.
    facts: Option<CallFacts>,
    secrets: Secrets,
    signal: CancellationToken,
    /// The host knows more of a fault than what is told of its error afterwards.
    is_fault_reported: AtomicBool,
}

impl GuardedContext {
    /// `signal` is cancelled when this execution should stop.
    pub(crate) fn around(
        inner: Arc<dyn Context>,
        facts: Option<CallFacts>,
        secrets: Secrets,
        signal: CancellationToken,
    ) -> Arc<dyn Context> {
        Arc::new(Self { inner, facts, secrets, signal, is_fault_reported: AtomicBool::new(false) })
    }
}

impl Context for GuardedContext {
    fn facts(&self) -> &CallFacts {
        self.facts.as_ref().unwrap_or_else(|| self.inner.facts())
    }

    fn now(&self) -> SystemTime {
        self.inner.now()
    }

    fn log(&self, level: LogLevel, text: &str) {
        self.inner.log(level, &self.secrets.hide(text));
    }

    fn report_fault(&self, fault: HandlerFault) {
        if !self.is_fault_reported.swap(true, Ordering::Relaxed) {
            self.inner.report_fault(fault.map_texts(|text| self.secrets.hide(text)));
        }
    }

    fn audit(&self, event: &str, mut data: Value) {
        self.secrets.hide_in(&mut data);
        self.inner.audit(&self.secrets.hide(event), data);
    }

    fn progress(&self, text: &str) {
        self.inner.progress(text);
    }

    fn emit(&self, chunk: Value) -> bool {
        self.inner.emit(chunk)
    }

    fn signal(&self) -> CancellationToken {
        self.signal.clone()
    }

    fn mark_outside_effect(&self) {
        self.inner.mark_outside_effect();
    }

    fn has_outside_effect(&self) -> bool {
        self.inner.has_outside_effect()
    }

    fn span(&self) -> Option<TraceContext> {
        self.inner.span()
    }

    fn request(&self, call: CapabilityCall) -> BoxFuture<Result<Value, CapabilityError>> {
        if call.capability.is_always_granted() || self.facts().capabilities.contains(&call.capability) {
            return self.inner.request(call);
        }
        let line = format!("\"capabilities\": [\"{}\"]", call.capability.as_str());
        Box::pin(std::future::ready(Err(CapabilityError::not_declared(&line))))
    }
}
