//! Links to video calls from a template: one room for all, or a room for each appointment.

use std::future::ready;

use quarterdeck_contracts::handler::{BoxFuture, CapabilityError};
use quarterdeck_contracts::{ConferenceProvider, ConferenceRequest};

/// `https://meet.example/{id}`.
pub struct ConferenceTemplate(String);

impl ConferenceTemplate {
    /// `{id}` becomes the appointment's own part.
    pub fn new(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl ConferenceProvider for ConferenceTemplate {
    fn is_outside(&self) -> bool {
        false
    }

    fn create(&self, request: ConferenceRequest) -> BoxFuture<Result<String, CapabilityError>> {
        Box::pin(ready(Ok(self.0.replace("{id}", &request.key))))
    }
}
