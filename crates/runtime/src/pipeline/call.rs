//! The call that the steps of the pipeline work on.

use std::sync::Arc;

use quarterdeck_contracts::handler::CancellationToken;
use quarterdeck_contracts::telemetry::SpanOrigin;
use quarterdeck_contracts::{Commit, RateLimit, SideEffects, ToolError, ToolResponse};
use serde_json::{Map, Value};

use super::tool_span::{CallEnd, ToolSpan};
use crate::call::Call;
use crate::envelope::{cancelled, internal_fault, outcome_unknown, replayed};
use crate::gates::{Clamped, Duplicate, Trace};
use crate::latency::Schedule;
use crate::ledger::{CallContent, CallIdentity, Entry};
use crate::session::{AuditRecord, SessionCore, SessionData};
use crate::tasks::Task;

/// One call of a model. How far it is, from admitted to heard, is the phase of its entry.
pub(crate) struct ToolCall {
    /// Its entry in the ledger, which it is put into when it is admitted.
    pub(crate) entry: Arc<Entry>,
    /// As the model wrote them until the gates have passed; then as they will be run: clamped, checked and filled in.
    pub(crate) args: Value,
    /// Whether checking the arguments was left to another thread.
    pub(crate) has_slow_arguments: bool,
    pub(crate) clamped: Vec<Clamped>,
    pub(crate) rate_limit: Option<RateLimit>,
    pub(crate) trace: Trace,
    /// The calls that led to this one, the outermost first.
    pub(crate) ancestors: Vec<Ancestor>,
    pub(crate) approval: Approval,
    /// What the handler's precheck saw, once the user has approved. Boxed, because few calls have it.
    pub(crate) seen: Option<Box<Value>>,
    /// How it is waited for, if it is a voice call.
    pub(crate) schedule: Option<Schedule>,
    /// What it goes on as, if its tool may run in the background.
    pub(crate) task: Option<Arc<Task>>,
    /// Ends with the call.
    pub(crate) span: ToolSpan,
}

/// A tool that called another.
#[derive(Debug, Clone)]
pub(crate) struct Ancestor {
    pub(crate) call_id: Arc<str>,
    pub(crate) tool: Arc<str>,
}

/// Whether the user has to approve a call.
pub(crate) enum Approval {
    NotNeeded,
    /// The user is to be asked, with the reason that they are told.
    Pending {
        reason: Option<String>,
    },
    /// Approved. The commit redeems the confirmation, together with the mark that the call has started. Boxed, because few calls
    /// have one.
    Granted(Box<Commit>),
}

impl ToolCall {
    /// A call as it came in, which no gate has seen.
    pub(super) fn new(
        core: &SessionCore,
        data: &mut SessionData,
        call: Call,
        ancestors: Vec<Ancestor>,
    ) -> Self {
        let call_id = data.next_call_id(&call);
        let provider_id = call.stable_id().map(Arc::from);
        let Call { name, args, origin, .. } = call;
        let args = if args.is_null() { Value::Object(Map::new()) } else { args };
        let content = CallContent::new(&name, &args);
        // Only a tool that means each of several equal calls is admitted with an equal one before it.
        let nth = match data.ledger.duplicate(&content) {
            Duplicate::No => 0,
            Duplicate::InTurn | Duplicate::UndeliveredWrite => data.ledger.turn().seen(&content),
        };
        let tool = core.snapshot.find(&name);
        let entry = Entry::new(CallIdentity {
            call_id,
            provider_id,
            nth,
            writes: tool.is_some_and(|tool| tool.metadata().side_effects == SideEffects::Writes),
            tool: tool.map_or_else(|| name.into(), |tool| tool.facts.id.clone()),
            content,
            turn: data.ledger.turn_number(),
        });
        let span = ToolSpan::begin(core, &entry, origin);
        Self {
            entry,
            args,
            has_slow_arguments: false,
            clamped: Vec::new(),
            rate_limit: None,
            trace: Trace::default(),
            ancestors,
            approval: Approval::NotNeeded,
            seen: None,
            schedule: None,
            task: None,
            span,
        }
    }

    /// A stored call that the user has approved.
    pub(crate) fn approved(
        entry: Arc<Entry>,
        args: Value,
        seen: Value,
        rate_limit: Option<RateLimit>,
        redemption: Commit,
        span: ToolSpan,
    ) -> Self {
        Self {
            trace: entry.trace().unwrap_or_default().approved(),
            entry,
            args,
            // Not known any more; a copy of the arguments for each attempt is right in either case.
            has_slow_arguments: true,
            clamped: Vec::new(),
            rate_limit,
            ancestors: Vec::new(),
            approval: Approval::Granted(Box::new(redemption)),
            seen: (!seen.is_null()).then(|| Box::new(seen)),
            schedule: None,
            task: None,
            span,
        }
    }

    /// Why the user is asked about it, in words for the user.
    pub(crate) fn confirmation_reason(&self) -> Option<String> {
        match &self.approval {
            Approval::Pending { reason } => reason.clone(),
            Approval::NotNeeded | Approval::Granted(_) => None,
        }
    }

    /// A task that an earlier process has begun.
    pub(crate) fn resumed(core: &SessionCore, entry: Arc<Entry>, args: Value, task: Arc<Task>) -> Self {
        entry.start();
        let span = ToolSpan::begin(core, &entry, SpanOrigin::default());
        let approved = Self::approved(entry, args, Value::Null, None, Commit::default(), span);
        Self { trace: Trace::default(), approval: Approval::NotNeeded, task: Some(task), ..approved }
    }

    /// The same call, to be answered while its handler goes on.
    pub(super) fn to_answer(&self) -> Self {
        Self {
            entry: self.entry.clone(),
            args: self.args.clone(),
            has_slow_arguments: self.has_slow_arguments,
            clamped: self.clamped.clone(),
            rate_limit: None,
            trace: self.trace.clone(),
            ancestors: self.ancestors.clone(),
            approval: Approval::NotNeeded,
            seen: self.seen.clone(),
            schedule: self.schedule,
            task: self.task.clone(),
            // It ends with the handler.
            span: ToolSpan::default(),
        }
    }

    /// Whether it should stop.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancellation().is_cancelled()
    }

    /// Cancelled when it should stop.
    pub(super) fn cancellation(&self) -> &CancellationToken {
        self.task.as_ref().map_or_else(|| self.entry.cancellation(), |task| &task.cancellation)
    }

    /// Says in its span what the call came to.
    pub(super) fn record_end(&mut self, core: &SessionCore, response: &ToolResponse) {
        let end = CallEnd { tool: &self.entry.tool, args: &self.args, trace: &self.trace, response };
        self.span.record_end(core, end);
    }

    /// Writes the call to the audit log and into its span. `entry` is the one that its answer belongs to, if there is one.
    pub(crate) fn audit(
        &mut self,
        core: &SessionCore,
        entry: Option<&Entry>,
        response: &ToolResponse,
        how: Option<&'static str>,
    ) {
        self.record_end(core, response);
        core.audit_call(&AuditRecord {
            call_id: &self.entry.call_id,
            turn: self.entry.turn,
            entry,
            tool: &self.entry.tool,
            args: &self.args,
            trace: &self.trace,
            response,
            how,
        });
    }
}

pub(super) struct CallOutcome {
    pub(super) response: Arc<ToolResponse>,
    /// Whether its handler ran. Otherwise it was refused, cancelled, or answered from the record.
    pub(super) is_executed: bool,
    /// The farewell to the client that it has blocked, if it has.
    pub(super) block_message: Option<String>,
    /// Whether its handler goes on.
    pub(super) is_continued: bool,
}

impl CallOutcome {
    pub(super) fn executed(response: ToolResponse, block_message: Option<String>) -> Self {
        Self { response: Arc::new(response), is_executed: true, block_message, is_continued: false }
    }

    pub(super) fn not_executed(core: &SessionCore, call: &ToolCall, error: ToolError) -> Self {
        let response = core.refusal(&call.entry.tool, error);
        Self { response, is_executed: false, block_message: None, is_continued: false }
    }

    pub(super) fn cancelled(core: &SessionCore, call: &ToolCall) -> Self {
        Self::not_executed(core, call, cancelled(&call.entry.tool))
    }

    pub(super) fn recorded(call: &ToolCall, envelope: &ToolResponse) -> Self {
        let response = Arc::new(replayed(envelope, call.entry.turn));
        Self { response, is_executed: false, block_message: None, is_continued: false }
    }

    /// It goes on as a task.
    pub(super) fn continued(task: &Task) -> Self {
        let response = task.started_response.clone();
        Self { response, is_executed: false, block_message: None, is_continued: true }
    }

    /// Our own code has failed. The write, if it was one, may or may not have happened.
    pub(super) fn panicked(core: &SessionCore, call: &ToolCall) -> Self {
        tracing::error!(session = %core.id, call = %call.entry.call_id, "call panicked outside its handler");
        let error = match core.snapshot.find(&call.entry.tool) {
            Some(tool) => internal_fault(tool.metadata()),
            None => outcome_unknown(&call.entry.tool),
        };
        Self::not_executed(core, call, error)
    }
}
