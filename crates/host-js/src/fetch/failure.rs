//! Why nothing was fetched: what the handler learns, and what the operator reads.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};

use super::address::Refusal;

/// A failed fetch. Addresses are for the log alone: a handler that learned them can map a private network.
#[derive(Debug)]
pub(crate) struct FetchFailure {
    pub(crate) error: CapabilityError,
    /// A line for the operator's log.
    pub(crate) log_line: Option<String>,
}

impl FetchFailure {
    pub(crate) fn new(error: CapabilityError, log_line: String) -> Self {
        Self { error, log_line: Some(log_line) }
    }

    /// A host that does not exist, does not answer or lies at a private address looks the same to a handler.
    pub(crate) fn of_sending(host: &str, error: &reqwest::Error) -> Self {
        let refusal = refusal_in(error);
        let what = if refusal.is_some() || error.is_connect() { "cannot be reached" } else { "broke off" };
        let error = CapabilityError::new(CapabilityErrorCode::NotAvailable, format!("{host} {what}"));
        match refusal {
            Some(refusal) => Self::new(error, format!("fetch refused: {host} was looked up, and {refusal}")),
            None => Self::from(error),
        }
    }
}

impl From<CapabilityError> for FetchFailure {
    fn from(error: CapabilityError) -> Self {
        Self { error, log_line: None }
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
