//! What every client can be told, and why a client cannot be built.

use std::time::Duration;

/// How long a client waits, how much it takes, and how often it tries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Until a connection stands.
    pub connect: Duration,
    /// From sending the request to the first byte of the answer's body. Models that think first are slow here.
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// For the whole answer with all its tries. A server that sends nothing but keep-alives ends here.
    pub whole: Duration,
    /// Size of an answer, in bytes.
    pub response: usize,
    /// Size of one event of an answer, in bytes.
    pub event: usize,
    /// How often a request is tried again while nothing of its answer has been handed on.
    pub retries: u32,
    /// The first pause before another try. It doubles each time, up to eight seconds.
    pub backoff: Duration,
    /// The longest pause that a provider may ask for. A longer one is reported at once instead of waited for.
    pub max_retry_delay: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(90),
            idle: Duration::from_secs(60),
            whole: Duration::from_secs(15 * 60),
            response: 16 << 20,
            event: 4 << 20,
            retries: 2,
            backoff: Duration::from_millis(500),
            max_retry_delay: Duration::from_secs(20),
        }
    }
}

/// Why a client cannot be built from its settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The address is none that can be asked.
    #[error("the base URL of {provider} {reason}")]
    BaseUrl {
        /// Which provider.
        provider: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no key, and the provider wants one.
    #[error("{provider} needs a key")]
    NoKey {
        /// Which provider.
        provider: &'static str,
    },
    /// A setting that is sent in a header has characters that no header can have.
    #[error("the {what} of {provider} has characters that cannot be sent in a header")]
    Header {
        /// Which provider.
        provider: &'static str,
        /// Which setting.
        what: &'static str,
    },
    /// The model's name is empty, or none that can stand in an address.
    #[error("the model's name of {provider} is empty or has characters that model names do not have")]
    Model {
        /// Which provider.
        provider: &'static str,
    },
    /// A setting that the model does not take.
    #[error("{model} of {provider} takes no `{option}`")]
    Option {
        /// Which provider.
        provider: &'static str,
        /// Which model.
        model: String,
        /// Which setting, by its name on the wire.
        option: &'static str,
    },
    /// The HTTP client does not start.
    #[error("the HTTP client cannot start")]
    Client(#[source] reqwest::Error),
}
