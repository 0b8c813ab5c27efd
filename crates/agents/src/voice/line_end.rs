//! The person's end of a call: greeted, parked, taken over, and not drowned.

use std::time::Duration;

use quarterdeck_contracts::LiveInput;
use tokio::time::Instant;

use super::call::Call;
use super::line::{ClientLink, CloseReason, Disconnect, ServerMessage};

/// Past this much that waits for the page, the model is not listened to: it would only wait here instead.
const CONGESTED: usize = 16 << 10;
/// How long a page may take nothing before audio is thrown away for it, and how much of it is kept. A telephone that
/// changes its network takes nothing for a second or two, and has lost nothing then: the provider waits.
const STALLED: Duration = Duration::from_secs(3);
const KEPT_WHEN_STALLED: usize = 8 << 10;

impl Call {
    /// The first thing that a line is told.
    pub(super) fn greet(&mut self) {
        let (session, version) = (self.session.clone(), self.session.snapshot().version().to_owned());
        let provider = self.upstream.name().to_owned();
        let is_resumed = self.is_resumed;
        let Some(line) = &mut self.line else { return };
        line.send(ServerMessage::Ready {
            session_id: session.id(),
            is_resumed,
            tools_version: &version,
            provider: &provider,
        });
        for (id, request) in &self.questions {
            line.send(ServerMessage::ConfirmationRequest { id, request });
        }
        self.missed.tell(&mut **line);
        // Whoever calls again is in the same session.
        self.is_resumed = true;
    }

    /// The line is gone. The call waits for another one.
    pub(super) fn park(&mut self, gone: &Disconnect) {
        tracing::info!(session = self.session.id(), why = ?gone, "the line is gone");
        if let Some(line) = self.line.take()
            && let Disconnect::Rejected(_) = gone
        {
            tokio::spawn(line.close(CloseReason::Refused));
        }
        self.seat.has_line(false);
        self.clock.parked = Some(Instant::now());
        self.clock.stalled = None;
        if self.speech.mic_is_on {
            // A provider that is away is told when it is back.
            self.speech.mic_is_on = !self.upstream.send(LiveInput::AudioEnded);
        }
        self.keep_journal();
        self.hurry();
    }

    /// A new line takes over.
    pub(super) fn attach(&mut self, line: Box<dyn ClientLink>) {
        if let Some(older) = self.line.replace(line) {
            tokio::spawn(older.close(CloseReason::TakenOver));
        }
        self.seat.has_line(true);
        let now = Instant::now();
        self.clock.parked = None;
        self.clock.stalled = None;
        (self.clock.line_seen, self.clock.pinged) = (now, now);
        // What the older page had not played yet, this one has not got.
        self.speech.drained();
        self.session.warn_if_tools_changed(&self.agent.registry.snapshot());
        if self.is_ready {
            self.is_resumed = true;
            self.greet();
        }
    }

    /// Whether the model is listened to: not while the page cannot take what it says.
    pub(super) fn may_read_model(&mut self) -> bool {
        let waiting = self.line.as_ref().map_or(0, |line| line.queued_bytes());
        if waiting < CONGESTED {
            self.clock.stalled = None;
            return true;
        }
        let now = Instant::now();
        match &mut self.clock.stalled {
            // It takes some of it, so it may have all.
            Some((least, since)) if waiting < *least => (*least, *since) = (waiting, now),
            Some((_, since)) if now - *since > STALLED => {
                if let Some(line) = &mut self.line {
                    let dropped = line.drop_audio(KEPT_WHEN_STALLED);
                    tracing::warn!(
                        session = self.session.id(),
                        dropped,
                        "audio was dropped: the page does not read"
                    );
                }
                return true;
            }
            Some(_) => {}
            None => {
                self.clock.stalled = Some((waiting, now));
                self.hurry();
            }
        }
        false
    }

    /// Somebody is at the other end of the line.
    pub(super) fn line_is_alive(&mut self) {
        self.clock.line_seen = Instant::now();
    }
}
