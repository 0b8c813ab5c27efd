//! Links to video calls.

use std::sync::Arc;

use crate::handler::{BoxFuture, CapabilityError};

/// Makes links to video calls. A backend that makes its own (Google Meet) needs none.
///
/// Failures as for [`Calendar`](super::Calendar).
pub trait ConferenceProvider: Send + Sync {
    /// Whether it changes something outside of our store. One that only fills in a template does not.
    fn is_outside(&self) -> bool {
        true
    }

    /// Makes the video call of an appointment, and returns its address. The same key always means the same call.
    fn create(&self, request: ConferenceRequest) -> BoxFuture<Result<String, CapabilityError>>;

    /// The appointment has another time.
    fn reschedule(
        &self,
        _url: String,
        _request: ConferenceRequest,
    ) -> BoxFuture<Result<(), CapabilityError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The appointment does not take place.
    fn cancel(&self, _url: String) -> BoxFuture<Result<(), CapabilityError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The appointment that a video call is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConferenceRequest {
    /// Made from [`BookingOrigin::call_key`](super::BookingOrigin::call_key): 32 hexadecimal digits.
    pub key: Arc<str>,
    /// The appointment's title.
    pub title: String,
    /// When it begins (RFC 3339).
    pub start: String,
    /// When it ends (RFC 3339).
    pub end: String,
}
