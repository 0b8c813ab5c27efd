//! One call from arguments to envelope. It always answers, and never with an exception.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::{Either, select};
use quarterdeck_contracts::handler::{
    CallFacts, CancelReason, CancellationToken, CapabilityErrorCode, Context, HandlerFault, Limits,
    PrecheckAnswer,
};
use quarterdeck_contracts::{ErrorType, HandlerAnswer, Meta, Outcome, SideEffects, ToolError, ToolResponse};
use quarterdeck_schema::Violation;
use serde::Deserialize;
use serde_json::Value;

use crate::envelope::{
    ContractCheck, check_blocking, check_contract, failed_midway, host_failure, internal_fault,
    invalid_arguments, meta, unknown_tool,
};
use crate::guarded_context::GuardedContext;
use crate::redact::Secrets;
use crate::registry::{LoadedTool, Snapshot};
use crate::validation::{CheckedArguments, check_arguments};

impl Snapshot {
    /// Validates the arguments, fills in defaults, runs the handler under its timeout and checks what came back.
    pub async fn execute(&self, tool_id: &str, args: Value, context: Arc<dyn Context>) -> ToolResponse {
        let start = Instant::now();
        let clock = context.clone();
        let tool = self.find(tool_id);
        let answer = match tool {
            Some(tool) => tool.answer(args, context).await,
            None => HandlerAnswer::failure(unknown_tool(tool_id)),
        };
        answer.stamp(self.meta(tool_id, tool, start.elapsed(), clock.now()))
    }

    /// The same for arguments that a gate has checked and filled in already. Boxed, because the answer goes through several
    /// futures, each of which would copy it.
    pub(crate) async fn run(
        &self,
        tool: &LoadedTool,
        args: Value,
        context: Arc<dyn Context>,
    ) -> Box<ToolResponse> {
        let start = Instant::now();
        let clock = context.clone();
        let answer = tool.run(args, context).await;
        Box::new(answer.stamp(self.meta(&tool.facts.id, Some(tool), start.elapsed(), clock.now())))
    }

    /// The envelope of a call that a gate refused: stamped like any other answer.
    pub fn refuse(&self, tool_id: &str, refusal: ToolError, now: SystemTime) -> ToolResponse {
        HandlerAnswer::failure(refusal).stamp(self.meta(tool_id, self.find(tool_id), Duration::ZERO, now))
    }

    /// The envelope of something that a call of the tool has come to without having ended.
    pub(crate) fn succeed(&self, tool_id: &str, data: Value, now: SystemTime) -> ToolResponse {
        HandlerAnswer::success(data).stamp(self.meta(tool_id, self.find(tool_id), Duration::ZERO, now))
    }

    /// The envelope of an answer that needs no handler, such as what the registry says about itself.
    pub fn answer(&self, tool_id: &str, data: Value, now: SystemTime) -> ToolResponse {
        let (version, registry_version) = (self.version.clone(), self.version.clone());
        let meta = meta(tool_id.into(), version, registry_version, Duration::ZERO, now);
        ToolResponse { outcome: Outcome::Success(data), intents: Vec::new(), meta }
    }

    /// Where an answer comes from. There need be no tool of the name that was asked for.
    fn meta(&self, asked: &str, tool: Option<&LoadedTool>, took: Duration, now: SystemTime) -> Meta {
        let (id, version) = match tool {
            Some(tool) => (tool.facts.id.clone(), tool.facts.version.clone()),
            None => (asked.into(), "".into()),
        };
        meta(id, version, self.version.clone(), took, now)
    }
}

impl LoadedTool {
    /// Checks arguments and fills in their defaults.
    pub fn validate(&self, args: &mut Value) -> Result<(), ToolError> {
        let outcome = self.parameters.admit(args);
        self.validated_as(outcome, args)
    }

    fn validated_as(
        &self,
        outcome: Result<Vec<String>, Vec<Violation>>,
        args: &Value,
    ) -> Result<(), ToolError> {
        match outcome {
            Ok(filled) if filled.is_empty() => Ok(()),
            Ok(filled) => {
                tracing::debug!(tool = %self.metadata().tool_id, ?filled, "defaults filled in");
                Ok(())
            }
            Err(violations) => Err(self.refusal(&violations, args)),
        }
    }

    async fn answer(&self, args: Value, context: Arc<dyn Context>) -> HandlerAnswer {
        match self.validated(args).await {
            Ok(args) => self.run(args, context).await,
            Err(refusal) => HandlerAnswer::failure(refusal),
        }
    }

    /// The same, where others are not kept waiting.
    async fn validated(&self, mut args: Value) -> Result<Value, ToolError> {
        if let Some(outcome) = self.parameters.admit_if_quick(&mut args) {
            return self.validated_as(outcome, &args).map(|()| args);
        }
        let CheckedArguments { given, outcome } = Box::pin(check_arguments(&self.parameters, args)).await;
        outcome.map_err(|violations| self.refusal(&violations, &given))
    }

    fn refusal(&self, violations: &[Violation], args: &Value) -> ToolError {
        let mut refusal = invalid_arguments(violations);
        Secrets::of(self.sensitive(), args).hide_in_error(&mut refusal);
        refusal
    }

    async fn run(&self, args: Value, context: Arc<dyn Context>) -> HandlerAnswer {
        let metadata = self.metadata();
        let secrets = Secrets::of(self.sensitive(), &args);
        let facts = self.facts(context.facts());
        let limits = Limits { timeout: Duration::from_millis(metadata.effective_timeout_ms()) };
        let (of_call, signal) = (context.signal(), CancellationToken::default());
        let context = GuardedContext::around(context, facts, secrets.clone(), signal.clone());
        let running = self.handler.run(args, context.clone(), limits);
        match run_with_signal(running, &of_call, &signal, limits.timeout).await {
            Ok(answer) => match check_contract(&answer, self.returns.as_ref()) {
                ContractCheck::Done(fault) => self.checked(answer, fault, &secrets, &*context),
                ContractCheck::Slow(returns) => {
                    // On the heap, so that the usual call does not carry the room for it.
                    let (answer, fault) = Box::pin(check_blocking(answer, returns)).await;
                    self.checked(answer, fault, &secrets, &*context)
                }
            },
            Err(error) => {
                error.to_fault().into_iter().for_each(|fault| context.report_fault(fault));
                let error_text = secrets.hide(&error.to_string());
                let (session, turn, call) = log_fields(context.facts());
                let tool = metadata.tool_id.as_str();
                tracing::error!(session, turn, call, tool, error = error_text, "handler failed");
                HandlerAnswer::failure(host_failure(metadata, &error))
            }
        }
    }

    /// What the handler says about a call that the user is about to be asked for. `None` if it has nothing to say.
    pub(crate) async fn precheck(&self, args: Value, context: Arc<dyn Context>) -> Option<PrecheckAnswer> {
        let metadata = self.metadata();
        let secrets = Secrets::of(self.sensitive(), &args);
        let facts = self.facts(context.facts());
        let limits = Limits { timeout: Duration::from_millis(metadata.effective_timeout_ms()) };
        let signal = context.signal();
        let context = GuardedContext::around(context, facts, secrets.clone(), signal);
        let fault = match self.handler.precheck(args, context.clone(), limits)?.await {
            Ok(Ok(precheck)) => return Some(Ok(precheck)),
            Ok(Err(error)) if error.kind.is_confirmation() => "it raised a confirmation error".to_owned(),
            Ok(Err(mut error)) => {
                secrets.hide_in_error(&mut error);
                return Some(Err(ToolError { partial_side_effects: Some(false), ..error }));
            }
            Err(error) => error.to_string(),
        };
        let (session, turn, call) = log_fields(context.facts());
        let (tool, fault) = (metadata.tool_id.as_str(), secrets.hide(&fault));
        tracing::error!(session, turn, call, tool, error = fault, "precheck failed");
        let error = ToolError::new(ErrorType::Transient, format!("{tool} could not be checked.")).retryable();
        Some(Err(ToolError { partial_side_effects: Some(false), ..error }))
    }

    /// The facts that the handler gets: the tool's own part comes from the definition, not from the caller. Nothing where
    /// the caller has it from there.
    fn facts(&self, given: &CallFacts) -> Option<CallFacts> {
        let is_own =
            Arc::ptr_eq(&given.tool, &self.facts) && Arc::ptr_eq(&given.capabilities, &self.capabilities);
        let (tool, capabilities) = (&self.facts, &self.capabilities);
        (!is_own).then(|| CallFacts {
            tool: tool.clone(),
            capabilities: capabilities.clone(),
            ..given.clone()
        })
    }

    fn checked(
        &self,
        mut answer: HandlerAnswer,
        fault: Option<String>,
        secrets: &Secrets,
        context: &dyn Context,
    ) -> HandlerAnswer {
        if let Some(fault) = fault {
            context.report_fault(contract_fault(&fault));
            let fault = secrets.hide(&fault);
            let (session, turn, call) = log_fields(context.facts());
            let tool = self.metadata().tool_id.as_str();
            tracing::error!(session, turn, call, tool, fault, "answer breaks the contract");
            return HandlerAnswer::failure(internal_fault(self.metadata()));
        }
        if let Outcome::Failure(error) = &mut answer.outcome {
            let writes = self.metadata().side_effects == SideEffects::Writes;
            if writes && is_uncaught(error) && context.has_outside_effect() {
                // Something was sent before it, and the handler has not said what that came to: run again, it may be done twice.
                *error = failed_midway(self.metadata().tool_id.as_str(), &error.message);
            }
            // A handler that says nothing about side effects has none, as far as it knows.
            error.partial_side_effects.get_or_insert(false);
            secrets.hide_in_error(error);
        }
        answer
    }
}

/// Whether an error is a capability's that the handler has not caught, and that leaves open what was done.
fn is_uncaught(error: &ToolError) -> bool {
    let code = error.details.as_ref().and_then(|details| details.get("code"));
    let code = code.and_then(|code| CapabilityErrorCode::deserialize(code).ok());
    error.retryable && error.partial_side_effects.is_none() && code.is_some()
}

/// An answer of the right form with the wrong content.
fn contract_fault(fault: &str) -> HandlerFault {
    let hint = "return the `data` that `returns` in schema.json describes, or change `returns`";
    let reported = HandlerFault::new(fault);
    if fault.contains("`returns`") { reported.with_hint(hint) } else { reported }
}

/// How long before its hard stop a handler is told of its deadline, at the most: time for an answer, not for more work.
const MAX_DEADLINE_NOTICE: Duration = Duration::from_millis(250);

/// Runs a handler, and cancels its signal when that of the call is cancelled or its deadline is near. Whether it is also
/// stopped is the caller's decision.
async fn run_with_signal<T>(
    running: impl Future<Output = T>,
    of_call: &CancellationToken,
    signal: &CancellationToken,
    timeout: Duration,
) -> T {
    // Polled second, so that a handler that ends at once costs no timer.
    let watching = async {
        let notice = (timeout / 10).min(MAX_DEADLINE_NOTICE);
        let deadline = pin!(tokio::time::sleep(timeout - notice));
        let reason = match select(pin!(of_call.cancelled()), deadline).await {
            Either::Left((reason, _)) => reason,
            Either::Right(_) => CancelReason::Deadline,
        };
        signal.cancel(reason);
        std::future::pending::<()>().await
    };
    match select(pin!(running), pin!(watching)).await {
        Either::Left((output, _)) => output,
        Either::Right(((), running)) => running.await,
    }
}

/// Session, turn and call, for the log: without them, an operator cannot find the conversation of a failure.
fn log_fields(facts: &CallFacts) -> (&str, u64, &str) {
    (&facts.session.id, facts.session.turn, &facts.call_id)
}
