//! Our side of the protocol: what a server may ask of us (nothing, unless configured) and tell us (progress, and that its
//! tools have changed).

use std::sync::Arc;

use quarterdeck_contracts::{RefusedRequest, UpstreamEvent};
use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult,
    ErrorCode, ErrorData, Implementation, ProgressNotificationParam, ProtocolVersion,
};
#[expect(
    deprecated,
    reason = "servers of earlier revisions still ask for roots and sampling, and are refused"
)]
use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, ListRootsResult};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;

use super::counters::Counters;
use super::events::Events;
use super::progress::ProgressRoutes;

/// Answers a server.
#[derive(Clone)]
pub(crate) struct UpstreamClient {
    pub(crate) events: Events,
    pub(crate) counters: Arc<Counters>,
    pub(crate) progress: Arc<ProgressRoutes>,
    /// Notified when the server says that its tools have changed.
    pub(crate) changed: Arc<Notify>,
}

impl UpstreamClient {
    /// Refuses at once, so that the server does not wait for an answer, and the call for the server.
    fn refuse<T>(&self, request: RefusedRequest) -> Result<T, ErrorData> {
        self.counters.count_refused_request();
        self.events.emit(UpstreamEvent::Refused(request));
        let message = format!("this client does not offer {} to servers", request.as_str());
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }
}

#[expect(
    deprecated,
    reason = "servers of earlier revisions still ask for roots and sampling, and are refused"
)]
impl ClientHandler for UpstreamClient {
    /// No capability is declared: neither elicitation, nor sampling, nor roots.
    fn get_info(&self) -> ClientConfig {
        let identity = Implementation::new("quarterdeck", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), identity)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.refuse(RefusedRequest::Sampling)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.refuse(RefusedRequest::Roots)
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.refuse(RefusedRequest::Elicitation)
    }

    async fn on_custom_request(
        &self,
        _: CustomRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        self.refuse(RefusedRequest::Other)
    }

    async fn on_progress(&self, note: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.pass_on(self.events.server(), &note);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
