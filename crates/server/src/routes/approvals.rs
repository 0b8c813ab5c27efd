//! `/approvals/{id}`: where a user approves a call of an MCP client that cannot ask.
//!
//! The link is known to the model, so it approves nothing. It is decided by the user of the client that made the call,
//! or at the machine of a server that no other machine can reach; and reading the page decides nothing.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use quarterdeck_contracts::ConfirmationAnswer;
use quarterdeck_mcp_server::{ApprovalError, Approver, McpServer};
use url::form_urlencoded;

use crate::app::App;
use crate::approval_page::{self, ApprovalProof};
use crate::caller::{Caller, Credential};
use crate::error::ApiError;
use crate::identity::Identity;
use crate::input::{self, Id};
use crate::nodes::Place;
use crate::origin::Origin;

pub(super) const PATH: &str = "/approvals/{id}";
/// The same where several nodes share a store: the page is at the node that asks.
pub(crate) const NODE_PATH: &str = "/approvals/{node}/{id}";

/// The first line of what is signed.
const PURPOSE: &str = "approval";
const MAX_FORM_BYTES: usize = 16 << 10;
const NOT_ALLOWED: &str = "Only the user of the client that made the call may see it and decide.";
const NOT_FOUND: &str = "This link has expired, or was never valid. Let your assistant make the call again.";

/// Who decides: the id of a client, or nothing for a browser on this machine.
struct Decider {
    client: String,
}

/// What a page sends.
#[derive(Default)]
struct Form {
    decision: String,
    client: String,
    proof: String,
    key: String,
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
) -> Result<Response, ApiError> {
    let Some(mcp) = app.mcp.as_ref().map(|mcp| mcp.server()) else {
        return approval_page::not_found(NOT_FOUND);
    };
    match Decider::of(&caller) {
        Some(decider) => decider.show(&app, mcp, &id),
        None => match mcp.find_approval(&id, None) {
            Err(ApprovalError::NotFound) => approval_page::not_found(NOT_FOUND),
            _ => approval_page::sign_in(NOT_ALLOWED, app.identity.can_verify()),
        },
    }
}

pub(super) async fn post(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let Some(mcp) = app.mcp.as_ref().map(|mcp| mcp.server()) else {
        return approval_page::not_found(NOT_FOUND);
    };
    // A browser names the page that sends a form. Programs do not.
    if caller.origin != Origin::Own || !headers.contains_key(header::ORIGIN) {
        return Err(ApiError::validation("Decide on the page itself: open the link in a browser."));
    }
    let bytes = input::json_bytes_within(body, MAX_FORM_BYTES, MAX_FORM_BYTES).await?;
    let form = Form::parse(&bytes);
    let decision = match form.decision.as_str() {
        "approve" => ConfirmationAnswer::Approve,
        "deny" => ConfirmationAnswer::Deny,
        _ => {
            let decider = app.identity.by_bearer(&form.key).ok().map(|client| Decider { client: client.id });
            return match decider {
                Some(decider) => decider.show(&app, mcp, &id),
                None => approval_page::sign_in("This key is not valid.", app.identity.can_verify()),
            };
        }
    };
    let decider = Decider { client: form.client };
    let is_shown = app.identity.is_signed_for(PURPOSE, &decider.signed(&id), &form.proof);
    if !is_shown || (decider.client.is_empty() && !caller.is_this_machine) {
        return approval_page::sign_in(NOT_ALLOWED, app.identity.can_verify());
    }
    match mcp.decide_approval(&id, Some(decider.approver()), decision) {
        Ok(view) => approval_page::decided(view.decision.unwrap_or(ConfirmationAnswer::Deny)),
        Err(ApprovalError::Decided) => approval_page::decided(ConfirmationAnswer::Deny),
        Err(ApprovalError::NotFound) => approval_page::not_found(NOT_FOUND),
        Err(ApprovalError::NotAllowed) => approval_page::sign_in(NOT_ALLOWED, app.identity.can_verify()),
    }
}

pub(super) async fn get_at(
    app: State<Arc<App>>,
    caller: Extension<Caller>,
    Path((node, id)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    match find_node(&app, &node).await? {
        true => get(app, caller, Id(id)).await,
        false => approval_page::not_found(NOT_FOUND),
    }
}

pub(super) async fn post_at(
    app: State<Arc<App>>,
    caller: Extension<Caller>,
    Path((node, id)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    // The body is read here, so that it is there to be passed on.
    let body = input::json_bytes_within(body, MAX_FORM_BYTES, MAX_FORM_BYTES).await?;
    match find_node(&app, &node).await? {
        true => post(app, caller, Id(id), headers, Body::from(body)).await,
        false => approval_page::not_found(NOT_FOUND),
    }
}

/// Whether this is the node; `false` if there is none of that name.
async fn find_node(app: &App, node: &str) -> Result<bool, ApiError> {
    let Some(nodes) = &app.nodes else { return Ok(false) };
    let found = nodes.find_node(node).await;
    match found.map_err(|error| ApiError::store("node was not found", &error))? {
        Place::Here => Ok(true),
        Place::Elsewhere(holder) => Err(ApiError::held_by(holder)),
        Place::Gone => Ok(false),
    }
}

impl Decider {
    /// Who asks, as far as the request itself shows it.
    fn of(caller: &Caller) -> Option<Self> {
        if caller.is_this_machine {
            return Some(Self { client: String::new() });
        }
        (caller.credential != Credential::None).then(|| Self { client: caller.client.id.clone() })
    }

    fn approver(&self) -> Approver<'_> {
        if self.client.is_empty() { Approver::ThisMachine } else { Approver::Client(&self.client) }
    }

    fn signed<'a>(&'a self, id: &'a str) -> [&'a str; 2] {
        [id, &self.client]
    }

    fn proof(&self, identity: &Identity, id: &str) -> ApprovalProof {
        let signature = identity.sign_for(PURPOSE, &self.signed(id));
        ApprovalProof { client: self.client.clone(), signature }
    }

    fn show(&self, app: &App, mcp: &McpServer, id: &str) -> Result<Response, ApiError> {
        match mcp.find_approval(id, Some(self.approver())) {
            Ok(view) => match view.decision {
                Some(decision) => approval_page::decided(decision),
                None => {
                    let proof = self.proof(&app.identity, id);
                    approval_page::question(&view, &proof, app.orchestrator.now_ms())
                }
            },
            Err(ApprovalError::NotAllowed) => approval_page::sign_in(NOT_ALLOWED, app.identity.can_verify()),
            Err(ApprovalError::NotFound | ApprovalError::Decided) => approval_page::not_found(NOT_FOUND),
        }
    }
}

impl Form {
    /// Fields that are not there are empty, and others are not looked at.
    fn parse(bytes: &[u8]) -> Self {
        let mut form = Self::default();
        for (name, value) in form_urlencoded::parse(bytes) {
            let field = match &*name {
                "decision" => &mut form.decision,
                "client" => &mut form.client,
                "proof" => &mut form.proof,
                "key" => &mut form.key,
                _ => continue,
            };
            *field = value.into_owned();
        }
        form
    }
}
