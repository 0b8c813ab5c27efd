//! What all requests share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quarterdeck_agents::text::TextAgent;
use quarterdeck_runtime::{Orchestrator, Registry};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;
use crate::identity::Identity;
use crate::rates::Rates;

/// What the server is made of.
pub struct Deck {
    /// The agent that people write to.
    pub text: TextAgent,
    /// Decides what models may do.
    pub orchestrator: Orchestrator,
    /// The tools.
    pub registry: Arc<Registry>,
    /// Knows who asks.
    pub identity: Identity,
    /// The numbers.
    pub settings: Settings,
}

/// The numbers of the server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Front ends on other origins that may use the API with credentials, `https://example.com`.
    pub origins: Vec<String>,
    /// What operators show; without one, only this machine sees what is theirs.
    pub admin_token: Option<String>,
    /// Whether a proxy on this machine tells the truth about who asks.
    pub trust_proxy: bool,
    /// Whether it listens on this machine only, where a foreign host name means that somebody plays tricks with DNS.
    pub is_loopback: bool,
    /// The largest body.
    pub max_body_bytes: usize,
    /// The deepest JSON.
    pub max_json_depth: usize,
    /// How long a shutdown waits for answers that are being written.
    pub drain: Duration,
    /// How many connections are open at the most.
    pub max_connections: usize,
    /// Whether the cookie is for encrypted connections only; `None` goes by what a trusted proxy says.
    pub secure_cookie: Option<bool>,
    /// How many messages a client may send in a minute.
    pub messages_per_minute: u32,
    /// How many requests an address may make in a minute. This machine's own addresses are not counted.
    pub requests_per_minute: u32,
    /// How many answers a client may have written at the same time.
    pub streams_per_client: usize,
    /// How many answers are written at the same time.
    pub streams: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            origins: Vec::new(),
            admin_token: None,
            trust_proxy: false,
            is_loopback: true,
            max_body_bytes: 1 << 20,
            max_json_depth: 64,
            drain: Duration::from_secs(10),
            max_connections: 4_096,
            secure_cookie: None,
            messages_per_minute: 60,
            requests_per_minute: 300,
            streams_per_client: 4,
            streams: 1_000,
        }
    }
}

/// A running server's parts.
pub struct App {
    pub(crate) text: TextAgent,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) registry: Arc<Registry>,
    pub(crate) identity: Identity,
    pub(crate) settings: Settings,
    pub(crate) clients: Rates,
    pub(crate) addresses: Rates,
    pub(crate) requests: AtomicU64,
    draining: AtomicBool,
    streams: Arc<Semaphore>,
    streams_of: Arc<Mutex<HashMap<String, usize>>>,
}

impl App {
    /// Puts the parts together.
    pub fn new(deck: Deck) -> Arc<Self> {
        let Deck { text, orchestrator, registry, identity, settings } = deck;
        Arc::new(Self {
            clients: Rates::per_minute(settings.messages_per_minute),
            addresses: Rates::per_minute(settings.requests_per_minute),
            streams: Arc::new(Semaphore::new(settings.streams)),
            streams_of: Arc::default(),
            requests: AtomicU64::new(0),
            draining: AtomicBool::new(false),
            text,
            orchestrator,
            registry,
            identity,
            settings,
        })
    }

    /// From now on nothing new is begun.
    pub(crate) fn begin_drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Room for one more answer, or why there is none.
    pub(crate) fn admit_stream(&self, client: &str) -> Result<StreamPermit, ApiError> {
        if self.is_draining() {
            return Err(ApiError::transient("The server is about to stop. Please try again in a moment.", 5));
        }
        let Ok(permit) = self.streams.clone().try_acquire_owned() else {
            return Err(ApiError::transient("Too many answers are being written. Please try again.", 2));
        };
        let mut of = self.streams_of.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = of.entry(client.to_owned()).or_default();
        if *mine >= self.settings.streams_per_client {
            return Err(ApiError::rate_limited("Too many answers are being written for you at once.", 2));
        }
        *mine += 1;
        Ok(StreamPermit { client: client.to_owned(), of: self.streams_of.clone(), _permit: permit })
    }
}

/// Room for one answer, given back when it is dropped.
pub(crate) struct StreamPermit {
    client: String,
    of: Arc<Mutex<HashMap<String, usize>>>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mine) = of.get_mut(&self.client) {
            *mine -= 1;
            if *mine == 0 {
                of.remove(&self.client);
            }
        }
    }
}
