//! One short connection to a server: to look at what it publishes, or to try a call, without a host.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::published::PublishedTool;
use crate::result::{self, ToolResult};
use crate::server_config::UpstreamConfig;
use crate::upstream::OneConnection;

/// A connection of one command. It is within the same limits as that of a host, and nothing is kept of it.
pub struct Visit {
    connection: OneConnection,
}

/// What a call of a visit came to.
#[derive(Debug, Clone, PartialEq)]
pub enum VisitAnswer {
    /// The data that a handler would answer with.
    Data(Value),
    /// The tool says that it failed. Foreign text, shortened.
    Failed(String),
}

/// Why a server could not be visited, for an operator. It may hold foreign text, shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct VisitError(pub(crate) String);

impl Visit {
    /// Starts the server, or dials it.
    ///
    /// # Errors
    ///
    /// It does not start, does not answer in time, or breaks the protocol.
    pub async fn open(config: UpstreamConfig) -> Result<Self, VisitError> {
        Ok(Self { connection: OneConnection::open(config).await.map_err(VisitError)? })
    }

    /// Everything that the server publishes, by name.
    pub fn tools(&self) -> Vec<PublishedTool> {
        self.connection.tools.values().map(|live| live.tool.clone()).collect()
    }

    /// What the server says of itself. Foreign text, shortened.
    pub fn server(&self) -> &quarterdeck_contracts::UpstreamServer {
        self.connection.server()
    }

    /// Calls a tool, past all gates: for an operator who tries a server.
    ///
    /// # Errors
    ///
    /// The server does not publish the tool, or there is no answer that can be used.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        timeout: Duration,
    ) -> Result<VisitAnswer, VisitError> {
        let Some(live) = self.connection.tools.get(tool).map(Arc::clone) else {
            return Err(VisitError(format!("it publishes no tool called `{tool}`")));
        };
        let answered = self.connection.call(tool, arguments, timeout).await.map_err(VisitError)?;
        match result::read(answered, live.tool.output_schema.is_some()) {
            ToolResult::Data(data) => Ok(VisitAnswer::Data(data)),
            ToolResult::Failed(words) => Ok(VisitAnswer::Failed(words)),
            ToolResult::Invalid(why) => Err(VisitError(why.to_owned())),
        }
    }

    /// Ends the connection, and returns when the process is gone.
    pub async fn close(self) {
        self.connection.close().await;
    }
}
