//! One imported tool, ready to be called.

use std::sync::Arc;

use quarterdeck_contracts::handler::{
    BoxFuture, CancelReason, Context, Handler, HandlerFault, HostError, Limits,
};
use quarterdeck_contracts::{ErrorType, HandlerAnswer, Metadata, SideEffects, ToolError};
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::foreign;
use crate::result::{self, ToolResult};
use crate::server_config::ServerName;
use crate::upstream::{CallFailure, Pin, Unavailable, Upstream};

const MAX_ERROR_CHARS: usize = 500;
/// When a call that found no place may be tried again.
const BUSY_RETRY_MS: u64 = 1_000;

/// What a tool's definition says about calling it.
#[derive(Debug, Clone)]
pub(crate) struct ToolPolicy {
    pub(crate) tool_id: String,
    pub(crate) server: ServerName,
    pub(crate) writes: bool,
    pub(crate) idempotent: bool,
}

impl ToolPolicy {
    pub(crate) fn new(metadata: &Metadata, server: ServerName) -> Self {
        Self {
            tool_id: metadata.tool_id.to_string(),
            server,
            writes: metadata.side_effects == SideEffects::Writes,
            idempotent: metadata.idempotent,
        }
    }
}

/// A tool of a configured server.
pub(crate) struct McpHandler {
    pub(crate) policy: Arc<ToolPolicy>,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) pin: Arc<Pin>,
}

impl Handler for McpHandler {
    fn has_foreign_text(&self) -> bool {
        true
    }

    fn run(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        limits: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        let deadline = Instant::now() + limits.timeout;
        let (policy, upstream, pin) = (self.policy.clone(), self.upstream.clone(), self.pin.clone());
        Box::pin(async move {
            let arguments = match args {
                Value::Object(arguments) => arguments,
                _ => Default::default(),
            };
            match upstream.call(&pin, arguments, &context, deadline).await {
                Err(unavailable) => policy.refuse(&unavailable),
                Ok(Err(failure)) => policy.fail(failure, &*context, limits),
                Ok(Ok(answer)) => {
                    Ok(policy.answer(result::read(answer.result, answer.has_output_schema), &*context))
                }
            }
        })
    }
}

/// A tool whose server is not in the configuration. It is loaded, so that the others are served.
pub(crate) struct UnconfiguredHandler {
    pub(crate) policy: Arc<ToolPolicy>,
}

impl Handler for UnconfiguredHandler {
    fn run(
        &self,
        _: Value,
        context: Arc<dyn Context>,
        _: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        let server = &self.policy.server;
        context.report_fault(
            HandlerFault::new(format!("the MCP server `{server}` is not configured")).with_hint(format!(
                "add [mcp.servers.{server}] to the configuration, as `quarterdeck mcp add` does"
            )),
        );
        let error =
            self.policy.unavailable("server_not_configured", "the server that runs it is not configured");
        Box::pin(std::future::ready(Ok(HandlerAnswer::failure(error))))
    }
}

impl ToolPolicy {
    fn answer(&self, result: ToolResult, context: &dyn Context) -> HandlerAnswer {
        match result {
            ToolResult::Data(data) => HandlerAnswer::success(data),
            ToolResult::Failed(words) => {
                HandlerAnswer::failure(self.foreign_error(ErrorType::Permanent, &words))
            }
            ToolResult::Invalid(why) => self.invalid(why, context),
        }
    }

    /// A call that was not sent.
    fn refuse(&self, why: &Unavailable) -> Result<HandlerAnswer, HostError> {
        let mut error = match why {
            Unavailable::Busy => return Err(HostError::Busy { retry_after_ms: BUSY_RETRY_MS }),
            Unavailable::Down { .. } => {
                self.unavailable("server_down", "the server that runs it is not connected")
            }
            Unavailable::TimedOut => {
                self.unavailable("server_connecting", "the server that runs it is not connected yet")
            }
            Unavailable::Drifted => {
                self.unavailable("tool_changed", "its server has changed it since it was reviewed here")
            }
            Unavailable::Missing => self.unavailable("tool_missing", "its server does not offer it any more"),
        };
        if let Unavailable::Down { retry_after } = why {
            error.retry_after_ms = Some(retry_after.as_millis() as u64);
        }
        Ok(HandlerAnswer::failure(error))
    }

    /// A call that has no result.
    fn fail(
        &self,
        failure: CallFailure,
        context: &dyn Context,
        limits: Limits,
    ) -> Result<HandlerAnswer, HostError> {
        let error = match failure {
            CallFailure::Gone(why) | CallFailure::NotAccepted(why) => {
                context.report_fault(self.fault(&why));
                self.unavailable("server_down", "the server that runs it did not take the call")
            }
            CallFailure::Busy { retry_after } => ToolError {
                retry_after_ms: retry_after.map(|after| after.as_millis() as u64),
                partial_side_effects: Some(false),
                ..ToolError::new(ErrorType::RateLimit, format!("{} has too much to do.", self.tool_id))
                    .retryable()
            },
            CallFailure::Lost(why) => {
                context.report_fault(self.fault(&why));
                self.lost("connection_lost")
            }
            CallFailure::TimedOut if self.writes && !self.idempotent => self.outcome_unknown("deadline"),
            CallFailure::TimedOut => {
                let limit_ms = limits.timeout.as_millis() as u64;
                return Err(HostError::TimedOut { limit_ms, computing: false });
            }
            CallFailure::Cancelled(reason) => self.cancelled(reason),
            CallFailure::Invalid(why) => return Ok(self.invalid(&why, context)),
            CallFailure::AsksForInput => {
                let message = format!("{} wants to ask something first, which it may not.", self.tool_id);
                ToolError::new(ErrorType::Permanent, message)
                    .with_details(json!({ "reason": "asks_for_input", "server": self.server }))
            }
            CallFailure::Protocol(error) => self.protocol_error(&error),
        };
        Ok(HandlerAnswer::failure(error))
    }

    fn unavailable(&self, reason: &str, why: &str) -> ToolError {
        ToolError {
            partial_side_effects: Some(false),
            ..ToolError::new(ErrorType::Unavailable, format!("{} is not available: {why}.", self.tool_id))
        }
        .with_details(json!({ "reason": reason, "server": self.server }))
        .with_suggestion("Answer without this tool, and say that it is out of service for now.")
    }

    /// A call that was sent, and whose answer will not come.
    fn lost(&self, reason: &str) -> ToolError {
        if self.writes {
            return self.outcome_unknown(reason);
        }
        let message =
            format!("{} was interrupted, because its server was lost. It changes nothing.", self.tool_id);
        ToolError::new(ErrorType::Transient, message)
            .retryable()
            .with_details(json!({ "reason": reason, "server": self.server }))
    }

    /// A write that may have been done. To make it again may make it twice, so that nothing does by itself.
    fn outcome_unknown(&self, reason: &str) -> ToolError {
        let message = format!("{} was interrupted, and whether it was done is not known.", self.tool_id);
        ToolError { partial_side_effects: Some(true), ..ToolError::new(ErrorType::Internal, message) }
            .with_details(json!({ "outcome": "unknown", "reason": reason, "server": self.server }))
            .with_suggestion("Tell the user, and check before trying again.")
    }

    fn cancelled(&self, reason: CancelReason) -> ToolError {
        let error = ToolError::new(ErrorType::Cancelled, reason.message());
        match self.writes {
            true => ToolError { partial_side_effects: Some(true), ..error }
                .with_details(json!({ "outcome": "unknown", "server": self.server })),
            false => ToolError { partial_side_effects: Some(false), ..error },
        }
    }

    fn invalid(&self, why: &str, context: &dyn Context) -> HandlerAnswer {
        context.report_fault(self.fault(why));
        if self.writes {
            return HandlerAnswer::failure(self.outcome_unknown("invalid_answer"));
        }
        let message = format!("{} gave an answer that cannot be used.", self.tool_id);
        let details = json!({ "reason": "invalid_answer", "server": self.server });
        HandlerAnswer::failure(ToolError::new(ErrorType::Permanent, message).with_details(details))
    }

    fn protocol_error(&self, error: &ErrorData) -> ToolError {
        let kind = match error.code {
            ErrorCode::INVALID_PARAMS => ErrorType::Validation,
            _ => ErrorType::Permanent,
        };
        let mut failure = self.foreign_error(kind, &foreign::shorten(&error.message, MAX_ERROR_CHARS));
        failure.details = Some(json!({ "code": error.code.0, "server": self.server }));
        failure
    }

    /// What the server says about a call, marked as its words. They are no instructions, whatever they say.
    fn foreign_error(&self, kind: ErrorType, words: &str) -> ToolError {
        let message = match words.is_empty() {
            true => format!("{} failed, and its server does not say why.", self.tool_id),
            false => format!("{} says: {words}", self.server),
        };
        ToolError { partial_side_effects: Some(self.writes), ..ToolError::new(kind, message) }
            .with_details(json!({ "server": self.server }))
    }

    fn fault(&self, why: &str) -> HandlerFault {
        HandlerFault::new(format!("the MCP server `{}`: {why}", self.server))
    }
}
