//! One connection to a server, from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::UpstreamServer;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RunningService};
use rmcp::transport::Transport;

use super::client::UpstreamClient;
use super::counters::Counters;
use super::http;
use super::inbound::Inbound;
use super::lines::LineTransport;
use super::lost::{Lost, Watched};
use super::message::MessageLimits;
use super::process::ServerProcess;
use super::progress::ProgressRoutes;
use super::tools::{self, LiveTools};
use crate::foreign;
use crate::server_config::{UpstreamConfig, UpstreamTransport};

const MAX_REASON_CHARS: usize = 300;
const MAX_NAME_CHARS: usize = 80;
/// How long a process that has closed its output is given to say how it ended.
const EXIT_STATUS_TIMEOUT: Duration = Duration::from_millis(300);
/// How long the SDK may take to put its end in order.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection as calls use it.
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) lost: Lost,
    pub(crate) progress: Arc<ProgressRoutes>,
    pub(crate) server: UpstreamServer,
}

/// A connection as its supervisor holds it. Dropping it ends it.
pub(crate) struct OwnedConnection {
    pub(crate) shared: Arc<Connection>,
    service: RunningService<RoleClient, UpstreamClient>,
    process: Option<ServerProcess>,
}

/// How the first words with a server go. Servers in the field know the handshake; some know nothing else, and end at any
/// other first message. A server of the newer revision alone refuses the handshake in so many words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    Handshake,
    Discover,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct OpenError {
    pub(crate) reason: String,
    /// Whether the server refused this opening and may take the other one.
    pub(crate) is_opening_refused: bool,
}

impl From<String> for OpenError {
    fn from(reason: String) -> Self {
        Self { reason, is_opening_refused: false }
    }
}

impl OwnedConnection {
    /// Starts the server, or dials it, and agrees on a protocol. Nothing is left of it when the future is dropped.
    pub(crate) async fn open(
        config: &UpstreamConfig,
        opening: Opening,
        client: UpstreamClient,
    ) -> Result<Self, OpenError> {
        let limits = MessageLimits { bytes: config.limits.max_message_bytes, depth: config.limits.max_depth };
        let counters: &Arc<Counters> = &client.counters;
        let inbound = Arc::new(Inbound::new(limits, counters.clone()));
        let (lost, progress) = (Lost::default(), client.progress.clone());
        let (service, process) = match &config.transport {
            UpstreamTransport::Stdio(stdio) => {
                let (mut process, pipes) = ServerProcess::start(config.name.as_str(), stdio)?;
                let lines = LineTransport::new(pipes.stdout, pipes.stdin, inbound, lost.clone());
                match agree(client, Watched::new(lines, lost.clone()), opening).await {
                    Ok(service) => (service, Some(process)),
                    Err(error) => return Err(with_exit_status(error, &mut process).await),
                }
            }
            UpstreamTransport::Http(http) => {
                let transport = http::transport(http, &config.limits, inbound)?;
                (agree(client, Watched::new(transport, lost.clone()), opening).await?, None)
            }
        };
        let peer = service.peer().clone();
        let server = describe_server(&peer)?;
        let shared = Arc::new(Connection { peer, lost, progress, server });
        Ok(Self { shared, service, process })
    }

    /// What the server publishes.
    pub(crate) async fn list_tools(&self, config: &UpstreamConfig) -> Result<LiveTools, String> {
        tokio::select! {
            listed = tools::list(&self.shared.peer, &config.limits) => listed,
            reason = self.shared.lost.wait() => Err(reason.to_string()),
        }
    }

    /// Ends with the connection, with the reason.
    pub(crate) async fn wait(&mut self) -> String {
        let lost = self.shared.lost.clone();
        let Some(process) = &mut self.process else { return lost.wait().await.to_string() };
        let reason = tokio::select! {
            ended = process.wait() => ended,
            reason = lost.wait() => {
                tokio::time::timeout(EXIT_STATUS_TIMEOUT, process.wait()).await.unwrap_or(reason.to_string())
            }
        };
        lost.set(&reason);
        reason
    }

    /// Ends it: calls that wait for an answer learn at once, and the process is gone when this returns.
    pub(crate) async fn close(mut self, reason: &str, stop_timeout: Duration) {
        self.shared.lost.set(reason);
        let closing = self.service.close_with_timeout(CLOSE_TIMEOUT);
        let stopping = async {
            if let Some(process) = self.process.take() {
                process.stop(stop_timeout).await;
            }
        };
        // Neither may hold up the other.
        let _ = tokio::join!(closing, stopping);
    }
}

impl Drop for OwnedConnection {
    fn drop(&mut self) {
        self.shared.lost.set("the connection was closed");
    }
}

async fn agree<T: Transport<RoleClient> + 'static>(
    client: UpstreamClient,
    transport: T,
    opening: Opening,
) -> Result<RunningService<RoleClient, UpstreamClient>, OpenError> {
    let mode = match opening {
        Opening::Handshake => ClientLifecycleMode::Initialize,
        Opening::Discover => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
    };
    client.serve_with_lifecycle(transport, mode).await.map_err(|error| OpenError {
        is_opening_refused: matches!(error, ClientInitializeError::JsonRpcError(_)),
        reason: describe_failure(&error),
    })
}

/// What an operator is told. The SDK prints whole messages into some of its errors.
fn describe_failure(error: &ClientInitializeError) -> String {
    let why = match error {
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            "its answer is none".to_owned()
        }
        ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "it answered something that was not asked".to_owned()
        }
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        ClientInitializeError::JsonRpcError(error) => format!("it says: {}", error.message),
        ClientInitializeError::TransportError { error, .. } => http::describe(error),
        other => other.to_string(),
    };
    foreign::shorten(&format!("the handshake failed: {why}"), MAX_REASON_CHARS)
}

async fn with_exit_status(mut error: OpenError, process: &mut ServerProcess) -> OpenError {
    if let Ok(ended) = tokio::time::timeout(EXIT_STATUS_TIMEOUT, process.wait()).await {
        error.reason = format!("{}; {ended}", error.reason);
    }
    error
}

fn describe_server(peer: &Peer<RoleClient>) -> Result<UpstreamServer, String> {
    let info = peer.peer_info().ok_or_else(|| "the handshake failed: it did not say who it is".to_owned())?;
    let version = &info.protocol_version;
    if !ProtocolVersion::KNOWN_VERSIONS.contains(version) {
        let version = foreign::shorten(version.as_str(), MAX_NAME_CHARS);
        return Err(format!("it speaks the revision `{version}` of MCP, which is not known here"));
    }
    let named = |name: Option<&str>| foreign::shorten(name.unwrap_or_default(), MAX_NAME_CHARS);
    let identity = info.server_info.as_ref();
    Ok(UpstreamServer {
        name: named(identity.map(|identity| identity.name.as_str())),
        version: named(identity.map(|identity| identity.version.as_str())),
        protocol_version: version.to_string(),
    })
}
