//! `/mcp`: the registry for MCP clients. The protocol is `quarterdeck-mcp-server`'s; here it is decided who asks.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use http_body_util::Full;
use quarterdeck_contracts::ErrorType;
use quarterdeck_mcp_server::{ApprovalPages, McpCaller};

use super::resource_metadata::base_url;
use crate::app::App;
use crate::caller::{Caller, Credential, Peer};
use crate::error::ApiError;
use crate::identity::Identity;
use crate::input;
use crate::nodes::{Place, names_no_session, split_mark};

pub(super) const PATH: &str = "/mcp";
const SESSION_HEADER: &str = "mcp-session-id";
/// The pages of `approvals.rs`, without the id.
const APPROVALS_PATH: &str = "/approvals";

pub(super) async fn serve(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Result<Response, ApiError> {
    let Some(mcp) = &app.mcp else {
        return Err(ApiError::new(ErrorType::Unavailable, "MCP is turned off on this server."));
    };
    let (mut parts, body) = request.into_parts();
    // Read here, because a body may not take for ever, and not nest for ever; and before it is passed on.
    let body =
        input::json_bytes_within(body, app.settings.max_body_bytes, app.settings.max_json_depth).await?;
    go_to_its_node(&app, &caller, &mut parts.headers).await?;
    parts.extensions.insert(mcp_caller(&app.identity, caller));
    if let Some(base) = base_url(&app, peer, &parts.headers) {
        // A page is at the node that asks.
        let node = app.nodes.as_ref().map(|nodes| format!("/{}", nodes.name())).unwrap_or_default();
        parts.extensions.insert(ApprovalPages { base_url: format!("{base}{APPROVALS_PATH}{node}") });
    }
    let mut response = mcp.handle(Request::from_parts(parts, Full::new(body))).await;
    let id = response.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok());
    let marked = app.nodes.as_ref().zip(id).and_then(|(nodes, id)| nodes.mark(id).parse().ok());
    if let Some(marked) = marked {
        response.headers_mut().insert(SESSION_HEADER, marked);
    }
    Ok(response.map(Body::new))
}

/// A session is in the memory of one node, which its id names, so that the client needs no luck with the load balancer.
/// Clients that have none are served by one node each.
async fn go_to_its_node(app: &App, caller: &Caller, headers: &mut HeaderMap) -> Result<(), ApiError> {
    let Some(nodes) = &app.nodes else { return Ok(()) };
    let failed = |error| ApiError::store("node was not found", &error);
    let marked = headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()).and_then(split_mark);
    if let Some((id, node)) = marked {
        let id = HeaderValue::from_str(id).map_err(|_| not_found())?;
        return match nodes.find_node(node).await.map_err(failed)? {
            Place::Here => {
                headers.insert(SESSION_HEADER, id);
                Ok(())
            }
            Place::Elsewhere(holder) => Err(ApiError::held_by(holder)),
            // By its protocol, the client opens another one.
            Place::Gone => Err(not_found()),
        };
    }
    // A new client may be another one each time; it has nothing to come back to.
    if caller.is_forwarded || caller.credential == Credential::None || !names_no_session(headers) {
        return Ok(());
    }
    match nodes.find_home(&caller.client.id).await.map_err(failed)? {
        Some(home) => Err(ApiError::held_by(home)),
        None => Ok(()),
    }
}

fn not_found() -> ApiError {
    ApiError::not_found("Session not found.")
}

/// Who asks. A program on this machine needs no credential, and keeps no cookie: it is known by its name.
fn mcp_caller(identity: &Arc<Identity>, caller: Caller) -> McpCaller {
    let named = |kind: &'static str| {
        let identity = identity.clone();
        McpCaller::LocalProgram(Arc::new(move |name| identity.local_program(&format!("{kind} {name}"))))
    };
    match caller.credential {
        // All users of this machine are one to us, and so are all who have the operators' token.
        Credential::None if caller.is_verified => named("operator's MCP client"),
        Credential::None if caller.client.address.is_none() => named("MCP client"),
        Credential::None => McpCaller::Unknown(caller.client),
        Credential::Bearer | Credential::SessionToken(_) | Credential::Cookie | Credential::ProgramKey => {
            McpCaller::Known(caller.client)
        }
    }
}
