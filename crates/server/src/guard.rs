//! Middleware in front of every route: host, origin, rate limit, identity, and the request log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use quarterdeck_contracts::ErrorType;

use crate::app::App;
use crate::caller::{self, Caller, Peer};
use crate::error::ApiError;
use crate::host;
use crate::origin::{self, Origin};
use crate::surface::Surface;

pub(crate) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let number = app.requests.fetch_add(1, Ordering::Relaxed) + 1;
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map_or("-", MatchedPath::as_str).to_owned();
    let origin = origin::of(request.headers(), &app.settings);
    let mut response = match admit(&app, &mut request, &origin) {
        Ok(Admitted::Preflight) => preflight(&request),
        Ok(Admitted::Caller(caller)) => {
            let set_cookie = caller.set_cookie.clone();
            request.extensions_mut().insert(*caller);
            let mut response = next.run(request).await;
            if let Some(cookie) = set_cookie {
                response.headers_mut().append(header::SET_COOKIE, cookie);
            }
            response
        }
        Err(error) => error.in_form_of(request.uri()),
    };
    let headers = response.headers_mut();
    if let Origin::Listed(origin) = &origin {
        origin::allow(headers, origin);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("x-request-id"), HeaderValue::from(number));
    tracing::info!(
        request = number, method = %method, path, status = response.status().as_u16(),
        ms = began.elapsed().as_millis() as u64, "request"
    );
    response
}

enum Admitted {
    Preflight,
    Caller(Box<Caller>),
}

fn admit(app: &App, request: &mut Request, origin: &Origin) -> Result<Admitted, ApiError> {
    let headers = request.headers();
    host::check(request.version(), request.uri(), headers, &app.settings)?;
    if *origin == Origin::Foreign {
        let message = "This origin may not use the API. The operator can list it under `server.origins`.";
        return Err(ApiError::new(ErrorType::Unavailable, message));
    }
    if request.method() == Method::OPTIONS && headers.contains_key("access-control-request-method") {
        return Ok(Admitted::Preflight);
    }
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    let Some(peer) = peer else {
        return Err(ApiError::internal("peer address missing", &"not set by the listener"));
    };
    let source = caller::source(app, peer, headers);
    // Before the credential is checked, so that guessing one is limited too.
    app.admission.count_request(&source)?;
    let caller = Caller::identify(app, peer, source, headers)?;
    let path = request.extensions().get::<MatchedPath>().map_or(request.uri().path(), MatchedPath::as_str);
    match Surface::of(path) {
        // A ticket in the query may replace the header; the route checks it.
        Some(Surface::Voice) | None => {}
        Some(surface) => app.require(surface, caller.is_verified)?,
    }
    Ok(Admitted::Caller(Box::new(caller)))
}

fn preflight(request: &Request) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    origin::allow_preflight(response.headers_mut(), request.headers());
    response
}
