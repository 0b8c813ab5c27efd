//! Decides whether the server takes on more work: rate limits, quotas, and the drain at shutdown.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::watch;

use crate::app::{App, Settings};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::forwarded::{Source, TrustedProxies};
use crate::network::AddressOwner;
use crate::quota::{Permit, Quota, QuotaExceeded};
use crate::rate_limit::RateLimiter;
use crate::shared_limits::{NoPlace, RequestPlaces, count_message};
use crate::surface::Surface;

const MAX_LIVE_FEEDS: usize = 16;
const MAX_AUDIT_SEARCHES: usize = 4;
/// Smaller responses are not counted.
const MIN_LARGE_RESPONSE_BYTES: usize = 256 << 10;
const MAX_LARGE_RESPONSES: usize = 64;
const MAX_LARGE_RESPONSES_PER_CLIENT: usize = 2;
/// The operators share their quotas.
const OPERATOR: &str = "operator";

pub(crate) struct Admission {
    pub(crate) proxies: TrustedProxies,
    messages: RateLimiter,
    requests: RateLimiter,
    request_places: RequestPlaces,
    refused_connections: AtomicU64,
    /// Numbers the requests in the log.
    last_request: AtomicU64,
    draining: watch::Sender<bool>,
    streams: Quota,
    calls: Quota,
    connections: Quota,
    /// Streams and calls that came through a proxy, whose own connections are not counted.
    addresses: Quota,
    large_responses: Quota,
    live_feeds: Quota,
    audit_searches: Quota,
}

impl Admission {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            proxies: TrustedProxies {
                loopback: settings.trust_proxy,
                networks: settings.trusted_proxies.clone(),
            },
            messages: RateLimiter::per_minute(settings.messages_per_minute),
            requests: RateLimiter::per_minute(settings.requests_per_minute),
            request_places: RequestPlaces::per_minute(settings.requests_per_minute),
            refused_connections: AtomicU64::new(0),
            last_request: AtomicU64::new(0),
            draining: watch::Sender::new(false),
            streams: Quota::new(settings.streams, settings.streams_per_client),
            calls: Quota::new(settings.voice_connections, settings.voice_per_client),
            connections: Quota::new(usize::MAX, settings.connections_per_address),
            addresses: Quota::new(usize::MAX, settings.connections_per_address),
            large_responses: Quota::new(MAX_LARGE_RESPONSES, MAX_LARGE_RESPONSES_PER_CLIENT),
            live_feeds: Quota::new(MAX_LIVE_FEEDS, MAX_LIVE_FEEDS),
            audit_searches: Quota::new(MAX_AUDIT_SEARCHES, MAX_AUDIT_SEARCHES),
        }
    }

    pub(crate) fn begin_drain(&self) {
        self.draining.send_replace(true);
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    pub(crate) async fn wait_for_drain(&self) {
        // It ends early only if the sender is gone, and that is ours.
        let _ = self.draining.subscribe().wait_for(|draining| *draining).await;
    }

    pub(crate) async fn wait_for_calls(&self) {
        self.calls.wait_until_unused().await;
    }

    pub(crate) fn open_calls(&self) -> usize {
        self.calls.in_use()
    }

    pub(crate) fn next_request_number(&self) -> u64 {
        self.last_request.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn refused_connections(&self) -> u64 {
        self.refused_connections.load(Ordering::Relaxed)
    }

    fn count_request_here(&self, owner: &str) -> Result<(), ApiError> {
        self.requests.acquire(owner, Instant::now()).map_err(too_many_requests)
    }

    /// Counts a request of an address at this node alone.
    pub(crate) fn count_refused(&self, source: &Source) -> Result<(), ApiError> {
        self.count_request_here(&AddressOwner::of(source.address).to_string())
    }

    /// A permit for one more connection of an address; `Ok(None)` for a proxy, which brings many clients.
    pub(crate) fn admit_connection(&self, peer: IpAddr) -> Result<Option<Permit>, QuotaExceeded> {
        if self.proxies.contains(peer) {
            return Ok(None);
        }
        let permit = self.connections.acquire(&AddressOwner::of(peer).to_string());
        if permit.is_err() {
            self.refused_connections.fetch_add(1, Ordering::Relaxed);
        }
        permit.map(Some)
    }

    /// Also while draining: nothing is accepted then, so a request that comes belongs to a connection that already was.
    pub(crate) fn admit_stream(&self, client: &str, source: &Source) -> Result<Permit, ApiError> {
        let permit = self.streams.acquire(client).map_err(|exceeded| match exceeded {
            QuotaExceeded::Total => ApiError::transient("The server is busy. Try again.", 2),
            QuotaExceeded::PerClient => {
                ApiError::rate_limited("Too many answers at once. Wait until one is complete.", 2)
            }
        })?;
        // A connection without a proxy was counted when it was accepted.
        if source.is_direct { Ok(permit) } else { self.admit_address(source, permit) }
    }

    pub(crate) fn admit_call(&self, client: &str, source: Option<&Source>) -> Result<Permit, ApiError> {
        self.refuse_while_draining()?;
        let permit = self.calls.acquire(client).map_err(|exceeded| match exceeded {
            QuotaExceeded::Total => ApiError::transient("Too many calls on this server. Try again.", 5),
            QuotaExceeded::PerClient => ApiError::rate_limited("Too many open calls. End one of them.", 5),
        })?;
        // A call outlives the connection it was upgraded from, and that connection's permit.
        match source {
            Some(source) => self.admit_address(source, permit),
            None => Ok(permit),
        }
    }

    fn admit_address(&self, source: &Source, permit: Permit) -> Result<Permit, ApiError> {
        let other = self.addresses.acquire(&AddressOwner::of(source.address).to_string());
        other.map(|other| permit.with(other)).map_err(|_| {
            ApiError::rate_limited("Too many connections from this address. Close some of them.", 5)
        })
    }

    /// A permit for a response held in memory until it is sent; `None` if it is small.
    pub(crate) fn admit_response(&self, client: &str, bytes: usize) -> Result<Option<Permit>, ApiError> {
        if bytes <= MIN_LARGE_RESPONSE_BYTES {
            return Ok(None);
        }
        self.large_responses.acquire(client).map(Some).map_err(|exceeded| match exceeded {
            QuotaExceeded::Total => ApiError::transient("Too many large responses. Try again.", 2),
            QuotaExceeded::PerClient => {
                ApiError::rate_limited("Read the earlier large responses, then try again.", 2)
            }
        })
    }

    pub(crate) fn admit_live_feed(&self) -> Result<Permit, ApiError> {
        self.refuse_while_draining()?;
        let too_many = |_| ApiError::rate_limited("Too many live feeds. Close one of them.", 5);
        self.live_feeds.acquire(OPERATOR).map_err(too_many)
    }

    pub(crate) fn admit_audit_search(&self) -> Result<Permit, ApiError> {
        let too_many = |_| ApiError::rate_limited("Too many audit searches. Try again.", 2);
        self.audit_searches.acquire(OPERATOR).map_err(too_many)
    }

    fn refuse_while_draining(&self) -> Result<(), ApiError> {
        if self.is_draining() {
            return Err(ApiError::transient("The server is shutting down. Try again.", 5));
        }
        Ok(())
    }
}

impl App {
    /// Counts a request of an address. Only this machine's own requests are not counted.
    pub(crate) async fn count_request(
        &self,
        source: &Source,
        surface: Option<Surface>,
    ) -> Result<(), ApiError> {
        if source.is_direct && source.address.is_loopback() {
            return Ok(());
        }
        let owner = AddressOwner::of(source.address).to_string();
        // Pages, files and probes need no store, so each node counts its own.
        if self.nodes.is_none() || surface.is_none() {
            return self.admission.count_request_here(&owner);
        }
        let (store, now_ms) = (&**self.orchestrator.store(), self.orchestrator.now_ms());
        match self.admission.request_places.acquire(store, &owner, now_ms).await {
            Ok(()) => Ok(()),
            Err(NoPlace::Exhausted(wait)) => Err(too_many_requests(wait)),
            // What needs the store will say so. The rest goes on, within this node's own limit.
            Err(NoPlace::Store(error)) => {
                tracing::warn!(error = %error, "requests are counted by each node alone");
                self.admission.count_request_here(&owner)
            }
        }
    }

    /// Counts a message of a client, or of an address whose clients are new.
    pub(crate) async fn count_message(&self, caller: &Caller) -> Result<(), ApiError> {
        // Another node has counted it, and passed it on.
        if caller.is_forwarded {
            return Ok(());
        }
        let key = caller.message_key();
        let too_many = |wait| too_fast("Too many messages", wait);
        if self.nodes.is_none() {
            return self.admission.messages.acquire(&key, Instant::now()).map_err(too_many);
        }
        let (store, now_ms) = (&**self.orchestrator.store(), self.orchestrator.now_ms());
        let counted = count_message(store, &key, self.settings.messages_per_minute, now_ms).await;
        counted.map_err(|error| match error {
            NoPlace::Exhausted(wait) => too_many(wait),
            NoPlace::Store(error) => ApiError::store("message was not counted", &error),
        })
    }
}

fn too_many_requests(wait: std::time::Duration) -> ApiError {
    too_fast("Too many requests from this address", wait)
}

fn too_fast(what: &str, wait: std::time::Duration) -> ApiError {
    let seconds = wait.as_secs() + 1;
    ApiError::rate_limited(format!("{what}; wait {seconds} s."), seconds)
}
