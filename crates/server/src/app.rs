//! What all requests share.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quarterdeck_agents::text::TextAgent;
use quarterdeck_agents::voice::VoiceAgent;
use quarterdeck_contracts::ErrorType;
use quarterdeck_runtime::{Orchestrator, Registry};
use tokio::sync::watch;

use crate::deck::{self, Operations, Series};
use crate::error::ApiError;
use crate::forwarded::{Source, TrustedProxies};
use crate::identity::Identity;
use crate::network::{AddressOwner, Network};
use crate::places::{Full, Place, Places};
use crate::rates::Rates;
use crate::surface::RequiredCredentials;
use crate::voice::Tickets;

/// How many operators may follow what happens at the same time.
const WATCHERS: usize = 16;

/// How many of them may have the audit trail read at the same time.
const SEARCHES: usize = 4;

/// How large an answer in one piece is before it is counted.
const MAX_UNCOUNTED_BYTES: usize = 256 << 10;
/// How many larger ones may be sent at the same time, and how many to one client.
const MAX_LARGE_ANSWERS: usize = 64;
const MAX_LARGE_ANSWERS_PER_CLIENT: usize = 2;

/// What the server is made of.
pub struct ServerParts {
    /// The agent that people write to.
    pub text: TextAgent,
    /// The agent that people speak to, if there is one.
    pub voice: Option<VoiceAgent>,
    /// Decides what models may do.
    pub orchestrator: Orchestrator,
    /// The tools.
    pub registry: Arc<Registry>,
    /// Knows who asks.
    pub identity: Identity,
    /// What operators look at.
    pub operations: Operations,
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
    /// Where else proxies are that do.
    pub trusted_proxies: Vec<Network>,
    /// The names and addresses that the server is known by. Without any, a server that others can reach takes every one.
    pub hosts: Vec<String>,
    /// Which surfaces need a credential.
    pub required: RequiredCredentials,
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
    /// How many of them an address may have, of IPv6 a network of 64 bits; and how many calls. Trusted proxies may have
    /// any number: of those behind them, the answers that are being written are counted.
    pub connections_per_address: usize,
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
    /// How many connections that are spoken on are open at the most.
    pub voice_connections: usize,
    /// How many of them a client may have: its call, one that takes over, and a page that was just left.
    pub voice_per_client: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            origins: Vec::new(),
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
            voice_connections: 500,
            voice_per_client: 3,
        }
    }
}

impl Settings {
    /// Whether proxies are trusted, so that requests come from others than the peers of their connections.
    pub(crate) fn has_proxy(&self) -> bool {
        self.trust_proxy || !self.trusted_proxies.is_empty()
    }

    /// Whether nothing is known of the names that the server is called by. An operator should be told.
    pub fn takes_any_host(&self) -> bool {
        self.hosts.is_empty() && (!self.is_loopback || self.has_proxy())
    }
}

/// A running server's parts.
pub struct App {
    pub(crate) text: TextAgent,
    pub(crate) voice: Option<VoiceAgent>,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) registry: Arc<Registry>,
    pub(crate) identity: Identity,
    pub(crate) settings: Settings,
    pub(crate) clients: Rates,
    pub(crate) addresses: Rates,
    pub(crate) requests: AtomicU64,
    /// Connections that were refused because their address had as many as it may have.
    pub(crate) refused_connections: AtomicU64,
    pub(crate) proxies: TrustedProxies,
    pub(crate) tickets: Tickets,
    pub(crate) operations: Operations,
    /// The figures over time.
    pub(crate) series: Series,
    /// Held by whoever verifies the trail.
    pub(crate) verifying: tokio::sync::Mutex<()>,
    draining: watch::Sender<bool>,
    streams: Places,
    calls: Places,
    connections: Places,
    by_address: Places,
    large_answers: Places,
    watchers: Places,
    searches: Places,
}

impl App {
    /// Puts the parts together.
    pub fn new(deck: ServerParts) -> Arc<Self> {
        let ServerParts { text, voice, orchestrator, registry, identity, operations, settings } = deck;
        Arc::new(Self {
            clients: Rates::per_minute(settings.messages_per_minute),
            addresses: Rates::per_minute(settings.requests_per_minute),
            streams: Places::new(settings.streams, settings.streams_per_client),
            calls: Places::new(settings.voice_connections, settings.voice_per_client),
            connections: Places::new(usize::MAX, settings.connections_per_address),
            by_address: Places::new(usize::MAX, settings.connections_per_address),
            large_answers: Places::new(MAX_LARGE_ANSWERS, MAX_LARGE_ANSWERS_PER_CLIENT),
            watchers: Places::new(WATCHERS, WATCHERS),
            searches: Places::new(SEARCHES, SEARCHES),
            tickets: Tickets::default(),
            series: Series::default(),
            verifying: tokio::sync::Mutex::default(),
            operations,
            requests: AtomicU64::new(0),
            refused_connections: AtomicU64::new(0),
            proxies: TrustedProxies {
                loopback: settings.trust_proxy,
                networks: settings.trusted_proxies.clone(),
            },
            draining: watch::Sender::new(false),
            text,
            voice,
            orchestrator,
            registry,
            identity,
            settings,
        })
    }

    /// From now on nothing new is begun.
    pub(crate) fn begin_drain(&self) {
        self.draining.send_replace(true);
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Waits until nothing new is begun.
    pub(crate) async fn drained(&self) {
        // It ends early only if the sender is gone, and that is ours.
        let _ = self.draining.subscribe().wait_for(|draining| *draining).await;
    }

    /// Lets calls end, and waits until nobody is on a line.
    pub(crate) async fn end_calls(&self) {
        if let Some(voice) = &self.voice {
            voice.drain(self.settings.drain).await;
        }
        self.calls.all_free().await;
    }

    /// How many lines are open.
    pub(crate) fn open_lines(&self) -> usize {
        self.calls.taken()
    }

    /// Room for one more connection of an address; `Ok(None)` for proxies, which bring others.
    pub(crate) fn admit_connection(&self, peer: IpAddr) -> Result<Option<Place>, Full> {
        if self.proxies.contains(peer) {
            return Ok(None);
        }
        let admitted = self.connections.admit(&AddressOwner::of(peer).to_string());
        if admitted.is_err() {
            self.refused_connections.fetch_add(1, Ordering::Relaxed);
        }
        admitted.map(Some)
    }

    /// Room for one more answer, or why there is none.
    pub(crate) fn admit_stream(&self, client: &str, source: &Source) -> Result<Place, ApiError> {
        self.admit_anything()?;
        let place = self.streams.admit(client).map_err(|full| match full {
            Full::All => ApiError::transient("Too many answers are being written. Please try again.", 2),
            Full::Yours => ApiError::rate_limited("Too many answers are being written for you at once.", 2),
        })?;
        // A connection that came without a proxy was counted when it was accepted.
        if source.is_direct { Ok(place) } else { self.admit_address(source, place) }
    }

    /// Room for one more line, or why there is none.
    pub(crate) fn admit_call(&self, client: &str, source: Option<&Source>) -> Result<Place, ApiError> {
        self.admit_anything()?;
        let place = self.calls.admit(client).map_err(|full| match full {
            Full::All => ApiError::transient("Too many people are speaking. Please try again.", 5),
            Full::Yours => ApiError::rate_limited("You have too many lines open. Close one of them.", 5),
        })?;
        // A call outlives the connection that it began on, and its place.
        match source {
            Some(source) => self.admit_address(source, place),
            None => Ok(place),
        }
    }

    fn admit_address(&self, source: &Source, place: Place) -> Result<Place, ApiError> {
        let admitted = self.by_address.admit(&AddressOwner::of(source.address).to_string());
        admitted.map(|other| place.with(other)).map_err(|_| {
            ApiError::rate_limited("Too many connections from this address. Close some of them.", 5)
        })
    }

    /// Room for one more answer in one piece of this size, if it is so large that it needs some.
    pub(crate) fn admit_large(&self, client: &str, bytes: usize) -> Result<Option<Place>, ApiError> {
        if bytes <= MAX_UNCOUNTED_BYTES {
            return Ok(None);
        }
        self.large_answers.admit(client).map(Some).map_err(|full| match full {
            Full::All => ApiError::transient("Too many large answers are being sent. Please try again.", 2),
            Full::Yours => {
                ApiError::rate_limited("Read the large answers that were sent before, then try again.", 2)
            }
        })
    }

    /// Room for one more operator who follows what happens, or why there is none.
    pub(crate) fn admit_watcher(&self) -> Result<Place, ApiError> {
        self.admit_anything()?;
        self.watchers
            .admit("operator")
            .map_err(|_| ApiError::rate_limited("Too many pages follow what happens. Close one of them.", 5))
    }

    /// Room for one more search of the audit trail, or why there is none.
    pub(crate) fn admit_search(&self) -> Result<Place, ApiError> {
        self.searches.admit("operator").map_err(|_| {
            ApiError::rate_limited("Too many searches of the audit trail are under way. Please try again.", 2)
        })
    }

    /// Keeps the figures, again and again.
    pub(crate) async fn watch_figures(&self) {
        let mut ticks = tokio::time::interval(deck::EVERY);
        // The first one is now, and whoever starts us has taken it.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            self.take_figures();
        }
    }

    pub(crate) fn take_figures(&self) {
        self.series.take(self.orchestrator.now_ms(), &self.orchestrator.metrics().snapshot());
    }

    fn admit_anything(&self) -> Result<(), ApiError> {
        if self.is_draining() {
            return Err(ApiError::transient("The server is about to stop. Please try again in a moment.", 5));
        }
        Ok(())
    }

    /// Whoever speaks does not write at the same time: two conversations would act past each other.
    pub(crate) fn admit_writing(&self, client: &str) -> Result<(), ApiError> {
        // A call whose line was lost does not keep its person from writing.
        if self.voice.as_ref().is_some_and(|voice| voice.is_in_call(client)) {
            let message = "You are in a call, and the chat is paused until it ends. Hang up to write.";
            let error = ApiError::new(ErrorType::Conflict, message);
            return Err(ApiError { retryable: true, retry_after: Some(5), ..error });
        }
        Ok(())
    }
}
