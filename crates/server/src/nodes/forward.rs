//! Passes a request on to the node that has its session.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, Request, Response, StatusCode, header};
use bytes::Bytes;
use http_body_util::Full;
use quarterdeck_contracts::ErrorType;
use quarterdeck_runtime::{ForwardOutcome, Holder, Metrics};

use super::Nodes;
use super::client::{self, NodeBody, SendError};
use super::kept_request::KeptRequest;
use super::signature::{NODE_HEADER, SignedParts};
use crate::error::ApiError;

/// How often a node that has not begun its answer is asked whether it is alive: an answer may take minutes, and a process
/// that was paused never gives one.
const HEAD_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Headers that belong to one connection.
const CONNECTION_HEADERS: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

impl Nodes {
    /// Answers a request by the node that has its session. Its body is passed through as it comes.
    pub(crate) async fn forward(
        &self,
        request: &KeptRequest,
        to: &Holder,
        metrics: &Metrics,
    ) -> axum::response::Response {
        let (outcome, response) = match self.pass_on(request, to).await {
            Ok(response) => (ForwardOutcome::Answered, response.map(Body::new)),
            Err(error) => {
                tracing::warn!(node = to.node, error = %error, "request could not be passed on");
                let outcome = match error {
                    SendError::Unreachable(_) | SendError::Busy => ForwardOutcome::Unreachable,
                    SendError::Lost(_) => ForwardOutcome::Lost,
                };
                (outcome, to_api_error(&error).in_form_of(&request.uri))
            }
        };
        metrics.record_forwarded(outcome);
        response
    }

    async fn pass_on(&self, request: &KeptRequest, to: &Holder) -> Result<Response<NodeBody>, SendError> {
        let unsent = |what: &str| SendError::Unreachable(what.to_owned());
        let body = request.body().ok_or_else(|| unsent("its body is too large"))?;
        let KeptRequest { method, uri, headers, peer, .. } = request;
        let signed = SignedParts { method, uri, body: &body };
        let signature = self.key.sign(&signed, &to.boot, Some(*peer), self.now_ms());
        let signature = signature.ok_or_else(|| unsent("its name cannot stand in a header"))?;
        let mut headers = headers.clone();
        remove_connection_headers(&mut headers);
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(NODE_HEADER, signature);
        let mut sent = Request::new(Full::new(body));
        *sent.method_mut() = method.clone();
        *sent.uri_mut() = origin_form(uri).ok_or_else(|| unsent("its target is not valid"))?;
        *sent.headers_mut() = headers;
        let mut response = self.wait_for_head(to, sent).await?;
        remove_connection_headers(response.headers_mut());
        Ok(response)
    }

    async fn wait_for_head(
        &self,
        to: &Holder,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<NodeBody>, SendError> {
        let permit = self.slots.clone().try_acquire_owned().map_err(|_| SendError::Busy)?;
        let mut sending = std::pin::pin!(client::send(&to.address, request, permit));
        loop {
            if let Ok(response) = tokio::time::timeout(HEAD_CHECK_INTERVAL, &mut sending).await {
                return response;
            }
            if !self.is_alive(to).await {
                return Err(SendError::Lost("it is not alive any more".to_owned()));
            }
        }
    }
}

/// A target without scheme and host, as a server expects it.
fn origin_form(uri: &axum::http::Uri) -> Option<axum::http::Uri> {
    uri.path_and_query().map_or("/", |target| target.as_str()).parse().ok()
}

fn remove_connection_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in CONNECTION_HEADERS.iter().chain(&named) {
        headers.remove(name);
    }
}

/// A node that cannot be reached has done nothing, so the request may be sent again. One whose answer was lost may have
/// done it, and no program should send it again by itself.
fn to_api_error(error: &SendError) -> ApiError {
    match error {
        SendError::Unreachable(_) => ApiError::transient(
            "The node that has this conversation cannot be reached. Nothing was done; try again in a few seconds.",
            5,
        ),
        SendError::Busy => ApiError::transient("The server is busy. Try again.", 2),
        SendError::Lost(_) => {
            let message = "The node that has this conversation stopped before it answered. It is not known whether \
                           the request was carried out; load the conversation to see.";
            let error = ApiError::new(ErrorType::Transient, message).with_status(StatusCode::BAD_GATEWAY);
            ApiError { should_retry: Some(false), ..error }
        }
    }
}
