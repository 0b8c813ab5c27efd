//! From a model's call to what will be done about it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarterdeck_contracts::{Category, ErrorType, RateLimit, SideEffects, ToolError, ToolResponse};
use serde_json::Value;

use super::audit::AuditRecord;
use super::rows::refusal_key;
use super::{SessionCore, SessionData};
use crate::call::Call;
use crate::envelope::refusal_error;
use crate::gates::{
    Allowed, CheckedArguments, Clamped, Facts, RecordedAnswer, Redelivery, Subject, ToolView, Trace, Verdict,
    judge, reads_foreign_text, uses_budget,
};
use crate::ledger::{CallIdentity, Entry, KnownCall, content};
use crate::registry::LoadedTool;

/// What will be done about a call.
pub(super) enum Plan {
    /// Nothing: this is the answer.
    Refused(Arc<ToolResponse>),
    /// Nothing: it shares the answer of another.
    Joined(Arc<Entry>),
    /// It runs.
    Run(ToolCall),
    /// A person is asked.
    Ask(ToolCall),
}

/// An admitted call.
pub(super) struct ToolCall {
    pub(super) entry: Arc<Entry>,
    /// As they will be run: clamped, checked and filled in.
    pub(super) args: Value,
    /// Whether judging the arguments was left to another thread.
    pub(super) has_slow_arguments: bool,
    pub(super) clamped: Vec<Clamped>,
    pub(super) rate_limit: Option<RateLimit>,
    pub(super) trace: Trace,
    /// The calls that led to this one, the outermost first.
    pub(super) ancestors: Vec<Ancestor>,
    /// The confirmation that it uses up.
    pub(super) redeems: Option<super::resolve::RedemptionCommit>,
}

/// A tool that called another.
#[derive(Debug, Clone)]
pub(super) struct Ancestor {
    pub(super) call_id: Arc<str>,
    pub(super) tool: Arc<str>,
}

/// A call that was planned, with the name it goes by.
pub(super) struct Planned {
    pub(super) call_id: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) plan: Plan,
    /// What the gates said of a call that has no entry of its own.
    pub(super) trace: Option<Trace>,
}

impl SessionCore {
    /// Judges one call and enters it into the ledger. Everything happens under the lock, so that calls of a batch see
    /// each other and two batches do not see half of one.
    pub(super) fn admit(
        &self,
        data: &mut SessionData,
        mut call: Call,
        judged: Option<&CheckedArguments>,
        ancestors: Vec<Ancestor>,
    ) -> Planned {
        let call_id = data.id_of(&call);
        let name: Arc<str> = call.name.as_str().into();
        let turn = data.ledger.turn_number();
        if call.args.is_null() {
            call.args = Value::Object(serde_json::Map::new());
        }
        let asked = content(&name, &call.args);
        if !data.controller.state().is_active {
            let refusal = refusal_error(ErrorType::SessionInactive, "The session has ended.".into());
            let plan = self.refuse(data, &call, &call_id, &asked, refusal, &Trace::default());
            return Planned { call_id, name, plan, trace: None };
        }

        let facts = self.gather(data, &call, &asked, !ancestors.is_empty());
        let tool = self.snapshot.find(&name);
        let mut args = std::mem::take(&mut call.args);
        let mut subject = Subject {
            name: &name,
            args: &mut args,
            tool: tool.map(view),
            judged,
            known: &|| self.snapshot.tools().map(|tool| tool.metadata().tool_id.to_string()).collect(),
        };
        let (verdict, trace) = judge(&mut subject, &facts);
        call.args = args;

        // Calls after it in the same message count as having read what it brings, in whatever order they end. What a user
        // must approve first brings nothing until then.
        let brings_an_answer = matches!(verdict, Verdict::Allow(_) | Verdict::Replay(_));
        if brings_an_answer && tool.is_some_and(|tool| reads_foreign_text(tool.metadata())) {
            data.ledger.turn().has_read_foreign_text = true;
        }
        let told = trace.answered_by().is_some().then(|| trace.clone());
        self.count(data, &asked, tool.map(|tool| tool.metadata().category), &facts, &trace);
        let plan = match (verdict, tool) {
            (Verdict::Refuse(error), _) => self.refuse(data, &call, &call_id, &asked, *error, &trace),
            (Verdict::Replay(which), _) => self.replay(data, &call, &call_id, &asked, which, &trace),
            // The second gate refuses what does not exist.
            (_, None) => self.refuse(data, &call, &call_id, &asked, unknown(&name), &trace),
            // Equal calls wait for one answer of the person, also where each of them would run.
            (Verdict::Confirm, Some(_)) if let Some(waiting) = data.ledger.find_unanswered(&asked) => {
                Plan::Joined(waiting)
            }
            (Verdict::Confirm, Some(tool)) => {
                let writes = tool.metadata().side_effects == SideEffects::Writes;
                Plan::Ask(self.tool_call(
                    data,
                    call,
                    &call_id,
                    asked,
                    turn,
                    writes,
                    Allowed::default(),
                    trace,
                    ancestors,
                ))
            }
            (Verdict::Allow(allowed), Some(tool)) => {
                let writes = tool.metadata().side_effects == SideEffects::Writes;
                let mut call =
                    self.tool_call(data, call, &call_id, asked, turn, writes, allowed, trace, ancestors);
                call.has_slow_arguments = judged.is_some();
                self.enter(data, &call.entry);
                Plan::Run(call)
            }
        };
        Planned { call_id, name, plan, trace: told }
    }

    fn gather(&self, data: &mut SessionData, call: &Call, asked: &str, is_nested: bool) -> Facts {
        let redelivery = data.ledger.redelivery(call.stable_id(), asked);
        let duplicate = data.ledger.duplicate(asked);
        let who = data.who.clone();
        let turn = data.ledger.turn();
        Facts {
            mode: self.mode,
            redelivery,
            identical: turn.seen(asked),
            empty: turn.empty(&call.name),
            duplicate,
            calls: turn.calls,
            retrieval: turn.retrieval,
            budgets: *self.shared.policy.budgets(self.mode),
            client: who,
            present: self.shared.present.clone(),
            is_nested,
            has_read_foreign_text: turn.has_read_foreign_text,
        }
    }

    /// Calls that a gate answers before the budget do not use it; refused ones after it do.
    fn count(
        &self,
        data: &mut SessionData,
        asked: &Arc<str>,
        category: Option<Category>,
        facts: &Facts,
        trace: &Trace,
    ) {
        let turn = data.ledger.turn();
        if facts.redelivery == Redelivery::New {
            turn.count_seen(asked);
        }
        if trace.answered_by().is_none_or(uses_budget) {
            turn.calls += 1;
            turn.retrieval += u32::from(category == Some(Category::Retrieval));
        }
    }

    fn refuse(
        &self,
        data: &mut SessionData,
        call: &Call,
        call_id: &Arc<str>,
        asked: &Arc<str>,
        error: ToolError,
        trace: &Trace,
    ) -> Plan {
        let response = Arc::new(self.snapshot.refuse(&call.name, error, self.now()));
        if let Some(gate) = trace.answered_by()
            && self.snapshot.find(&call.name).is_some()
        {
            self.shared.metrics.record_refusal(&call.name.as_str().into(), gate);
        }
        // The same id with other content must not replace what the id stood for.
        if let Some(id) = call.stable_id()
            && data.ledger.redelivery(Some(id), asked) == Redelivery::New
        {
            let turn = data.ledger.turn_number();
            self.remember_refusal(data, id, asked, &response, turn);
            data.unsaved.session = true;
        }
        self.audit_unexecuted(data, call, call_id, None, &response, trace, Some("refused"));
        Plan::Refused(response)
    }

    /// Remembers a refusal for its id, here and in the store.
    pub(super) fn remember_refusal(
        &self,
        data: &mut SessionData,
        id: &str,
        asked: &Arc<str>,
        response: &Arc<ToolResponse>,
        turn: u64,
    ) {
        let forgotten = data.ledger.remember_refusal(id, asked.clone(), response.clone(), turn);
        data.unsaved.forgotten.extend(forgotten.map(|id| refusal_key(&id)));
        data.unsaved.refusals.push((id.to_owned(), asked.clone(), response.clone()));
    }

    fn replay(
        &self,
        data: &mut SessionData,
        call: &Call,
        call_id: &Arc<str>,
        asked: &Arc<str>,
        which: RecordedAnswer,
        trace: &Trace,
    ) -> Plan {
        self.shared.metrics.record_replay(&call.name.as_str().into());
        let seen = match which {
            RecordedAnswer::ById => call.stable_id().and_then(|id| data.ledger.find_by_provider_id(id)),
            RecordedAnswer::ByContent | RecordedAnswer::Undelivered => {
                data.ledger.find_equal(asked).map(KnownCall::Call)
            }
        };
        match seen {
            Some(KnownCall::Call(entry)) => {
                if let Some(response) = entry.answer() {
                    self.audit_unexecuted(
                        data,
                        call,
                        call_id,
                        Some(&entry),
                        &response,
                        trace,
                        Some("replayed"),
                    );
                }
                Plan::Joined(entry)
            }
            Some(KnownCall::Refusal { response, turn, .. }) => {
                let response = Arc::new(super::batch::replayed(&response, turn));
                self.audit_unexecuted(data, call, call_id, None, &response, trace, Some("replayed"));
                Plan::Refused(response)
            }
            // The ledger had it a moment ago, under the same lock.
            None => {
                Plan::Refused(Arc::new(self.snapshot.refuse(&call.name, unknown(&call.name), self.now())))
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "it only puts together what the gates have settled")]
    fn tool_call(
        &self,
        data: &mut SessionData,
        call: Call,
        call_id: &Arc<str>,
        asked: Arc<str>,
        turn: u64,
        writes: bool,
        allowed: Allowed,
        trace: Trace,
        ancestors: Vec<Ancestor>,
    ) -> ToolCall {
        // Only a tool that means each of several equal calls gets here with an equal one before it.
        let nth = match data.ledger.duplicate(&asked) {
            crate::gates::Duplicate::No => 0,
            _ => data.ledger.turn().seen(&asked).saturating_sub(1),
        };
        let entry = Entry::new(CallIdentity {
            call_id: call_id.clone(),
            provider_id: call.stable_id().map(Arc::from),
            nth,
            tool: call.name.as_str().into(),
            content: asked,
            turn,
            writes,
        });
        entry.set_trace(&trace);
        ToolCall {
            entry,
            args: call.args,
            has_slow_arguments: false,
            clamped: allowed.clamped,
            rate_limit: allowed.rate_limit,
            trace,
            ancestors,
            redeems: None,
        }
    }

    /// Enters an admitted call into the ledger.
    pub(super) fn enter(&self, data: &mut SessionData, entry: &Arc<Entry>) {
        if let Some(forgotten) = data.ledger.insert(entry.clone()) {
            forgotten.is_forgotten.store(true, Ordering::Relaxed);
            if forgotten.is_saved.load(Ordering::Relaxed) {
                data.unsaved.forgotten.push(forgotten.key().clone());
            }
        }
        data.unfinished.push(entry.clone());
    }

    #[expect(clippy::too_many_arguments, reason = "a line of the record has many parts")]
    pub(super) fn audit_unexecuted(
        &self,
        data: &SessionData,
        call: &Call,
        call_id: &str,
        entry: Option<&Entry>,
        response: &ToolResponse,
        trace: &Trace,
        how: Option<&'static str>,
    ) {
        self.audit_call(&AuditRecord {
            call_id,
            turn: data.ledger.turn_number(),
            entry,
            tool: &call.name,
            args: &call.args,
            trace,
            response,
            how,
        });
    }
}

impl SessionData {
    /// Counts a call and gives it the id that it goes by: the provider's, or one of ours.
    pub(super) fn id_of(&mut self, call: &Call) -> Arc<str> {
        self.calls_made += 1;
        let own_id = || format!("{}{}", self.call_prefix, self.calls_made).into();
        call.id.as_deref().map_or_else(own_id, Arc::from)
    }
}

/// What gates may know about a tool.
pub(super) fn view(tool: &LoadedTool) -> ToolView<'_> {
    ToolView { metadata: tool.metadata(), parameters: &tool.parameters, source: &tool.compiled().json_schema }
}

fn unknown(name: &str) -> ToolError {
    refusal_error(ErrorType::NotFound, format!("There is no tool called {name}."))
}
