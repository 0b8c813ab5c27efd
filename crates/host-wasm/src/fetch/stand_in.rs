//! Answers in place of the network, for tests of a tool.

use std::fmt;
use std::sync::Arc;

/// Knows which sessions do not use the network.
pub trait FetchStandIn: fmt::Debug + Send + Sync {
    /// What answers the requests of a session, or `None` when they go out.
    fn for_session(&self, session_id: &str) -> Option<Arc<dyn FetchAnswers>>;
}

/// Answers the requests of one session.
pub trait FetchAnswers: Send + Sync {
    /// The answer to one request. The URL has no secret in it.
    fn answer(&self, method: &str, url: &str) -> StandInAnswer;
}

/// The answer to a request that was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandInAnswer {
    /// What a server would have answered.
    Response {
        /// The status, such as 200.
        status: u16,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// The body, as bytes.
        body: Vec<u8>,
    },
    /// As if the host could not be reached.
    Unreachable,
    /// There is no answer to this request, and why.
    Unknown(String),
}
