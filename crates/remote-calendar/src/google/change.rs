//! Changes that are made once: when the answer to one is lost, the calendar is looked at before anything is sent again.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};

use super::client::WriteError;
use super::convert::Span;
use super::wire::EventResource;
use super::{GoogleCore, SendUpdates, failed};

/// The first, and one more if the first is seen not to have arrived.
const MAX_ATTEMPTS: usize = 2;

/// What a look at the calendar says about a change whose answer was lost.
enum Look<T> {
    Made(T),
    NotMade,
    /// Something else has changed the event.
    Refused(CapabilityError),
}

impl GoogleCore {
    pub(super) async fn insert(&self, event: &EventResource) -> Result<EventResource, CapabilityError> {
        for _ in 0..MAX_ATTEMPTS {
            let unknown = match self.client.insert(event, self.send_updates).await {
                Ok(inserted) => return Ok(inserted),
                // The id belongs to this call alone, so an earlier attempt of it has made the booking.
                Err(WriteError::Refused(fault)) if fault.code == CapabilityErrorCode::Conflict => {
                    let found =
                        self.client.get(&event.id).await.map_err(|_| may_have_been_made(&fault.message))?;
                    return if found.is_cancelled() { Err(was_cancelled()) } else { Ok(found) };
                }
                Err(WriteError::Refused(fault)) => return Err(fault),
                Err(unknown) => unknown,
            };
            let look = match self.client.get(&event.id).await {
                Ok(found) if found.is_cancelled() => Look::Refused(was_cancelled()),
                Ok(found) => Look::Made(found),
                Err(fault) if fault.code == CapabilityErrorCode::NotFound => Look::NotMade,
                Err(_) => return Err(unknown.into_fault()),
            };
            if let Some(result) = unknown.resolve(look) {
                return result;
            }
        }
        Err(may_have_been_made("the connection broke twice"))
    }

    pub(super) async fn patch(
        &self,
        id: &str,
        etag: Option<&str>,
        span: &Span,
    ) -> Result<EventResource, CapabilityError> {
        let (start, end) = span.texts();
        for _ in 0..MAX_ATTEMPTS {
            let unknown = match self.client.patch_time(id, etag, (&start, &end), self.send_updates).await {
                Ok(patched) => return Ok(patched),
                Err(WriteError::Refused(fault)) => return Err(fault),
                Err(unknown) => unknown,
            };
            let look = match self.client.get(id).await {
                Ok(found) if found.is_cancelled() => Look::Refused(was_cancelled()),
                Ok(found) if Span::of(&found, &self.zone).is_ok_and(|there| there == *span) => {
                    Look::Made(found)
                }
                Ok(found) if etag.is_some_and(|etag| etag != found.etag) => Look::Refused(has_changed()),
                Ok(_) => Look::NotMade,
                Err(fault) if fault.code == CapabilityErrorCode::NotFound => Look::Refused(fault),
                Err(_) => return Err(unknown.into_fault()),
            };
            if let Some(result) = unknown.resolve(look) {
                return result;
            }
        }
        Err(may_have_been_made("the connection broke twice"))
    }

    pub(super) async fn delete(
        &self,
        id: &str,
        etag: Option<&str>,
        updates: SendUpdates,
    ) -> Result<(), CapabilityError> {
        for _ in 0..MAX_ATTEMPTS {
            let unknown = match self.client.delete(id, etag, updates).await {
                Ok(()) => return Ok(()),
                // Someone was faster.
                Err(WriteError::Refused(fault)) if fault.code == CapabilityErrorCode::NotFound => {
                    return Ok(());
                }
                Err(WriteError::Refused(fault)) => return Err(fault),
                Err(unknown) => unknown,
            };
            let look = match self.client.get(id).await {
                Ok(found) if found.is_cancelled() => Look::Made(()),
                Ok(found) if etag.is_some_and(|etag| etag != found.etag) => Look::Refused(has_changed()),
                Ok(_) => Look::NotMade,
                Err(fault) if fault.code == CapabilityErrorCode::NotFound => Look::Made(()),
                Err(_) => return Err(unknown.into_fault()),
            };
            if let Some(result) = unknown.resolve(look) {
                return result;
            }
        }
        Err(may_have_been_made("the connection broke twice"))
    }
}

impl WriteError {
    /// What the look means for the caller; `None` if the change is to be sent again.
    fn resolve<T>(self, look: Look<T>) -> Option<Result<T, CapabilityError>> {
        match (look, self) {
            (Look::Made(made), _) => Some(Ok(made)),
            (Look::Refused(fault), _) => Some(Err(fault)),
            (Look::NotMade, Self::Refused(fault)) => Some(Err(fault)),
            // The service is done with it.
            (Look::NotMade, Self::Failed(why)) => Some(Err(failed(
                CapabilityErrorCode::NotAvailable,
                format!("{why}; nothing was changed, try again"),
            ))),
            (Look::NotMade, Self::Lost(_)) => None,
        }
    }

    /// When the calendar could not be looked at either.
    fn into_fault(self) -> CapabilityError {
        match self {
            Self::Refused(fault) => fault,
            Self::Failed(why) | Self::Lost(why) => may_have_been_made(&why),
        }
    }
}

fn may_have_been_made(why: &str) -> CapabilityError {
    let message = format!("{why}; the change may have been made: look at the calendar before trying again");
    failed(CapabilityErrorCode::OutcomeUnknown, message)
}

fn was_cancelled() -> CapabilityError {
    failed(CapabilityErrorCode::Conflict, "the event has been cancelled in the meantime")
}

fn has_changed() -> CapabilityError {
    failed(CapabilityErrorCode::Conflict, "the event has changed since it was looked up; look again")
}
