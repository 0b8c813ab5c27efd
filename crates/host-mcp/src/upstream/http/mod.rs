//! Streamable HTTP: the SDK's protocol on our own client, which checks addresses, follows no redirects and reads within limits.

mod client;
mod dial;
mod oauth;
#[cfg(not(feature = "fuzzing"))]
mod sse;
#[cfg(feature = "fuzzing")]
pub(crate) mod sse;

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{DynamicTransportError, Transport};

use self::client::{HttpClient, HttpFailure};
use super::inbound::Inbound;
use crate::server_config::{HttpConfig, UpstreamLimits};

/// A stream of the server's that breaks is opened again, with pauses up to this.
const MAX_STREAM_PAUSE: Duration = Duration::from_secs(60);

/// A transport that has not sent anything yet.
pub(crate) fn transport(
    config: &HttpConfig,
    limits: &UpstreamLimits,
    inbound: Arc<Inbound>,
) -> Result<impl Transport<RoleClient> + 'static, String> {
    let client = HttpClient::new(config, inbound)?;
    let mut retries = ExponentialBackoff::default();
    retries.max_delay = Some(MAX_STREAM_PAUSE);
    let mut transport = StreamableHttpClientTransportConfig::with_uri(config.url.as_str())
        // One more than the calls, so that the list can be read while all of them wait.
        .max_concurrent_requests(limits.max_concurrent_calls + 1)
        .max_sse_event_size(limits.max_message_bytes)
        // It would send a call again, and nothing is sent twice.
        .reinit_on_expired_session(false);
    transport.retry_config = Arc::new(retries);
    Ok(StreamableHttpClientTransport::with_client(client, transport))
}

/// What became of a request that the SDK could not send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SendFailure {
    /// The server is not there, or does not know the session any more. It did not get the request, and will get no other.
    Gone(String),
    /// The server did not get it, or refused it before it did anything.
    NotAccepted(String),
    /// It is not known whether the server got it.
    Unknown(String),
    /// The server has too much to do.
    Busy { retry_after: Option<Duration> },
    /// The server answered with something that is no answer.
    Invalid(String),
}

/// Reads the SDK's error.
pub(crate) fn classify(error: &DynamicTransportError) -> SendFailure {
    let Some(error) = error.error.downcast_ref::<StreamableHttpError<HttpFailure>>() else {
        return SendFailure::Unknown(error.error.to_string());
    };
    match error {
        StreamableHttpError::Client(HttpFailure::NotAccepted(why)) => SendFailure::NotAccepted(why.clone()),
        StreamableHttpError::Client(HttpFailure::Invalid(why)) => SendFailure::Invalid(why.clone()),
        StreamableHttpError::Client(HttpFailure::Unreachable(why)) => SendFailure::Gone(why.clone()),
        StreamableHttpError::SessionExpired => {
            SendFailure::Gone("the server has forgotten the session".to_owned())
        }
        StreamableHttpError::HttpStatus(status) if status.status == 429 => SendFailure::Busy {
            retry_after: status
                .retry_after
                .as_deref()
                .and_then(|text| text.parse().ok())
                .map(Duration::from_secs),
        },
        StreamableHttpError::HttpStatus(status) => SendFailure::Unknown(format!("HTTP {}", status.status)),
        other => SendFailure::Unknown(other.to_string()),
    }
}

/// Why a connection could not be made, for the operator.
pub(crate) fn describe(error: &DynamicTransportError) -> String {
    match classify(error) {
        SendFailure::Gone(why)
        | SendFailure::NotAccepted(why)
        | SendFailure::Unknown(why)
        | SendFailure::Invalid(why) => why,
        SendFailure::Busy { .. } => "HTTP 429".to_owned(),
    }
}

/// The innermost reason: the outer ones repeat the URL, which may hold something secret.
fn describe_error(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
