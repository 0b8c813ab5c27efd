//! Why nothing was fetched: what the handler is told, and what the operator reads.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};

use super::address::Refusal;

/// A failed fetch. Addresses are for the log alone: a handler that is told them can map a private network.
#[derive(Debug)]
pub(crate) struct FetchFailure {
    pub(crate) told: CapabilityError,
    /// A line for the operator's log.
    pub(crate) logged: Option<String>,
}

impl FetchFailure {
    pub(crate) fn new(told: CapabilityError, logged: String) -> Self {
        Self { told, logged: Some(logged) }
    }

    /// A host that does not exist, does not answer or lies at a private address is the same to a handler.
    pub(crate) fn of_sending(host: &str, error: &reqwest::Error) -> Self {
        let refusal = refusal_in(error);
        let what = if refusal.is_some() || error.is_connect() { "cannot be reached" } else { "broke off" };
        let told = CapabilityError::new(CapabilityErrorCode::NotAvailable, format!("{host} {what}"));
        match refusal {
            Some(refusal) => Self::new(told, format!("fetch refused: {host} was looked up, and {refusal}")),
            None => Self::from(told),
        }
    }
}

impl From<CapabilityError> for FetchFailure {
    fn from(told: CapabilityError) -> Self {
        Self { told, logged: None }
    }
}

/// The reason of a refused dial lies deep in the chain; the chain's other words say nothing more.
fn refusal_in(error: &reqwest::Error) -> Option<Refusal> {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = source {
        if let Some(refusal) = error.downcast_ref::<Refusal>() {
            return Some(*refusal);
        }
        source = error.source();
    }
    None
}
