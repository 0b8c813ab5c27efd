//! Why nothing was fetched: what the handler learns, and what the operator reads.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};

use super::redaction::Redactor;
use quarterdeck_outbound::Refusal;

/// A failed fetch. Addresses are for the log alone: a handler that learned them can map a private network.
#[derive(Debug)]
pub(crate) struct FetchFailure {
    pub(crate) error: CapabilityError,
    /// A line for the operator's log.
    pub(crate) log_line: Option<String>,
}

/// Where a request went that failed.
pub(crate) struct Destination<'a> {
    pub(crate) tool: &'a str,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
}

impl FetchFailure {
    pub(crate) fn new(error: CapabilityError, log_line: String) -> Self {
        Self { error, log_line: Some(log_line) }
    }

    /// A host that does not exist, does not answer or lies at a private address looks the same to a handler.
    pub(crate) fn of_sending(to: &Destination<'_>, error: &reqwest::Error) -> Self {
        let Destination { tool, host, port } = to;
        let refusal = refusal_in(error);
        let message = if refusal.is_some() || error.is_connect() {
            format!(
                "{host} cannot be reached; a private host must be opened by an operator, with `private_hosts` under [tools.{tool}]"
            )
        } else {
            format!("{host} broke off")
        };
        let error = CapabilityError::new(CapabilityErrorCode::NotAvailable, message);
        let Some(refusal) = refusal else { return error.into() };
        let help = match refusal {
            Refusal::NotPublic(_) => {
                format!("private_hosts = [\"{host}:{port}\"] under [tools.{tool}] opens it")
            }
            Refusal::NotOpened(_) => format!("open the address itself under [tools.{tool}] if that is meant"),
        };
        Self::new(error, format!("fetch refused: {host} was looked up, and {refusal}; {help}"))
    }

    /// Without the tool's secrets, wherever a server has put them.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        self.error.message = redactor.hide_in_text(&self.error.message);
        self.log_line = self.log_line.map(|line| redactor.hide_in_text(&line));
        self
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
