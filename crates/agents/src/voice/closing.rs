//! How a call ends: after what was to be heard has been heard, the model first and the person last.

use std::time::Duration;

use quarterdeck_contracts::LiveError;
use quarterdeck_runtime::PendingEnd;
use tokio::time::Instant;

use super::call::Call;
use super::line::{CloseReason, ServerMessage};
use super::unavailable;

/// How long the model's end may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// How long a model may take for its last words.
const LONGEST_FAREWELL: Duration = Duration::from_secs(30);

/// When an end that was asked for comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Farewell {
    /// Then, unless the model is speaking.
    by: Instant,
    /// Then, whatever happens.
    latest: Instant,
}

/// Why a call is over.
#[derive(Debug)]
pub(super) enum Over {
    /// Somebody has ended it.
    Ended(PendingEnd),
    /// The person has gone and not come back. Their session waits for them.
    Left,
    /// The person has begun another call.
    Replaced,
    /// The model cannot be reached.
    Failed(LiveError),
    /// The server is about to stop.
    Stopping,
}

impl Call {
    /// Whether an end waits for something to be heard.
    pub(super) fn awaits_farewell(&self) -> bool {
        self.farewell.is_some()
    }

    /// An end was asked for. It comes after the model's last words, or without them when there are none.
    pub(super) fn end_is_asked(&mut self) {
        let now = Instant::now();
        let patience = if self.speech.is_silent() {
            self.speech.unheard() + self.agent.settings.farewell
        } else {
            LONGEST_FAREWELL
        };
        self.farewell = Some(Farewell { by: now + patience, latest: now + LONGEST_FAREWELL });
        self.hurry();
    }

    /// Ends the call if an end was asked for, its turn is over, everything before it has been heard, and nothing is being
    /// done any more: what is has an answer coming, and a person who should see what came of it.
    pub(super) fn end_if_heard(&mut self) {
        if !self.flights.is_empty() {
            return;
        }
        let unheard = self.speech.unheard();
        if unheard.is_zero() || self.line.is_none() {
            self.end_now_if_asked();
        } else if self.speech.is_silent() {
            // The page says when it has played everything; if it never does, the time that it takes is known.
            self.end_within(unheard + self.agent.settings.farewell);
        }
    }

    /// An end that was asked for comes at the latest after this time.
    pub(super) fn end_within(&mut self, time: Duration) {
        if let Some(farewell) = &mut self.farewell {
            let by = Instant::now() + time;
            *farewell = Farewell { by, latest: by };
            self.hurry();
        }
    }

    /// Ends the call when its farewell takes too long, or nobody says that it was heard.
    pub(super) fn end_if_overdue(&mut self, now: Instant) {
        let Some(Farewell { by, latest }) = self.farewell else { return };
        let is_done = self.speech.is_silent() && self.flights.is_empty();
        if now >= by && (now >= latest || is_done) {
            self.farewell = None;
            self.session.complete_turn();
            self.end_now_if_asked();
        }
    }

    fn end_now_if_asked(&mut self) {
        if let Some(end) = self.session.mark_heard() {
            self.over = Some(Over::Ended(end));
        }
        self.speech.follow(&self.session.state());
    }

    /// Closes both ends.
    pub(super) async fn finish(mut self) {
        let Some(over) = self.over.take() else { return };
        // From here on the person may call again, and no line comes here any more.
        self.seat.has_line(false);
        self.lines.close();
        while let Ok(mut line) = self.lines.try_recv() {
            line.send(ServerMessage::Error(&unavailable("This call has just ended. Please call again.")));
            line.close(CloseReason::Failed).await;
        }
        let why = match &over {
            Over::Ended(end) => {
                self.session.end(end.clone()).await;
                self.close_model().await;
                self.tell(ServerMessage::End(end));
                CloseReason::Ended
            }
            Over::Replaced => {
                let end = PendingEnd::with_reason("another_call");
                self.session.end(end.clone()).await;
                self.close_model().await;
                self.tell(ServerMessage::End(&end));
                CloseReason::TakenOver
            }
            Over::Failed(error) => {
                tracing::error!(session = self.session.id(), error = %error, "a call ends: the model cannot be reached");
                self.tell(ServerMessage::Error(&unavailable(
                    "The voice service cannot be reached. You can call again in a moment, or write.",
                )));
                CloseReason::Failed
            }
            Over::Stopping => {
                self.close_model().await;
                CloseReason::Stopping
            }
            Over::Left => {
                self.session.interrupt();
                self.close_model().await;
                CloseReason::Idle
            }
        };
        if let Some(untold) = self.notes.untold() {
            self.journal.noted(&untold);
        }
        self.keep_journal();
        tracing::info!(session = self.session.id(), why = ?why, "call ended");
        if let Some(line) = self.line.take() {
            line.close(why).await;
        }
    }

    async fn close_model(&mut self) {
        let _ = tokio::time::timeout(GOODBYE, self.upstream.close()).await;
    }
}
