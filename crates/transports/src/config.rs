//! Limits that every client has, and configuration errors.

use std::time::Duration;

/// Timeouts, sizes and retries of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Until the connection is established.
    pub connect: Duration,
    /// From sending the request to the first byte of the answer's body. Models that think first are slow here.
    pub first_byte: Duration,
    /// Between two chunks of an answer.
    pub idle: Duration,
    /// For the whole answer with all its retries. A server that sends nothing but keep-alives ends here.
    pub total: Duration,
    /// Size of an answer, in bytes.
    pub response: usize,
    /// Size of one event of an answer, in bytes.
    pub event: usize,
    /// How often a request is retried while no event of its answer has been emitted.
    pub retries: u32,
    /// The delay before the first retry. It doubles each time, up to eight seconds.
    pub backoff: Duration,
    /// The longest delay that a provider may ask for. A longer one is reported at once.
    pub max_retry_delay: Duration,
}

impl Limits {
    /// How long a server on this machine may take to begin: it may have to load the model first.
    pub const LOCAL_FIRST_BYTE: Duration = Duration::from_secs(5 * 60);
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(15 * 60),
            response: 16 << 20,
            event: 4 << 20,
            retries: 2,
            backoff: Duration::from_millis(500),
            max_retry_delay: Duration::from_secs(20),
        }
    }
}

/// A setting that a client cannot be built with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The base URL cannot be used.
    #[error("the base URL of {provider} {reason}")]
    BaseUrl { provider: &'static str, reason: String },
    /// The key is missing.
    #[error("{provider} needs a key")]
    NoKey { provider: &'static str },
    /// A setting has characters that a header cannot have.
    #[error("the {what} of {provider} has characters that cannot be sent in a header")]
    Header { provider: &'static str, what: &'static str },
    /// The model's name is empty or malformed.
    #[error("the model's name of {provider} is empty or has characters that model names do not have")]
    Model { provider: &'static str },
    /// The model does not take a setting.
    #[error("{model} of {provider} takes no `{option}`")]
    Option {
        provider: &'static str,
        model: String,
        /// Its name on the wire.
        option: &'static str,
    },
    /// The HTTP client does not start.
    #[error("the HTTP client cannot start")]
    Client(#[source] reqwest::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_as_long_to_begin_as_the_reference_says() {
        assert_eq!(Limits::default().first_byte, Duration::from_secs(60));
    }
}
