//! The methods of the protocol. Each names the file which has it, and is counted.

use std::future::ready;
use std::sync::Arc;

use quarterdeck_runtime::Client;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    CustomRequest, CustomResult, DiscoverResult, ErrorCode, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ResourcesCapability,
    ServerCapabilities, ServerConfig, SubscriptionFilter, Tool, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use crate::caller::McpCaller;
use crate::changes;
use crate::handshake::Handshake;
use crate::server::Shared;
use crate::session::McpSession;
use crate::sessions::{NoSession, SESSION_KEY, Slot};

/// One connection of an MCP client; for a client without a handshake, one request.
pub struct McpHandler {
    pub(crate) shared: Arc<Shared>,
    /// Who is at the other end, where all requests come from the same client.
    pub(crate) caller: Option<McpCaller>,
    pub(crate) handshake: Arc<Handshake>,
}

impl McpHandler {
    pub(crate) fn new(shared: Arc<Shared>, caller: Option<McpCaller>) -> Self {
        Self { shared, caller, handshake: Arc::default() }
    }

    /// Who makes a request, and as which client.
    pub(crate) fn caller<'a>(
        &'a self,
        context: &'a RequestContext<RoleServer>,
    ) -> Result<&'a McpCaller, ErrorData> {
        match &self.caller {
            Some(caller) => Ok(caller),
            None => McpCaller::of_request(&context.extensions),
        }
    }

    fn capabilities(&self) -> ServerCapabilities {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_completions()
            .enable_tasks()
            .build();
        capabilities.resources = self.shared.parts.knowledge.as_ref().map(|_| ResourcesCapability::default());
        capabilities
    }

    /// The client that a request belongs to.
    pub(crate) fn client(&self, context: &RequestContext<RoleServer>) -> Result<Client, ErrorData> {
        let caller = self.caller(context)?;
        match self.handshake.client_for(caller)? {
            Some(client) => Ok(client),
            None => {
                // Reading the name is for those alone that are known by it.
                let is_named = matches!(caller, McpCaller::LocalProgram(_));
                let name = is_named.then(|| context.client_info()).flatten().map(|info| info.name);
                Ok(caller.client(name.as_deref()))
            }
        }
    }

    /// The session that a request belongs to.
    pub(crate) async fn session(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<McpSession>, NoSession> {
        let client = self.client(context)?;
        let slot = self.slot(&client, context)?;
        self.shared.session_in(&slot, client).await
    }

    /// The same, with the tools that a new session of the client would have, if nothing holds it to others.
    pub(crate) async fn newest_session(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<McpSession>, ErrorData> {
        let client = self.client(context)?;
        let slot = self.slot(&client, context)?;
        Ok(self.shared.newest_session_in(&slot, client).await?)
    }

    fn slot(&self, client: &Client, context: &RequestContext<RoleServer>) -> Result<Arc<Slot>, NoSession> {
        if let Some(slot) = self.handshake.slot() {
            return Ok(slot.clone());
        }
        // The next request of it is another client's to us, so nothing would find the session again.
        if matches!(self.caller(context)?, McpCaller::Unknown(_)) {
            return Ok(Arc::default());
        }
        let hint = match context.meta.get(SESSION_KEY) {
            None => None,
            Some(Value::String(hint)) => Some(hint.as_str()),
            Some(_) => return Err(NoSession::InvalidHint),
        };
        self.shared.find_slot(client, hint)
    }
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = self.capabilities();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("quarterdeck", env!("CARGO_PKG_VERSION")))
    }

    async fn initialize(
        &self,
        params: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.counted("initialize", self.shake_hands(params, context)).await
    }

    async fn list_tools(
        &self,
        _params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let list = async { Ok(self.shared.list_tools(&self.newest_session(&context).await?.session())) };
        self.counted("tools/list", list).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.find_tool(name)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.follow_changes(&context);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(changes::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.tell_subscriber(context).await
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.counted("tools/call", self.call(params, context)).await
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let list =
            async { self.shared.list_resources(&self.session(&context).await?.session(), params).await };
        self.counted("resources/list", list).await
    }

    async fn list_resource_templates(
        &self,
        _params: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let list = async { Ok(self.shared.list_resource_templates()) };
        self.counted("resources/templates/list", list).await
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = async {
            let session = self.session(&context).await?.session();
            self.shared.read_resource(&session, &params.uri).await.map(Into::into)
        };
        self.counted("resources/read", read).await
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let list = async { self.shared.list_prompts(&self.session(&context).await?.session(), params) };
        self.counted("prompts/list", list).await
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let get = async {
            self.shared.get_prompt(&self.session(&context).await?.session(), &params).map(Into::into)
        };
        self.counted("prompts/get", get).await
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let complete = async { self.shared.complete(&self.session(&context).await?.session(), params).await };
        self.counted("completion/complete", complete).await
    }

    async fn get_task(
        &self,
        params: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.counted("tasks/get", self.task(&params.task_id, &context)).await
    }

    async fn update_task(
        &self,
        params: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.counted("tasks/update", self.update(&params.task_id, &context)).await
    }

    async fn cancel_task(
        &self,
        params: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.counted("tasks/cancel", self.stop(&params.task_id, &context)).await
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let described = DiscoverResult::from_server_info(versions, self.get_info());
        self.counted("server/discover", ready(Ok(described))).await
    }

    async fn ping(&self, _context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.counted("ping", ready(Ok(()))).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let refused = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None);
        self.counted("other", ready(Err(refused))).await
    }
}
