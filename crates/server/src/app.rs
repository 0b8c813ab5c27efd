//! The state that all requests share.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_agents::text::TextAgent;
use quarterdeck_agents::voice::VoiceAgent;
use quarterdeck_contracts::{ErrorType, StoreError};
use quarterdeck_mcp_server::{McpHttp, McpServer};
use quarterdeck_runtime::{Orchestrator, Registry};

use crate::admission::Admission;
use crate::deck::{self, Deck, Operations};
use crate::error::ApiError;
use crate::identity::Identity;
use crate::local_servers::{LocalServer, LocalServers};
use crate::network::Network;
use crate::nodes::Nodes;
use crate::page_settings::PageSettingsHandle;
use crate::refused_origins::RefusedOrigins;
use crate::stream::FrameClock;
use crate::surface::RequiredCredentials;
use crate::voice::Tickets;

/// The parts that a server is made of.
pub struct ServerParts {
    /// Answers text conversations.
    pub text: TextAgent,
    /// Answers calls; `None` turns voice off.
    pub voice: Option<VoiceAgent>,
    /// Answers MCP clients; `None` turns `/mcp` off.
    pub mcp: Option<McpServer>,
    /// Opens sessions and runs their tool calls.
    pub orchestrator: Orchestrator,
    /// The loaded tools.
    pub registry: Arc<Registry>,
    /// Identifies clients.
    pub identity: Identity,
    /// What only operators use.
    pub operations: Operations,
    /// Limits and access.
    pub settings: Settings,
    /// What the nodes that share a store sign their requests to each other with; `None` on a store of its own.
    pub node_secret: Option<Vec<u8>>,
}

/// Limits and access of the server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Front ends on other origins that may use the API with credentials, `https://example.com`.
    pub origins: Vec<String>,
    /// Sites that may show the page in a frame.
    pub frame_ancestors: Vec<String>,
    /// The words and colours of the page. They can be replaced while the server runs.
    pub page: PageSettingsHandle,
    /// The operators' bearer token; without one, requests of this machine are the operators'.
    pub admin_token: Option<String>,
    /// Whether proxies on this machine are trusted.
    pub trust_proxy: bool,
    /// Networks of other trusted proxies.
    pub trusted_proxies: Vec<Network>,
    /// The host names of the server. If empty, a server that others can reach accepts every name.
    pub hosts: Vec<String>,
    /// Which surfaces need a credential.
    pub required: RequiredCredentials,
    /// Whether it listens on loopback only, where a foreign host name means DNS rebinding.
    pub is_loopback: bool,
    /// Maximum request body.
    pub max_body_bytes: usize,
    /// Maximum nesting of JSON.
    pub max_json_depth: usize,
    /// How long a shutdown waits for running answers and calls.
    pub drain: Duration,
    /// Maximum open connections.
    pub max_connections: usize,
    /// Maximum connections, and calls, per address (of IPv6: per /64 network). Trusted proxies are not limited; the
    /// answers for clients behind them are.
    pub connections_per_address: usize,
    /// Whether the cookie is `Secure`; `None` follows a trusted proxy's `X-Forwarded-Proto`.
    pub secure_cookie: Option<bool>,
    /// Maximum messages per client.
    pub messages_per_minute: u32,
    /// Maximum requests per address. This machine's own requests are not counted.
    pub requests_per_minute: u32,
    /// Maximum concurrent answers per client.
    pub streams_per_client: usize,
    /// Maximum concurrent answers.
    pub streams: usize,
    /// How long a link to a file of a session is valid. A conversation that is loaded again has new ones.
    pub file_link_lifetime: Duration,
    /// Maximum open voice connections.
    pub voice_connections: usize,
    /// Maximum per client: its call, one that takes over, and a page that was just closed.
    pub voice_per_client: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            origins: Vec::new(),
            frame_ancestors: Vec::new(),
            page: PageSettingsHandle::default(),
            admin_token: None,
            trust_proxy: false,
            trusted_proxies: Vec::new(),
            hosts: Vec::new(),
            required: RequiredCredentials::default(),
            is_loopback: true,
            max_body_bytes: 1 << 20,
            max_json_depth: 64,
            drain: Duration::from_secs(10),
            max_connections: 4_096,
            connections_per_address: 512,
            secure_cookie: None,
            messages_per_minute: 60,
            requests_per_minute: 300,
            streams_per_client: 4,
            streams: 1_000,
            file_link_lifetime: Duration::from_secs(3_600),
            voice_connections: 500,
            voice_per_client: 3,
        }
    }
}

impl Settings {
    /// Whether any proxy is trusted, so that a connection's peer may not be the client.
    pub(crate) fn has_proxy(&self) -> bool {
        self.trust_proxy || !self.trusted_proxies.is_empty()
    }

    /// Whether pages on this machine may use the API: only while no other machine can.
    pub(crate) fn takes_local_origins(&self) -> bool {
        self.is_loopback && !self.has_proxy()
    }

    /// Whether every host name is accepted. The operator should be warned.
    pub fn takes_any_host(&self) -> bool {
        self.hosts.is_empty() && (!self.is_loopback || self.has_proxy())
    }
}

/// A running server.
pub struct App {
    pub(crate) text: TextAgent,
    pub(crate) voice: Option<VoiceAgent>,
    pub(crate) mcp: Option<McpHttp>,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) registry: Arc<Registry>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) settings: Settings,
    pub(crate) admission: Admission,
    pub(crate) tickets: Tickets,
    pub(crate) refused_origins: RefusedOrigins,
    pub(crate) operations: Operations,
    pub(crate) deck: Deck,
    pub(crate) local_servers: LocalServers,
    /// The other nodes; `None` where this one is alone.
    pub(crate) nodes: Option<Arc<Nodes>>,
    /// When the frames of answers go out.
    pub(crate) frames: Arc<FrameClock>,
}

impl App {
    /// Builds the shared state.
    pub fn new(parts: ServerParts) -> Arc<Self> {
        let ServerParts {
            text,
            voice,
            mcp,
            orchestrator,
            registry,
            identity,
            operations,
            settings,
            node_secret,
        } = parts;
        let identity = Arc::new(identity);
        let tickets = match &node_secret {
            Some(_) => Tickets::shared(orchestrator.store().clone()),
            None => Tickets::default(),
        };
        let nodes = node_secret.and_then(|secret| Nodes::new(&secret, orchestrator.clone())).map(Arc::new);
        Arc::new(Self {
            admission: Admission::new(&settings),
            tickets,
            refused_origins: RefusedOrigins::default(),
            deck: Deck::open(operations.history_file.clone(), orchestrator.now_ms()),
            local_servers: LocalServers::default(),
            nodes,
            frames: Arc::default(),
            text,
            voice,
            mcp: mcp.map(McpHttp::new),
            orchestrator,
            registry,
            identity,
            operations,
            settings,
        })
    }

    /// Sets the model servers of this machine that are offered while the built-in model answers.
    pub fn set_local_servers(&self, found: Vec<LocalServer>) {
        self.local_servers.replace(found);
    }

    /// Asks calls to end and waits for them.
    pub(crate) async fn end_calls(&self) {
        if let Some(voice) = &self.voice {
            voice.drain(self.settings.drain).await;
        }
        self.admission.wait_for_calls().await;
    }

    /// Samples the metrics without end.
    pub(crate) async fn sample_metrics_periodically(&self) {
        let mut ticks = tokio::time::interval(deck::SAMPLE_INTERVAL);
        // The first tick is immediate, and the caller has taken that sample.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            self.sample_metrics();
            self.evaluate_alarms();
            self.refused_origins.report_repeated(&self.settings.origins);
        }
    }

    pub(crate) fn sample_metrics(&self) {
        self.deck.charts.sample(self.orchestrator.now_ms(), &self.orchestrator.metrics().snapshot());
    }

    /// Refuses new turns while this node cannot tell the others that it lives: it may not write then.
    pub(crate) fn refuse_without_store(&self) -> Result<(), ApiError> {
        if self.orchestrator.may_write() {
            return Ok(());
        }
        let error = StoreError::Unavailable("the row of this node could not be renewed".to_owned());
        Err(ApiError::store("turn refused", &error))
    }

    /// Refuses text while the client is in a call: two conversations would act past each other.
    pub(crate) async fn refuse_during_call(&self, client: &str) -> Result<(), ApiError> {
        let is_in_call = self.is_in_call(client).await;
        if is_in_call.map_err(|error| ApiError::store("call was not looked up", &error))? {
            let message = "You are in a call. End it to use the chat.";
            let error = ApiError::new(ErrorType::Conflict, message);
            return Err(ApiError { retryable: true, retry_after: Some(5), ..error });
        }
        Ok(())
    }
}
