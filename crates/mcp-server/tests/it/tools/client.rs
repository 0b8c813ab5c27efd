//! An MCP client at the other end of a pipe.

use quarterdeck_mcp_server::McpCaller;
use quarterdeck_runtime::Client;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, Implementation, ProgressNotificationParam,
    ProtocolVersion, RequestMetaObject,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, RunningService, ServiceError,
};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::world::World;

/// A client that writes down what it is told.
pub(crate) struct TestClient {
    heard: mpsc::UnboundedSender<String>,
}

impl ClientHandler for TestClient {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.client_info = Implementation::new("test", "1");
        config
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.heard.send(params.message.unwrap_or_default());
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.heard.send("tools have changed".to_owned());
    }
}

/// A connected client.
pub(crate) struct Connected {
    pub(crate) service: RunningService<RoleClient, TestClient>,
    pub(crate) heard: mpsc::UnboundedReceiver<String>,
}

/// Which generation of the protocol a client speaks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Generation {
    Handshake,
    Stateless,
}

pub(crate) const BOTH: [Generation; 2] = [Generation::Handshake, Generation::Stateless];

impl World {
    pub(crate) async fn connect(&self, client: &str, generation: Generation) -> Connected {
        self.try_connect(client, generation).await.unwrap()
    }

    pub(crate) async fn try_connect(
        &self,
        client: &str,
        generation: Generation,
    ) -> Result<Connected, String> {
        self.connect_as(McpCaller::Known(Client::anonymous(client)), generation).await
    }

    pub(crate) async fn connect_as(
        &self,
        caller: McpCaller,
        generation: Generation,
    ) -> Result<Connected, String> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let handler = self.server.handler_for(caller);
        tokio::spawn(async move {
            if let Ok(service) = handler.serve(theirs).await {
                let _ = service.waiting().await;
            }
        });
        let (sender, heard) = mpsc::unbounded_channel();
        let lifecycle = match generation {
            Generation::Handshake => ClientLifecycleMode::Initialize,
            Generation::Stateless => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
        };
        let client = TestClient { heard: sender };
        let service =
            client.serve_with_lifecycle(ours, lifecycle).await.map_err(|error| error.to_string())?;
        Ok(Connected { service, heard })
    }
}

impl Connected {
    pub(crate) async fn call(&self, tool: &str, what: &str) -> CallToolResult {
        self.call_with(tool, what, json!({})).await.unwrap()
    }

    /// Calls with more in `_meta`.
    pub(crate) async fn call_with(
        &self,
        tool: &str,
        what: &str,
        meta: Value,
    ) -> Result<CallToolResult, ServiceError> {
        self.service.call_tool(request(tool, json!({ "what": what }), meta)).await
    }

    /// What the client is told next.
    pub(crate) async fn hears(&mut self) -> String {
        self.heard.recv().await.unwrap()
    }
}

pub(crate) fn request(tool: &str, args: Value, meta: Value) -> CallToolRequestParams {
    let Value::Object(args) = args else { panic!("{args}") };
    let Value::Object(meta) = meta else { panic!("{meta}") };
    let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
    params.meta = Some(RequestMetaObject::from(meta));
    params
}

/// The text of a result, and whether it is an error.
pub(crate) fn text(result: &CallToolResult) -> (bool, &str) {
    let text = result.content[0].as_text().unwrap();
    (result.is_error == Some(true), &text.text)
}
