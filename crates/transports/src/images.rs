//! One request for one image. It costs money, so it is sent once, whatever comes of it.

use std::time::Duration;

use quarterdeck_contracts::{ChatErrorKind, ImageError, ImageErrorKind};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::endpoint::Endpoint;
use crate::http::{deadline_after, error_chain, error_response};
use crate::{Fault, Limits};

/// Limits for images: nothing comes for a long time, and then a lot at once. Retries do not apply.
pub(crate) fn image_limits() -> Limits {
    Limits { total: Duration::from_secs(100), response: 32 << 20, ..Limits::default() }
}

/// Sends a request once, and gives the body of a successful answer.
pub(crate) async fn send_once(endpoint: &Endpoint, body: &Value) -> Result<Vec<u8>, ImageError> {
    let deadline = deadline_after(endpoint.limits.total);
    let answer = match timeout_at(deadline, endpoint.post(body).send()).await {
        Err(_) => Err(timed_out(&endpoint.limits)),
        Ok(Err(error)) => Err(send_failed(error)),
        Ok(Ok(response)) if response.status().is_success() => {
            read_body(response, &endpoint.limits, deadline).await
        }
        Ok(Ok(response)) => Err(refused(response, deadline).await),
    };
    answer.map_err(|error| ImageError { detail: endpoint.redact(error.detail), ..error })
}

async fn read_body(
    mut response: Response,
    limits: &Limits,
    deadline: Instant,
) -> Result<Vec<u8>, ImageError> {
    let mut body = Vec::new();
    loop {
        match timeout_at(deadline, response.chunk()).await {
            Err(_) => return Err(timed_out(limits)),
            Ok(Err(error)) => return Err(unknown(format!("the connection broke: {}", error_chain(error)))),
            Ok(Ok(None)) => return Ok(body),
            Ok(Ok(Some(bytes))) if body.len() + bytes.len() > limits.response => {
                return Err(unknown(format!("the answer is larger than {} bytes", limits.response)));
            }
            Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
        }
    }
}

/// An answer with an error status.
async fn refused(response: Response, deadline: Instant) -> ImageError {
    let status = response.status();
    let fault = error_response(response, deadline).await;
    let kind = kind_of(&fault, Some(status));
    ImageError { kind, detail: fault.detail, retry_after: fault.retry_after }
}

/// An error object where an image was expected, with a status that says that all is well.
pub(crate) fn error_in_body(body: &[u8]) -> Option<ImageError> {
    let fault = Fault::from_body(body)?;
    Some(ImageError { kind: kind_of(&fault, None), detail: fault.detail, retry_after: fault.retry_after })
}

fn kind_of(fault: &Fault, status: Option<StatusCode>) -> ImageErrorKind {
    match fault.kind {
        ChatErrorKind::Refused => ImageErrorKind::Refused,
        ChatErrorKind::Unauthorised => ImageErrorKind::Unauthorised,
        ChatErrorKind::RateLimited if fault.is_quota_exhausted => ImageErrorKind::Rejected,
        ChatErrorKind::RateLimited => ImageErrorKind::RateLimited,
        ChatErrorKind::Rejected | ChatErrorKind::TooLong => ImageErrorKind::Rejected,
        // Turned away at the door. After any other failure of the server the work may have been done.
        _ if status == Some(StatusCode::SERVICE_UNAVAILABLE) => ImageErrorKind::Unavailable,
        _ => ImageErrorKind::Unknown,
    }
}

fn send_failed(error: reqwest::Error) -> ImageError {
    if error.is_connect() {
        let detail = format!("no connection: {}", error_chain(error));
        return ImageError::new(ImageErrorKind::Unavailable, detail);
    }
    unknown(format!("the connection broke before an answer came: {}", error_chain(error)))
}

fn timed_out(limits: &Limits) -> ImageError {
    unknown(format!("the answer was not complete after {:?}", limits.total))
}

/// The image in a text of the answer.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, ImageError> {
    let decoded = base64_simd::STANDARD.decode_to_vec(text);
    decoded.map_err(|_| unknown("the image is not base64"))
}

pub(crate) fn unknown(detail: impl Into<String>) -> ImageError {
    ImageError::new(ImageErrorKind::Unknown, detail)
}
