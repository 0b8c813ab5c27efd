//! `calendar`: the site's calendars, as far as a client may see them.

use std::sync::Arc;

use quarterdeck_contracts::handler::{BoxFuture, CapabilityError, CapabilityProvider, CapabilityRequest};
use quarterdeck_contracts::{Calendar, CalendarViewer, CapabilitySpec, answer_calendar, built_in};
use serde_json::Value;

use crate::claim::RequiredClaim;
use crate::gates::ClientFacts;

pub(super) struct CalendarProvider {
    pub(super) calendar: Arc<dyn Calendar>,
    /// The claim that a client needs to see the details of events that it has not booked.
    pub(super) details_claim: Option<RequiredClaim>,
    /// The claim that a client needs to move and cancel events that it has not booked.
    pub(super) manage_claim: Option<RequiredClaim>,
}

impl CalendarProvider {
    fn viewer(&self, request: &CapabilityRequest) -> CalendarViewer {
        let client = request.scope.client();
        let facts = ClientFacts { authenticated: client.is_authenticated, claims: client.claims };
        let holds =
            |claim: &Option<RequiredClaim>| claim.as_ref().is_some_and(|claim| claim.is_met_by(&facts));
        CalendarViewer {
            client_id: client.id,
            sees_details: holds(&self.details_claim),
            may_manage: holds(&self.manage_claim),
            may_use_personal: facts.authenticated,
        }
    }
}

impl CapabilityProvider for CalendarProvider {
    fn spec(&self) -> CapabilitySpec {
        built_in::CALENDAR
    }

    fn call(&self, request: CapabilityRequest) -> BoxFuture<Result<Value, CapabilityError>> {
        let (calendar, viewer) = (self.calendar.clone(), self.viewer(&request));
        Box::pin(async move {
            let CapabilityRequest { method, args, scope } = request;
            answer_calendar(&*calendar, &viewer, &*scope, &method, &args).await
        })
    }
}
