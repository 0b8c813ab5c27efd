//! Decides whether the server takes on more work: rate limits, quotas, and the drain at shutdown.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::watch;

use crate::app::Settings;
use crate::error::ApiError;
use crate::forwarded::{Source, TrustedProxies};
use crate::network::AddressOwner;
use crate::quota::{Permit, Quota, QuotaExceeded};
use crate::rate_limit::RateLimiter;

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
    refused_connections: AtomicU64,
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
            refused_connections: AtomicU64::new(0),
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

    pub(crate) fn refused_connections(&self) -> u64 {
        self.refused_connections.load(Ordering::Relaxed)
    }

    /// Counts a request of an address. Only this machine's own requests are not counted.
    pub(crate) fn count_request(&self, source: &Source) -> Result<(), ApiError> {
        if source.is_direct && source.address.is_loopback() {
            return Ok(());
        }
        let owner = AddressOwner::of(source.address).to_string();
        self.requests
            .acquire(&owner, Instant::now())
            .map_err(|wait| too_fast("Too many requests from this address", wait))
    }

    /// Counts a message of a client.
    pub(crate) fn count_message(&self, client: &str) -> Result<(), ApiError> {
        self.messages.acquire(client, Instant::now()).map_err(|wait| too_fast("Too many messages", wait))
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

    pub(crate) fn admit_stream(&self, client: &str, source: &Source) -> Result<Permit, ApiError> {
        self.refuse_while_draining()?;
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

fn too_fast(what: &str, wait: std::time::Duration) -> ApiError {
    let seconds = wait.as_secs() + 1;
    ApiError::rate_limited(format!("{what}; wait {seconds} s."), seconds)
}
