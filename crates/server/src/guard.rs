//! Middleware in front of every route: host, origin, rate limit, identity, and the request log.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use quarterdeck_contracts::ErrorType;

use crate::app::App;
use crate::caller::{self, Caller, Peer};
use crate::error::{ApiError, HeldBy};
use crate::forwarded::Source;
use crate::host;
use crate::nodes::{self, KeptRequest, NodeRequest};
use crate::origin::{self, Origin};
use crate::request_log::{RequestLine, RequestLog};
use crate::routes::approvals;
use crate::routes::resource_metadata::point_to;
use crate::surface::Surface;

pub(crate) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let number = app.admission.next_request_number();
    let line = RequestLine::open(number, &request);
    if let Some(log) = line.handle() {
        request.extensions_mut().insert(log);
    }
    let route = request.extensions().get::<MatchedPath>().cloned();
    let path = route.as_ref().map_or("-", MatchedPath::as_str);
    let origin = Origin::of(request.headers(), path, &app.settings);
    let mut response = receive(&app, request, path, &origin, next).await;
    let headers = response.headers_mut();
    origin.allow(headers);
    if origin::is_open(path) {
        let anywhere = HeaderValue::from_static("cross-origin");
        headers.insert(HeaderName::from_static("cross-origin-resource-policy"), anywhere);
        // A copy that was loaded as a script must not stand in for one that a page may read.
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("x-request-id"), HeaderValue::from(number));
    line.follow(response)
}

/// Takes what another node has signed as that node says, and everything else as it is.
async fn receive(app: &Arc<App>, request: Request, path: &str, origin: &Origin, next: Next) -> Response {
    let uri = request.uri().clone();
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    let source = peer.map(|peer| caller::source(app, peer, request.headers()));
    // Guessing a signature is limited like every other request.
    let refuse = |error: ApiError| {
        let counted = source.map_or(Ok(()), |source| app.admission.count_refused(&source));
        counted.err().unwrap_or(error).in_form_of(&uri)
    };
    let request = match &app.nodes {
        Some(nodes) => match nodes::receive(nodes, request, app.settings.max_body_bytes).await {
            Ok(request) => request,
            Err(error) => return refuse(error),
        },
        None => request,
    };
    if !nodes::is_node_path(path) {
        return answer(app, request, path, origin, next).await;
    }
    match nodes::refuse_unsigned(&request) {
        Ok(()) => next.run(request).await,
        Err(error) => refuse(error),
    }
}

async fn answer(app: &Arc<App>, mut request: Request, path: &str, origin: &Origin, next: Next) -> Response {
    let is_forwarded = request.extensions().get::<NodeRequest>().is_some();
    let admitted = match find_source(app, &request, origin) {
        Ok(None) => Ok(Admitted::Preflight),
        // Before the credential is checked, so that guessing one is limited too. What was passed on has been counted.
        Ok(Some((peer, source))) => match is_forwarded {
            true => Ok(()),
            false => app.count_request(&source, Surface::of(path)).await,
        }
        .and_then(|()| identify(app, &request, (peer, source), origin)),
        Err(error) => Err(error),
    };
    match check_block(app, admitted, path).await {
        Ok(Admitted::Preflight) => preflight(&request),
        Ok(Admitted::Caller(caller)) => {
            if let Some(log) = request.extensions().get::<RequestLog>() {
                log.set_client(&caller.client.id);
            }
            let set_cookie = caller.set_cookie.clone();
            request.extensions_mut().insert(*caller);
            let (mut response, is_here) = run_where_its_session_is(app, request, path, next).await;
            // A file that any site loads and any cache keeps brings no cookie, and MCP clients keep none.
            let keeps_cookies = is_here && !origin::is_open(path) && Surface::of(path) != Some(Surface::Mcp);
            if let Some(cookie) = set_cookie.filter(|_| keeps_cookies) {
                response.headers_mut().append(header::SET_COOKIE, cookie);
            }
            response
        }
        Err(error) => {
            let mut response = error.in_form_of(request.uri());
            if let Some(peer) = request.extensions().get::<Peer>() {
                point_to(app, *peer, request.uri(), request.headers(), &mut response);
            }
            response
        }
    }
}

/// Runs the route, or passes the request on to the node that the route names. Returns whether it was answered here.
async fn run_where_its_session_is(app: &App, request: Request, path: &str, next: Next) -> (Response, bool) {
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    // A request is passed on once. Other paths have nothing that one node alone has.
    let is_forwarded = request.extensions().get::<NodeRequest>().is_some();
    let may_pass_on = !is_forwarded && (Surface::of(path).is_some() || path == approvals::NODE_PATH);
    let nodes = app.nodes.as_ref().filter(|_| may_pass_on);
    let (Some(nodes), Some(peer)) = (nodes, peer) else { return (next.run(request).await, true) };
    let (request, kept) = KeptRequest::keep(request, peer, app.settings.max_body_bytes);
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<HeldBy>() {
        Some(HeldBy(node)) => (nodes.forward(&kept, &node, app.orchestrator.metrics()).await, false),
        None => (response, true),
    }
}

const ME_PATH: &str = "/api/me";

/// The route of a request, or its path if there is none.
fn matched_path(request: &Request) -> &str {
    request.extensions().get::<MatchedPath>().map_or(request.uri().path(), MatchedPath::as_str)
}

enum Admitted {
    Preflight,
    Caller(Box<Caller>),
}

/// The peer and the source of a request that may be answered; `None` for a preflight.
fn find_source(
    app: &App,
    request: &Request,
    origin: &Origin,
) -> Result<Option<(SocketAddr, Source)>, ApiError> {
    let headers = request.headers();
    host::check(request.version(), request.uri(), headers, &app.settings)?;
    if *origin == Origin::Foreign && !origin::is_open(matched_path(request)) {
        if let Some(refused) = headers.get(header::ORIGIN) {
            app.refused_origins.report(origin::plain_origin(refused), &app.settings.origins);
        }
        let message = "This origin may not use the API. The operator can list it under `server.origins`.";
        return Err(ApiError::new(ErrorType::Unavailable, message));
    }
    if request.method() == Method::OPTIONS && headers.contains_key("access-control-request-method") {
        return Ok(None);
    }
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    let Some(peer) = peer else {
        return Err(ApiError::internal("peer address missing", &"not set by the listener"));
    };
    Ok(Some((peer, caller::source(app, peer, headers))))
}

fn identify(
    app: &App,
    request: &Request,
    (peer, source): (SocketAddr, Source),
    origin: &Origin,
) -> Result<Admitted, ApiError> {
    let is_forwarded = request.extensions().get::<NodeRequest>().is_some();
    let caller = Caller::identify(app, peer, source, origin, request.headers())?;
    let caller = Caller { is_forwarded, ..caller };
    match Surface::of(matched_path(request)) {
        // A ticket in the query may replace the header; the route checks it.
        Some(Surface::Voice) | None => {}
        Some(surface) => app.require(surface, caller.is_verified)?,
    }
    Ok(Admitted::Caller(Box::new(caller)))
}

/// Refuses a new client whose address is blocked, but for asking how long.
async fn check_block(
    app: &App,
    admitted: Result<Admitted, ApiError>,
    path: &str,
) -> Result<Admitted, ApiError> {
    let Admitted::Caller(mut caller) = admitted? else { return Ok(Admitted::Preflight) };
    let Some(surface) = Surface::of(path) else {
        // Pages, files and probes need no store; a cookie is for the API to give, after the look-up.
        if caller.client.address.is_some() {
            caller.set_cookie = None;
        }
        return Ok(Admitted::Caller(caller));
    };
    caller.find_address_block(app).await?;
    // A ticket in the query of a call may be another client's; the route checks it.
    if surface != Surface::Voice && path != ME_PATH {
        caller.refuse_blocked_address()?;
    }
    Ok(Admitted::Caller(caller))
}

fn preflight(request: &Request) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    origin::allow_preflight(response.headers_mut(), request.headers());
    response
}
