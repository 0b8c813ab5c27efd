//! The providers of capabilities. What needs the session itself (messages, blocks, nested calls) is in
//! `pipeline/capabilities.rs`; everything else is a provider, and one more is one more entry.

mod calendar;
mod images;
pub(crate) mod knowledge;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode, CapabilityProvider};
use quarterdeck_contracts::{Calendar, Capability, Knowledge};

use self::calendar::CalendarProvider;
use self::knowledge::KnowledgeProvider;
use self::values::ValuesProvider;
use crate::claim::RequiredClaim;

pub use self::images::{FileLimits, Images};

/// Providers by the capability that they answer for.
pub(crate) struct Capabilities(BTreeMap<Capability, Arc<dyn CapabilityProvider>>);

impl Capabilities {
    /// Those that are built in, as far as their backends are there.
    pub(crate) fn new(
        calendar: Option<Arc<dyn Calendar>>,
        details_claim: Option<RequiredClaim>,
        manage_claim: Option<RequiredClaim>,
        knowledge: Option<Arc<dyn Knowledge>>,
    ) -> Self {
        let mut capabilities = Self(BTreeMap::new());
        capabilities.register(Arc::new(ValuesProvider));
        if let Some(calendar) = calendar {
            capabilities.register(Arc::new(CalendarProvider { calendar, details_claim, manage_claim }));
        }
        if let Some(knowledge) = knowledge {
            capabilities.register(Arc::new(KnowledgeProvider(knowledge)));
        }
        capabilities
    }

    /// Registers a provider, in the place of one of the same name.
    pub(crate) fn register(&mut self, provider: Arc<dyn CapabilityProvider>) {
        self.0.insert(provider.spec().capability(), provider);
    }

    pub(crate) fn find(&self, capability: &Capability) -> Option<&Arc<dyn CapabilityProvider>> {
        self.0.get(capability)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(Capability::as_str)
    }
}

fn invalid(message: impl Into<String>) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, message)
}
