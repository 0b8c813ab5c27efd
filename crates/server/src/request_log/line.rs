//! The line itself: its level and its fields.

use std::sync::atomic::Ordering;

use axum::extract::MatchedPath;
use tracing::Level;

use super::{End, NO_FIRST_BYTE, RequestRecord};
use crate::origin::plain_origin;

impl End {
    fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ClientLeft => "client_left",
            Self::Failed => "failed",
        }
    }
}

pub(super) fn is_enabled(is_quiet: bool) -> bool {
    if is_quiet { tracing::enabled!(Level::DEBUG) } else { tracing::enabled!(Level::INFO) }
}

impl RequestRecord {
    /// Writes the line, once.
    pub(super) fn write(&self, end: End) {
        if self.is_written.swap(true, Ordering::Relaxed) {
            return;
        }
        let took_us = self.elapsed_us();
        let first_us = match self.first_byte_us.load(Ordering::Relaxed) {
            NO_FIRST_BYTE => None,
            first_us => Some(first_us),
        };
        // A response without a body begins and ends at once.
        let first_us = first_us.or((end == End::Complete).then_some(took_us));
        let notes = self.notes();
        let status = Some(self.status.load(Ordering::Relaxed)).filter(|status| *status != 0);
        let origin = self.origin.as_ref().map(plain_origin);
        macro_rules! write_at {
            ($level:expr) => {
                tracing::event!(
                    $level,
                    request = self.number,
                    method = self.method,
                    route = self.route.as_ref().map_or("-", MatchedPath::as_str),
                    client = notes.client.as_deref(),
                    session = notes.session.as_deref(),
                    origin,
                    status,
                    bytes = self.bytes.load(Ordering::Relaxed),
                    first_byte_ms = first_us.map(to_ms),
                    ms = to_ms(took_us),
                    end = end.as_str(),
                    "request"
                )
            };
        }
        if self.is_quiet { write_at!(Level::DEBUG) } else { write_at!(Level::INFO) }
    }
}

/// Milliseconds to a tenth.
fn to_ms(us: u64) -> f64 {
    (us as f64 / 100.0).round() / 10.0
}
