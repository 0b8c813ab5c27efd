//! Failures of services that are not CalDAV servers. Their texts hold nothing that the service sent, which may repeat what it
//! was sent itself.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};

/// `service` is whom we asked: `Google Calendar`.
pub(crate) fn fault(
    service: &str,
    code: CapabilityErrorCode,
    message: impl std::fmt::Display,
) -> CapabilityError {
    CapabilityError::new(code, format!("{service}: {message}"))
}

pub(crate) fn rate_limited(service: &str, after_seconds: f64) -> CapabilityError {
    let message = format!("too many requests; try again in {} s", after_seconds.ceil());
    CapabilityError {
        retry_after_seconds: Some(after_seconds),
        ..fault(service, CapabilityErrorCode::RateLimit, message)
    }
}
