//! Session tokens: who a client is where its browser sends no cookie.
//!
//! A page of another site, or one in a frame, often cannot keep a cookie. It gets a token with the start of each answer and
//! returns it in a header. The token names an anonymous client and the conversation it was given in, is signed for one
//! origin, and expires; every answer brings a new one. It counts in its header alone, so that no address and no log holds it.

use std::fmt;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use quarterdeck_contracts::ErrorType;
use quarterdeck_runtime::is_valid_id;
use serde_json::json;

use crate::error::ApiError;
use crate::identity::Identity;

pub(crate) const SESSION_HEADER: HeaderName = HeaderName::from_static("x-quarterdeck-session");
pub(crate) const SESSION_TOKEN_TTL: Duration = Duration::from_secs(24 * 3_600);
/// The first line of what is signed.
const PURPOSE: &str = "session-token";
/// The form, so that another one can be told from it.
const FORM: &str = "qds1";
/// No id holds it.
const SEPARATOR: char = '~';
pub(crate) const MAX_SESSION_TOKEN_BYTES: usize = 320;
/// How far the clock of another node may be ahead.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(300);

/// What a session token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionToken {
    /// An anonymous client; no other can be named.
    pub client: String,
    /// The conversation in whose stream it was given; `None` where there was none yet.
    pub session: Option<String>,
    /// When, in milliseconds since 1970.
    pub issued_ms: u64,
}

/// Why a session token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionTokenError {
    /// Not signed here for this origin. Which part is wrong is not told.
    #[error("not a session token of this server for this origin")]
    Invalid,
    /// Older than a day.
    #[error("the session token has expired")]
    Expired,
}

impl SessionToken {
    /// Reads what [`fmt::Display`] writes, and the signature behind it. A token has one spelling.
    pub fn parse(token: &str) -> Option<(Self, &str)> {
        if token.len() > MAX_SESSION_TOKEN_BYTES {
            return None;
        }
        let mut parts = token.split(SEPARATOR);
        let [form, client, session, issued, signature] = std::array::from_fn(|_| parts.next());
        if parts.next().is_some() || form? != FORM || !Identity::is_anonymous_id(client?) {
            return None;
        }
        let session = session.filter(|session| session.is_empty() || is_valid_id(session))?;
        let issued_ms = issued?.parse::<u64>().ok().filter(|ms| issued == Some(&*ms.to_string()))?;
        let session = (!session.is_empty()).then(|| session.to_owned());
        Some((Self { client: client?.to_owned(), session, issued_ms }, signature?))
    }

    /// The token as it is sent, signed for an origin.
    pub fn sign(&self, identity: &Identity, origin: &str) -> String {
        let signature = identity.sign_for(PURPOSE, &[origin, &self.to_string()]);
        format!("{self}{SEPARATOR}{signature}")
    }

    /// Accepts a token that was signed here for this origin and has not expired. The signature is compared in constant
    /// time, and before anything else is believed.
    pub fn verify(
        identity: &Identity,
        origin: &str,
        token: &str,
        now_ms: u64,
    ) -> Result<Self, SessionTokenError> {
        let (read, signature) = Self::parse(token).ok_or(SessionTokenError::Invalid)?;
        if !identity.is_signed_for(PURPOSE, &[origin, &read.to_string()], signature) {
            return Err(SessionTokenError::Invalid);
        }
        let millis = |time: Duration| time.as_millis() as u64;
        // One from the future was made before the clock was set back, and would live too long.
        let is_early = read.issued_ms > now_ms.saturating_add(millis(MAX_CLOCK_SKEW));
        let is_late = now_ms.saturating_sub(read.issued_ms) >= millis(SESSION_TOKEN_TTL);
        if is_early || is_late { Err(SessionTokenError::Expired) } else { Ok(read) }
    }
}

impl fmt::Display for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.session.as_deref().unwrap_or_default();
        write!(f, "{FORM}{SEPARATOR}{}{SEPARATOR}{session}{SEPARATOR}{}", self.client, self.issued_ms)
    }
}

/// The token of a request. One that does not hold is refused, never ignored: the client meant to be known by it.
pub(crate) fn of_request(
    headers: &HeaderMap,
    identity: &Identity,
    origin: &str,
    now_ms: u64,
) -> Result<Option<SessionToken>, ApiError> {
    let mut values = headers.get_all(SESSION_HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(refused("Send one `X-Quarterdeck-Session` header, not several."));
    }
    let token = value.to_str().unwrap_or_default();
    match SessionToken::verify(identity, origin, token, now_ms) {
        Ok(token) => Ok(Some(token)),
        Err(SessionTokenError::Invalid) => Err(refused(
            "The session token is not one of this server for this origin. Send the request again without \
             `X-Quarterdeck-Session` to start anew.",
        )),
        Err(SessionTokenError::Expired) => Err(refused(
            "The session token has expired. Send the request again without `X-Quarterdeck-Session` to start anew.",
        )),
    }
}

/// The detail tells a program which of its credentials to drop.
fn refused(message: &str) -> ApiError {
    let details = Some(json!({ "header": "X-Quarterdeck-Session" }));
    ApiError { details, ..ApiError::new(ErrorType::Auth, message) }
}

#[cfg(test)]
mod tests;
