//! A connection without a supervisor: it is made once, used and closed.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::UpstreamServer;
use rmcp::model::{CallToolResult, JsonObject};
use tokio::time::Instant;

use super::call::{self, CallFailure};
use super::connection::OwnedConnection;
use super::events::Observers;
use super::supervisor;
use super::tools::LiveTools;
use super::{Upstream, UpstreamCore};
use crate::foreign;
use crate::server_config::UpstreamConfig;

const MAX_ERROR_CHARS: usize = 500;

/// One connection, and what its server publishes.
pub(crate) struct OneConnection {
    core: Arc<UpstreamCore>,
    connection: OwnedConnection,
    pub(crate) tools: Arc<LiveTools>,
}

impl OneConnection {
    pub(crate) async fn open(config: UpstreamConfig) -> Result<Self, String> {
        let core = Upstream::new(config, Observers::default()).core.clone();
        let connection = supervisor::open_once(&core).await?;
        let tools = core.status.borrow().tools.clone().unwrap_or_default();
        Ok(Self { core, connection, tools })
    }

    pub(crate) fn server(&self) -> &UpstreamServer {
        &self.connection.shared.server
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        timeout: Duration,
    ) -> Result<CallToolResult, String> {
        let called =
            call::call(&self.connection.shared, tool, arguments, None, Instant::now() + timeout).await;
        called.map_err(|failure| match failure {
            CallFailure::Gone(why) | CallFailure::NotAccepted(why) | CallFailure::Invalid(why) => why,
            CallFailure::Lost(why) => format!("the connection was lost under way: {why}"),
            CallFailure::Busy { .. } => "it has too much to do".to_owned(),
            CallFailure::TimedOut => format!("it did not answer within {} s", timeout.as_secs_f64()),
            CallFailure::Cancelled(reason) => reason.message().to_owned(),
            CallFailure::AsksForInput => "it wants to ask something first, which it may not".to_owned(),
            CallFailure::Protocol(error) => {
                format!("it says: {}", foreign::shorten(&error.message, MAX_ERROR_CHARS))
            }
        })
    }

    pub(crate) async fn close(self) {
        self.connection.close("the connection was closed", self.core.config.limits.stop_timeout).await;
    }
}
