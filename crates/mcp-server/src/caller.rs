//! Who calls, as the transport has found out.

use std::sync::Arc;

use quarterdeck_runtime::Client;
use rmcp::ErrorData;
use rmcp::model::Extensions;

/// The client for a program on this machine, by the name that it gives itself.
pub type LocalPrograms = Arc<dyn Fn(&str) -> Client + Send + Sync>;

/// Who makes a request. The HTTP server puts it into the extensions of each request, after its guard; a transport with one
/// client gives it to [`crate::McpServer::handler_for`].
#[derive(Clone)]
pub enum McpCaller {
    /// It has shown who it is.
    Known(Client),
    /// A program on this machine that has shown nothing. It is known by the name in its `clientInfo`, so that it finds its
    /// sessions again.
    LocalProgram(LocalPrograms),
    /// It is not known who it is, and the next request may come from another client. Only the id of an MCP session, which is a secret,
    /// says that two requests come from the same one.
    Unknown(Client),
}

impl McpCaller {
    /// The client that the request belongs to. `name` is what its program calls itself.
    pub(crate) fn client(&self, name: Option<&str>) -> Client {
        match self {
            Self::Known(client) | Self::Unknown(client) => client.clone(),
            Self::LocalProgram(programs) => programs(name.unwrap_or_default()),
        }
    }

    /// What the transport of a request has found out.
    pub(crate) fn of_request(extensions: &Extensions) -> Result<&Self, ErrorData> {
        let parts = extensions.get::<http::request::Parts>();
        parts.and_then(|parts| parts.extensions.get::<Self>()).ok_or_else(|| {
            tracing::error!("request without a caller: the server must identify it before it is handled");
            ErrorData::internal_error("It is not known who asks.", None)
        })
    }
}
