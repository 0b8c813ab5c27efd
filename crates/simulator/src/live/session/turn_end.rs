//! The end of a turn, completed or interrupted.

use serde_json::Map;
use tokio::time::Instant;

use super::Session;
use super::turn::Turn;
use crate::live::client_frame::ContentTurn;
use crate::live::scenario::Interruption;
use crate::live::server_frame;

impl Session {
    pub(super) fn complete(&mut self, now: Instant) {
        let Some(turn) = self.turn.take() else { return };
        self.remember(&turn);
        self.send(&server_frame::turn_complete(&turn.beside, self.last_speech, &turn.said));
        self.simulation.state().report.turns += 1;
        self.note_played();
        if self.calls.answers_are_due && !self.calls.are_open() {
            return self.begin_with_answers(now);
        }
        self.offer_handle(now);
        self.begin_unprompted(now);
    }

    pub(super) fn interrupt(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        self.task = None;
        self.send(&server_frame::interrupted());
        if turn.interruption == Interruption::Cancel {
            self.cancel_calls(None);
        }
        self.note_results();
        self.remember(&turn);
        self.send(&server_frame::turn_complete(&Map::new(), self.last_speech, &turn.said));
        self.simulation.state().report.interruptions += 1;
        self.note_played();
    }

    /// Records that the scenario is over, if that was its last turn.
    pub(super) fn note_played(&self) {
        if self.simulation.scenario().is_some_and(|scenario| self.conversation.position >= scenario.turns()) {
            self.simulation.state().is_played = true;
        }
    }

    /// Adds what was said to the conversation. A chat model's replies are in it already.
    fn remember(&mut self, turn: &Turn) {
        if self.is_scripted() {
            self.conversation.add(&ContentTurn { is_model: true, text: turn.said.clone() });
        }
    }
}
