//! The streamable HTTP transport, both generations of it on one endpoint.

mod closing_body;
mod owned_sessions;

use std::convert::Infallible;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::caller::McpCaller;
use crate::handler::McpHandler;
use crate::handshake::{Handshake, NewConnection};
use crate::server::McpServer;
use closing_body::ClosingBody;
use owned_sessions::{Limits, OwnedSessions};

const SESSION_HEADER: &str = "mcp-session-id";

type Body = BoxBody<Bytes, Infallible>;

/// Serves requests that a guard has let through. Each has its [`McpCaller`] among its extensions.
#[derive(Clone)]
pub struct McpHttp {
    server: McpServer,
    service: StreamableHttpService<McpHandler, OwnedSessions>,
    sessions: Arc<OwnedSessions>,
}

impl McpHttp {
    pub fn new(server: McpServer) -> Self {
        let settings = &server.shared.parts.settings;
        let limits = Limits { of_client: settings.max_sessions_per_client, in_all: settings.max_sessions };
        let sessions = Arc::new(OwnedSessions::new(server.clone(), limits));
        // Host and origin were checked by the guard, which knows the operator's lists.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_json_response(true)
            .with_max_request_body_bytes(settings.max_body_bytes);
        let handlers = server.clone();
        let service = StreamableHttpService::new(move || Ok(handlers.handler()), sessions.clone(), config);
        Self { server, service, sessions }
    }

    pub fn server(&self) -> &McpServer {
        &self.server
    }

    pub async fn handle<B>(&self, mut request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: std::fmt::Display,
        B::Data: Send + 'static,
    {
        let caller = request.extensions().get::<McpCaller>().cloned();
        // The id of a session is no credential: for a client that is not its owner there is no such session.
        if let (Some(id), Some(caller)) = (session_id(request.headers()), &caller)
            && !self.sessions.may_use(id, caller)
        {
            return not_found();
        }
        let connection = NewConnection::default();
        if session_id(request.headers()).is_none() {
            request.extensions_mut().insert(connection.clone());
        }
        let method = request.method().clone();
        let mut response = self.service.handle(request).await;
        // The session has ended when this is sent, and some clients take "accepted" for a failure.
        if method == Method::DELETE && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        if let (Some(id), Some(caller)) = (session_id(response.headers()), &caller) {
            self.own(id, caller, connection.handshake()).await;
        }
        if method != Method::GET {
            return response;
        }
        // A stream that only waits for news does not hold up a shutdown.
        response.map(|body| ClosingBody::new(body, self.server.shared.closing()).boxed())
    }

    /// Enters a new session, and ends the one that has to go for it.
    async fn own(&self, id: &str, caller: &McpCaller, handshake: Option<Weak<Handshake>>) {
        if let Some(surplus) = self.sessions.set_owner(id, caller, handshake)
            && let Err(error) = self.sessions.close_session(&surplus).await
        {
            tracing::debug!(error = %error, "MCP session had ended already");
        }
    }

    /// Ends what would go on without end. Calls that run are answered.
    pub fn close(&self) {
        self.server.shared.close();
    }
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_HEADER)?.to_str().ok()
}

fn not_found() -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"Not Found: Session not found")).boxed());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
