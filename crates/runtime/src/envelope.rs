//! Answers: what went wrong in words for a model, and where an answer comes from.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::Offset;
use quarterdeck_contracts::handler::HostError;
use quarterdeck_contracts::{
    ConfirmationRequest, ErrorType, HandlerAnswer, Meta, Metadata, Outcome, RESPONSE_SCHEMA_VERSION,
    SideEffects, ToolError, ToolResponse,
};
use quarterdeck_schema::{Schema, Violation};
use serde_json::{Value, json};

use crate::validation::run_blocking;

/// How many violations the message names; `details` has them all.
const MAX_NAMED_VIOLATIONS: usize = 3;

/// Arguments that the schema refuses.
pub(crate) fn invalid_arguments(violations: &[Violation]) -> ToolError {
    let named: Vec<_> =
        violations.iter().take(MAX_NAMED_VIOLATIONS).map(|violation| violation.message.as_str()).collect();
    let mut message = named.join("; ");
    if violations.len() > MAX_NAMED_VIOLATIONS {
        message.push_str(&format!("; and {} more", violations.len() - MAX_NAMED_VIOLATIONS));
    }
    let details = violations
        .iter()
        .map(|violation| json!({ "path": violation.path, "keyword": violation.keyword, "message": violation.message }))
        .collect();
    refusal_error(ErrorType::Validation, message).with_details(Value::Array(details))
}

/// A failure from before anything ran.
pub(crate) fn refusal_error(kind: ErrorType, message: String) -> ToolError {
    ToolError { partial_side_effects: Some(false), ..ToolError::new(kind, message) }
}

/// What a host's failure becomes. The inside stays in the log.
pub(crate) fn host_failure(metadata: &Metadata, error: &HostError) -> ToolError {
    let id = &metadata.tool_id;
    match error {
        HostError::TimedOut { computing, .. } => ToolError {
            partial_side_effects: Some(metadata.side_effects == SideEffects::Writes),
            details: Some(json!({ "reason": "deadline", "computing": computing })),
            ..ToolError::new(ErrorType::Transient, format!("{id} did not answer in time.")).retryable()
        },
        HostError::Busy { retry_after_ms } => ToolError {
            partial_side_effects: Some(false),
            retry_after_ms: Some(*retry_after_ms),
            ..ToolError::new(ErrorType::Transient, format!("{id} has too many calls waiting.")).retryable()
        },
        _ => internal_fault(metadata),
    }
}

/// An unforeseen failure. The message names the tool and no internals. A tool that does not write has done nothing,
/// however it ended.
pub(crate) fn internal_fault(metadata: &Metadata) -> ToolError {
    let message = format!("{} failed because of a fault inside it.", metadata.tool_id);
    let writes = metadata.side_effects == SideEffects::Writes;
    ToolError { partial_side_effects: Some(writes), ..ToolError::new(ErrorType::Internal, message) }
}

/// A call that names a tool which does not exist.
pub(crate) fn unknown_tool(name: &str) -> ToolError {
    refusal_error(ErrorType::NotFound, format!("There is no tool called {name}."))
}

/// A cancelled call. A handler that was stopped may have done something.
pub(crate) fn cancelled(tool: &str) -> ToolError {
    let message = format!("{tool} was cancelled; whether there is a result is not known.");
    refusal_error(ErrorType::Cancelled, message)
}

/// A call that has started and was not recorded.
pub(crate) fn outcome_lost(tool: &str, writes: bool) -> ToolError {
    if writes {
        return outcome_unknown(tool);
    }
    let message = format!("{tool} was interrupted, and its result is lost. It changes nothing.");
    refusal_error(ErrorType::Internal, message).with_suggestion("Call it again if it is still needed.")
}

/// A write whose user has cancelled it, so that its handler was stopped.
pub(crate) fn stopped(tool: &str, may_have_acted: bool) -> ToolError {
    let message = match may_have_acted {
        true => format!("{tool} was cancelled while it ran; what it had done by then stays done."),
        false => format!("{tool} was cancelled, and did nothing."),
    };
    ToolError { partial_side_effects: Some(may_have_acted), ..ToolError::new(ErrorType::Cancelled, message) }
}

/// A write that has started and was not recorded.
pub(crate) fn outcome_unknown(tool: &str) -> ToolError {
    let message = format!("{tool} was interrupted, and whether it was done is not known.");
    ToolError {
        partial_side_effects: Some(true),
        details: Some(json!({ "outcome": "unknown" })),
        ..ToolError::new(ErrorType::Internal, message)
    }
    .with_suggestion("Tell the user, and check before trying again.")
}

/// A write that has sent something, and then failed in a way that its handler did not foresee.
pub(crate) fn failed_midway(tool: &str, cause: &str) -> ToolError {
    let message = format!("{tool} failed after it had begun, and whether it was done is not known: {cause}.");
    ToolError { message, ..outcome_unknown(tool) }
}

/// The user must approve the call first. Never with the token: a model reads this.
pub(crate) fn confirmation_required(tool: &str, request: Option<&ConfirmationRequest>) -> ToolError {
    let message = format!("The user must approve {tool} first.");
    ToolError {
        confirmation_request: request.cloned().map(|request| Box::new(request.without_secrets())),
        ..refusal_error(ErrorType::ConfirmationRequired, message)
    }
    .with_suggestion("Tell the user that their approval is pending, and go on; you will be told the outcome.")
}

pub(crate) fn confirmation_expired() -> ToolError {
    let message = "This confirmation has expired. Nothing was done.".to_owned();
    refusal_error(ErrorType::ConfirmationExpired, message).with_suggestion("Ask again if it is still wanted.")
}

pub(crate) fn confirmation_denied(tool: &str) -> ToolError {
    refusal_error(ErrorType::ConfirmationDenied, format!("The user did not approve {tool}."))
}

/// Unknown, used, or another client's: it does not say which.
pub(crate) fn confirmation_invalid() -> ToolError {
    let message = "This question has been answered already, or does not exist.".to_owned();
    refusal_error(ErrorType::ConfirmationInvalid, message)
}

/// A recorded answer, given again.
pub(crate) fn replayed(response: &ToolResponse, turn: u64) -> ToolResponse {
    let mut copy = response.clone();
    copy.meta.idempotent_cache_hit = Some(true);
    copy.meta.original_turn = Some(turn);
    copy
}

/// What checking an answer against the contract has found.
pub(crate) enum ContractCheck {
    /// What is wrong with it although it has the right shape, for the log.
    Done(Option<String>),
    /// It takes long, and is for [`check_blocking`].
    Slow(Arc<Schema>),
}

/// Checks an answer, unless that would keep others waiting.
pub(crate) fn check_contract(answer: &HandlerAnswer, returns: Option<&Arc<Schema>>) -> ContractCheck {
    let data = match &answer.outcome {
        Outcome::Failure(error) if error.kind.is_confirmation() || error.confirmation_request.is_some() => {
            let fault = format!("the handler raised {}, which only the orchestrator may", error.kind);
            return ContractCheck::Done(Some(fault));
        }
        Outcome::Failure(_) => return ContractCheck::Done(None),
        Outcome::Success(data) => data,
    };
    let Some(returns) = returns else { return ContractCheck::Done(None) };
    match returns.violations_if_quick(data) {
        Some(found) => ContractCheck::Done(describe_violations(found)),
        None => ContractCheck::Slow(returns.clone()),
    }
}

/// Checks an answer where nothing waits for the thread. Of one that takes too long, the data is gone.
pub(crate) async fn check_blocking(
    answer: HandlerAnswer,
    returns: Arc<Schema>,
) -> (HandlerAnswer, Option<String>) {
    let checked = run_blocking(move || {
        let fault = if let Outcome::Success(data) = &answer.outcome {
            describe_violations(returns.violations(data))
        } else {
            None
        };
        (answer, fault)
    });
    checked.await.unwrap_or_else(|| {
        let fault = "checking the answer against `returns` took too long".to_owned();
        (HandlerAnswer::success(Value::Null), Some(fault))
    })
}

fn describe_violations(found: Vec<Violation>) -> Option<String> {
    let found: Vec<_> = found.into_iter().take(MAX_NAMED_VIOLATIONS).map(|found| found.message).collect();
    (!found.is_empty()).then(|| format!("the answer does not fit `returns`: {}", found.join("; ")))
}

/// Where an answer comes from and what it took.
pub(crate) fn meta(
    tool_id: Arc<str>,
    tool_version: Arc<str>,
    registry_version: Arc<str>,
    took: Duration,
    now: SystemTime,
) -> Meta {
    Meta {
        tool_id,
        tool_version,
        registry_version,
        response_schema_version: RESPONSE_SCHEMA_VERSION.into(),
        duration: took.as_millis() as u64,
        timestamp: timestamp(now),
        retry_count: None,
        parent_call_id: None,
        background_task_id: None,
        idempotent_cache_hit: None,
        original_turn: None,
    }
}

/// RFC 3339 in UTC, to the millisecond; a clock outside the calendar shows the epoch.
pub(crate) fn timestamp(now: SystemTime) -> String {
    let now = Timestamp::try_from(now).unwrap_or(Timestamp::UNIX_EPOCH);
    let civil = Offset::UTC.to_datetime(now);
    // Every answer has one, and the machinery of `format!` takes longer than all the rest of stamping it.
    let mut text = *b"YYYY-MM-DDThh:mm:ss.mmmZ";
    write_digits(&mut text[0..4], civil.year().unsigned_abs());
    write_digits(&mut text[5..7], civil.month().unsigned_abs().into());
    write_digits(&mut text[8..10], civil.day().unsigned_abs().into());
    write_digits(&mut text[11..13], civil.hour().unsigned_abs().into());
    write_digits(&mut text[14..16], civil.minute().unsigned_abs().into());
    write_digits(&mut text[17..19], civil.second().unsigned_abs().into());
    write_digits(&mut text[20..23], civil.millisecond().unsigned_abs());
    std::str::from_utf8(&text).expect("digits and letters are ASCII").to_owned()
}

/// Fills a place with the digits of a number, the last of them last.
fn write_digits(place: &mut [u8], mut number: u16) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_utc_to_the_millisecond() {
        let at = |ms: u64| timestamp(SystemTime::UNIX_EPOCH + Duration::from_millis(ms));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(1_768_294_800_007), "2026-01-13T09:00:00.007Z");
        for ms in [951_782_399_999, 1_709_164_800_120, 4_102_444_799_001_u64] {
            let other = Timestamp::from_millisecond(ms as i64).unwrap();
            assert_eq!(at(ms), format!("{other:.3}"));
        }
    }
}
