//! What clients, operators and probes are told of a model that fails.

use axum::http::StatusCode;
use jiff::Timestamp;
use quarterdeck_agents::text::{Failure, ModelTrouble};
use quarterdeck_contracts::{ChatErrorKind, ErrorType};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ApiError;

/// After how many seconds a client may try again, where the provider does not say.
const RETRY_AFTER_SECONDS: u64 = 5;
/// The same where an operator has to do something first.
const OPERATOR_RETRY_SECONDS: u64 = 60;
/// How long a client is told to wait at most.
const MAX_RETRY_SECONDS: u64 = 3_600;

/// The text model fails.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ModelTrouble", deny_unknown_fields)]
pub(crate) struct TroubleReport {
    /// The model, as provider/model.
    model: String,
    /// Since when every request has failed.
    #[schemars(extend("format" = "date-time"))]
    since: String,
    /// When it was asked last.
    #[schemars(extend("format" = "date-time"))]
    last_failure: String,
    /// How the last request failed.
    #[schemars(extend("enum" = [
        "unreachable", "unauthorised", "rate_limited", "overloaded", "rejected", "too_long", "refused", "cut", "garbled",
        "silent",
    ]))]
    kind: &'static str,
    /// Failed requests in a row.
    failures: u32,
    /// The model that answers instead, or null if none does.
    fallback: Option<String>,
}

impl TroubleReport {
    pub(crate) fn new(trouble: &ModelTrouble) -> Self {
        let time = |ms: u64| Timestamp::from_millisecond(ms as i64).unwrap_or(Timestamp::MAX).to_string();
        let failing = trouble.failing;
        Self {
            model: trouble.model.clone(),
            since: time(failing.since_ms),
            last_failure: time(failing.last_ms),
            kind: failing.kind.as_str(),
            failures: failing.failures,
            fallback: trouble.stand_in().map(str::to_owned),
        }
    }

    /// One sentence for operators.
    pub(crate) fn reason(&self) -> String {
        let Self { model, since, kind, failures, fallback, .. } = self;
        let instead = match fallback {
            Some(fallback) => format!("{fallback} answers instead"),
            None => "no model answers".to_owned(),
        };
        format!("model {model} failing since {since} ({kind}, {failures} in a row); {instead}")
    }
}

/// The answer of a protocol that has statuses when the model failed before anything was sent. `was_acted` says that tools
/// have run for the request, so that a client must not repeat it by itself.
pub(crate) fn upstream_error(failure: &Failure, was_acted: bool) -> ApiError {
    let (status, code) = match failure.cause {
        Some(ChatErrorKind::RateLimited) => (StatusCode::TOO_MANY_REQUESTS, None),
        Some(ChatErrorKind::Unreachable | ChatErrorKind::Overloaded | ChatErrorKind::Silent) => {
            (StatusCode::SERVICE_UNAVAILABLE, None)
        }
        Some(ChatErrorKind::TooLong) => (StatusCode::BAD_REQUEST, Some("context_length_exceeded")),
        Some(ChatErrorKind::Refused) => (StatusCode::BAD_REQUEST, Some("content_filter")),
        Some(
            ChatErrorKind::Unauthorised
            | ChatErrorKind::Rejected
            | ChatErrorKind::Cut
            | ChatErrorKind::Garbled,
        ) => (StatusCode::BAD_GATEWAY, None),
        None if failure.kind == ErrorType::RateLimit => (StatusCode::TOO_MANY_REQUESTS, None),
        None => (StatusCode::BAD_GATEWAY, None),
    };
    let is_ours = status != StatusCode::BAD_REQUEST;
    let error = ApiError::new(failure.kind, failure.message.clone()).with_status(status);
    ApiError {
        retryable: failure.retryable && !was_acted,
        retry_after: is_ours.then(|| retry_seconds(failure)),
        should_retry: (was_acted || !failure.retryable).then_some(false),
        code,
        ..error
    }
}

fn retry_seconds(failure: &Failure) -> u64 {
    let usual = if failure.retryable { RETRY_AFTER_SECONDS } else { OPERATOR_RETRY_SECONDS };
    let asked =
        failure.retry_after.map(|after| u64::try_from(after.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX));
    asked.unwrap_or(usual).clamp(1, MAX_RETRY_SECONDS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quarterdeck_contracts::ChatError;

    use super::*;

    fn failure(kind: ChatErrorKind, retry_after: Option<Duration>) -> Failure {
        Failure::of(&ChatError {
            kind,
            model: "m".into(),
            detail: "secret".into(),
            retry_after,
            context: None,
        })
    }

    #[test]
    fn trouble_of_the_provider_is_never_the_clients_mistake() {
        use ChatErrorKind::{
            Cut, Garbled, Overloaded, RateLimited, Refused, Rejected, Silent, TooLong, Unauthorised,
            Unreachable,
        };
        for (kind, status, retry_after) in [
            (Unreachable, 503, Some(5)),
            (Overloaded, 503, Some(5)),
            (Silent, 503, Some(5)),
            (RateLimited, 429, Some(5)),
            (Cut, 502, Some(5)),
            (Garbled, 502, Some(5)),
            (Unauthorised, 502, Some(60)),
            (Rejected, 502, Some(60)),
            (TooLong, 400, None),
            (Refused, 400, None),
        ] {
            let error = upstream_error(&failure(kind, None), false);
            assert_eq!((error.status.as_u16(), error.retry_after), (status, retry_after), "{kind:?}");
            assert_eq!(error.should_retry, (!error.retryable).then_some(false), "{kind:?}");
        }
    }

    #[test]
    fn a_client_waits_as_long_as_the_provider_asks_for_within_reason() {
        let seconds = |after: Duration| {
            upstream_error(&failure(ChatErrorKind::RateLimited, Some(after)), false).retry_after
        };
        assert_eq!(seconds(Duration::from_millis(1_500)), Some(2));
        assert_eq!(seconds(Duration::ZERO), Some(1));
        assert_eq!(seconds(Duration::MAX), Some(3_600));
    }

    #[test]
    fn a_request_for_which_tools_have_run_is_not_to_be_repeated() {
        let error = upstream_error(&failure(ChatErrorKind::Overloaded, None), true);
        assert_eq!((error.status.as_u16(), error.should_retry, error.retryable), (503, Some(false), false));
    }
}
