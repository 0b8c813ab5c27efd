//! Receives what another node has signed.

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use quarterdeck_contracts::ErrorType;

use super::signature::{NODE_HEADER, SignatureError, SignedParts};
use super::{NodeRequest, Nodes};
use crate::caller::Peer;
use crate::error::ApiError;
use crate::input;

/// Whether a path is for other nodes alone.
pub(crate) fn is_node_path(path: &str) -> bool {
    path.strip_prefix("/api/nodes").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Verifies the signature of a request that has one. What another node passes on then comes from the client's peer, with
/// [`NodeRequest`] among its extensions.
pub(crate) async fn receive(
    nodes: &Nodes,
    request: Request,
    max_body_bytes: usize,
) -> Result<Request, ApiError> {
    let (mut parts, body) = request.into_parts();
    let Some(signature) = parts.headers.remove(NODE_HEADER) else {
        return Ok(Request::from_parts(parts, body));
    };
    // Only other nodes know which process this is, so that nothing is read of what anyone else sends.
    nodes.key.check_addressee(&signature).map_err(|error| refuse(&error))?;
    // How deep its JSON may nest is for the route to say.
    let body = input::json_bytes_within(body, max_body_bytes, usize::MAX).await?;
    let signed = SignedParts { method: &parts.method, uri: &parts.uri, body: &body };
    let request = nodes.key.verify(&signature, &signed, nodes.now_ms()).map_err(|error| refuse(&error))?;
    if let Some(client) = request.client {
        parts.extensions.insert(Peer(client));
    }
    parts.extensions.insert(request);
    Ok(Request::from_parts(parts, Body::from(body)))
}

/// Refuses a request without a signature on a path for nodes, or one that is a client's.
pub(crate) fn refuse_unsigned(request: &Request) -> Result<(), ApiError> {
    match request.extensions().get::<NodeRequest>() {
        Some(NodeRequest { client: None, .. }) => Ok(()),
        _ => Err(refuse(&SignatureError::Invalid)),
    }
}

fn refuse(error: &SignatureError) -> ApiError {
    tracing::warn!(error = %error, "node request refused");
    match error {
        // The sender takes it for what it is: the node it wanted is gone.
        SignatureError::Misdirected => {
            ApiError::transient(error.to_string(), 1).with_status(StatusCode::MISDIRECTED_REQUEST)
        }
        _ => ApiError::new(ErrorType::Auth, error.to_string()),
    }
}
