//! Keeps a client that does not read from filling the memory.

use std::time::Duration;

use tokio::time::Instant;

use super::link::ClientLink;

/// Past this much that is queued for the client, the provider is not read: it would only wait here instead.
const CONGESTION_BYTES: usize = 16 << 10;
/// How long a client may take nothing before audio is dropped for it, and how much of it is kept. A telephone that changes
/// its network takes nothing for a second or two, and has lost nothing then: the provider waits.
const STALL_TIMEOUT: Duration = Duration::from_secs(3);
const KEPT_AUDIO_BYTES: usize = 8 << 10;

/// Whether so much is queued for a client that the provider is not read.
pub(super) fn is_congested(client: &dyn ClientLink) -> bool {
    client.queued_bytes() >= CONGESTION_BYTES
}

#[derive(Debug, Default)]
pub(super) struct Backpressure {
    /// The least that was queued since the client began to fall behind, and since when it takes nothing.
    stalled: Option<(usize, Instant)>,
}

impl Backpressure {
    /// Whether the provider may be read.
    pub(super) fn may_read(&mut self, client: Option<&mut Box<dyn ClientLink>>, session: &str) -> bool {
        let Some(client) = client else {
            self.stalled = None;
            return true;
        };
        if !is_congested(&**client) {
            self.stalled = None;
            return true;
        }
        let queued = client.queued_bytes();
        let now = Instant::now();
        match &mut self.stalled {
            // It takes some of it, so it may have all.
            Some((least, since)) if queued < *least => (*least, *since) = (queued, now),
            Some((_, since)) if now - *since >= STALL_TIMEOUT => {
                let dropped = client.drop_audio(KEPT_AUDIO_BYTES);
                tracing::warn!(session, dropped, "client does not read, audio dropped");
                return true;
            }
            Some(_) => {}
            None => self.stalled = Some((queued, now)),
        }
        false
    }

    pub(super) fn reset(&mut self) {
        self.stalled = None;
    }

    /// When the client counts as stalled, if it is behind and that is still to come.
    pub(super) fn stalls_at(&self) -> Option<Instant> {
        let at = self.stalled?.1 + STALL_TIMEOUT;
        (at > Instant::now()).then_some(at)
    }
}
