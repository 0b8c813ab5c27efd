//! What an answer with an error status means.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};

use super::wire::{ErrorItem, ErrorReply};
use super::{SERVICE, failed};
use crate::fault::rate_limited;
use crate::http::{HttpAnswer, retry_after};

/// Google names no time with its limits; they are counted by the minute, and back-off is to begin with seconds.
const DEFAULT_RETRY_SECONDS: f64 = 10.0;
/// A quota of the day is not back in seconds.
const DAILY_RETRY_SECONDS: f64 = 3_600.0;

pub(super) fn refusal(reply: &HttpAnswer) -> CapabilityError {
    let status = reply.status.as_u16();
    let error = serde_json::from_slice::<ErrorReply>(&reply.body).unwrap_or_default().error;
    let reason = reason(&error.errors);
    if status == 429 || is_rate_limit(reason) || error.status == "RESOURCE_EXHAUSTED" {
        let usual = if is_daily(reason) { DAILY_RETRY_SECONDS } else { DEFAULT_RETRY_SECONDS };
        return rate_limited(SERVICE, retry_after(&reply.headers).unwrap_or(usual));
    }
    let (code, message) = match status {
        400 => (CapabilityErrorCode::InvalidArgument, format!("the request was refused ({reason})")),
        401 => (
            CapabilityErrorCode::AuthError,
            "access was refused; the operator must check the credentials".into(),
        ),
        403 => (CapabilityErrorCode::AuthError, forbidden(reason)),
        404 | 410 => (
            CapabilityErrorCode::NotFound,
            "there is no such event or calendar, or it is not shared with us".into(),
        ),
        409 => (CapabilityErrorCode::Conflict, "there is an event of this id already".into()),
        412 => {
            (CapabilityErrorCode::Conflict, "the event has changed since it was looked up; look again".into())
        }
        408 | 500..=599 => {
            (CapabilityErrorCode::NotAvailable, format!("the service failed (HTTP {status}); try again"))
        }
        _ => (CapabilityErrorCode::InvalidArgument, format!("the request was refused (HTTP {status})")),
    };
    CapabilityError { retry_after_seconds: retry_after(&reply.headers), ..failed(code, message) }
}

/// The reasons with which single calendars of a free/busy answer fail.
pub(super) fn free_busy_fault(errors: &[ErrorItem]) -> CapabilityError {
    match reason(errors) {
        "notFound" => {
            let message = "the calendar does not exist or is not shared with us; the operator must share it";
            failed(CapabilityErrorCode::NotFound, message)
        }
        reason => {
            failed(CapabilityErrorCode::NotAvailable, format!("free/busy failed ({reason}); try again"))
        }
    }
}

fn forbidden(reason: &str) -> String {
    let remedy = match reason {
        "accessNotConfigured" => "enable the Google Calendar API in the project of the credentials",
        "forbiddenForServiceAccounts" => {
            "set the user on whose behalf the service account acts, and allow it domain-wide delegation"
        }
        "insufficientPermissions" => "authorise the scopes calendar.events and calendar.freebusy",
        _ => "share the calendar with the account, with the right to make changes to events",
    };
    format!("access was refused ({reason}); the operator must {remedy}")
}

fn is_rate_limit(reason: &str) -> bool {
    matches!(
        reason,
        "rateLimitExceeded" | "userRateLimitExceeded" | "quotaExceeded" | "calendarLimitExceeded"
    ) || is_daily(reason)
}

fn is_daily(reason: &str) -> bool {
    matches!(reason, "dailyLimitExceeded" | "calendarUsageLimitsExceeded")
}

/// The reason, which is one word. Anything longer is not repeated.
fn reason(errors: &[ErrorItem]) -> &str {
    let reason = errors.first().map_or("", |error| error.reason.as_str());
    let is_word =
        !reason.is_empty() && reason.len() <= 60 && reason.bytes().all(|b| b.is_ascii_alphanumeric());
    if is_word { reason } else { "no reason was given" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, retry_after: Option<&str>, body: &str) -> HttpAnswer {
        let mut headers = reqwest::header::HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert("retry-after", value.parse().unwrap());
        }
        HttpAnswer { status: status.try_into().unwrap(), headers, body: body.as_bytes().to_vec() }
    }

    fn mapped(status: u16, reason: &str, retry_after: Option<&str>) -> CapabilityError {
        let body = format!(
            r#"{{"error":{{"errors":[{{"domain":"usageLimits","reason":"{reason}","message":"m"}}],"code":{status},"message":"m"}}}}"#
        );
        refusal(&answer(status, retry_after, &body))
    }

    #[test]
    fn documented_errors_say_what_the_caller_can_do() {
        for (status, reason, code) in [
            (400, "timeRangeEmpty", CapabilityErrorCode::InvalidArgument),
            (401, "authError", CapabilityErrorCode::AuthError),
            (403, "userRateLimitExceeded", CapabilityErrorCode::RateLimit),
            (403, "rateLimitExceeded", CapabilityErrorCode::RateLimit),
            (403, "quotaExceeded", CapabilityErrorCode::RateLimit),
            (403, "dailyLimitExceeded", CapabilityErrorCode::RateLimit),
            (403, "calendarUsageLimitsExceeded", CapabilityErrorCode::RateLimit),
            (403, "forbiddenForNonOrganizer", CapabilityErrorCode::AuthError),
            (403, "accessNotConfigured", CapabilityErrorCode::AuthError),
            (404, "notFound", CapabilityErrorCode::NotFound),
            (409, "duplicate", CapabilityErrorCode::Conflict),
            (410, "deleted", CapabilityErrorCode::NotFound),
            (412, "conditionNotMet", CapabilityErrorCode::Conflict),
            (429, "rateLimitExceeded", CapabilityErrorCode::RateLimit),
            (500, "backendError", CapabilityErrorCode::NotAvailable),
            (503, "", CapabilityErrorCode::NotAvailable),
        ] {
            assert_eq!(mapped(status, reason, None).code, code, "{status} {reason}");
        }
    }

    #[test]
    fn a_rate_limit_always_names_a_time() {
        assert_eq!(mapped(429, "rateLimitExceeded", Some("7")).retry_after_seconds, Some(7.0));
        assert_eq!(mapped(403, "rateLimitExceeded", None).retry_after_seconds, Some(DEFAULT_RETRY_SECONDS));
        assert_eq!(mapped(403, "dailyLimitExceeded", None).retry_after_seconds, Some(DAILY_RETRY_SECONDS));
    }

    #[test]
    fn a_service_account_without_delegation_is_told_what_is_missing() {
        let fault = mapped(403, "forbiddenForServiceAccounts", None);
        assert!(fault.message.contains("domain-wide delegation"), "{}", fault.message);
    }

    #[test]
    fn texts_of_the_service_are_not_repeated() {
        let body = r#"{"error":{"errors":[{"reason":"token ya29.secret is bad"}],"message":"ya29.secret"}}"#;
        for status in [400, 401, 403, 404, 500, 302] {
            let error = refusal(&answer(status, None, body));
            assert!(!error.message.contains("ya29"), "{}", error.message);
        }
        let page = answer(502, None, "<html>Bad Gateway</html>");
        assert_eq!(refusal(&page).code, CapabilityErrorCode::NotAvailable);
    }
}
