//! The loudspeaker of a client: it plays what it gets as fast as it is spoken, and reports as the page does.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::ClientAction;

/// Samples in a millisecond.
const RATE: u64 = 24;
/// Playback begins when so much has come, or after a delay.
const START_SAMPLES: usize = 2_400;
const MAX_START_DELAY: Duration = Duration::from_millis(150);
/// How much is played between two reports.
const REPORT_SAMPLES: u64 = 6_000;

pub(crate) struct Player {
    queue: VecDeque<i16>,
    /// Every sample that came, and every one that was played.
    received: Vec<i16>,
    heard: Vec<i16>,
    /// Up to when it was played, and since when something waits.
    now: Instant,
    since: Instant,
    is_playing: bool,
    is_paused: bool,
    /// Samples since the last flush, and how many of them were reported.
    played: u64,
    reported: u64,
    reports: Vec<ClientAction>,
}

impl Default for Player {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            queue: VecDeque::new(),
            received: Vec::new(),
            heard: Vec::new(),
            now,
            since: now,
            is_playing: false,
            is_paused: false,
            played: 0,
            reported: 0,
            reports: Vec::new(),
        }
    }
}

impl Player {
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.advance();
        if self.queue.is_empty() {
            self.since = self.now;
        }
        let samples = bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]));
        self.received.extend(samples.clone());
        self.queue.extend(samples);
    }

    pub(crate) fn pause(&mut self) {
        self.advance();
        self.is_paused = true;
        self.report();
    }

    pub(crate) fn resume(&mut self) {
        self.advance();
        self.is_paused = false;
    }

    pub(crate) fn flush(&mut self) {
        self.advance();
        let had = self.is_playing || !self.queue.is_empty();
        self.queue.clear();
        (self.is_playing, self.is_paused, self.played, self.reported) = (false, false, 0, 0);
        if had {
            self.reports.push(ClientAction::Drained);
        }
    }

    /// Plays up to now.
    pub(crate) fn advance(&mut self) {
        let now = Instant::now();
        if !self.is_playing {
            let is_late = now.saturating_duration_since(self.since) > MAX_START_DELAY;
            self.is_playing = !self.queue.is_empty() && (self.queue.len() >= START_SAMPLES || is_late);
            self.now = now;
        }
        if self.is_paused || !self.is_playing {
            self.now = now;
            return;
        }
        let samples = now.saturating_duration_since(self.now).as_micros() as u64 * RATE / 1_000;
        let samples = samples.min(self.queue.len() as u64);
        self.now = now;
        self.heard.extend(self.queue.drain(..samples as usize));
        self.played += samples;
        if self.queue.is_empty() {
            self.is_playing = false;
            self.report();
            self.reports.push(ClientAction::Drained);
        } else if self.played - self.reported >= REPORT_SAMPLES {
            self.report();
        }
    }

    fn report(&mut self) {
        if std::mem::replace(&mut self.reported, self.played) != self.played {
            let millis = (self.played + RATE / 2) / RATE;
            self.reports.push(ClientAction::Played(Duration::from_millis(millis)));
        }
    }

    /// What is to be reported since the last look.
    pub(crate) fn take_reports(&mut self) -> Vec<ClientAction> {
        std::mem::take(&mut self.reports)
    }

    pub(crate) fn received(&self) -> &[i16] {
        &self.received
    }

    pub(crate) fn heard(&self) -> &[i16] {
        &self.heard
    }
}
