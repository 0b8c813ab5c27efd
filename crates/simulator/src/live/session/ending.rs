//! How turns end.

use serde_json::Map;
use tokio::time::Instant;

use super::Session;
use super::turn::Turn;
use crate::live::client_frame::Said;
use crate::live::scenario::Interruption;
use crate::live::server_frame;

impl Session {
    pub(super) fn complete(&mut self, now: Instant) {
        let Some(turn) = self.turn.take() else { return };
        self.remember(&turn);
        self.send(&server_frame::turn_complete(&turn.beside, self.spoke_for, &turn.said));
        self.desk.books().report.turns += 1;
        self.note_played();
        if self.answers_are_due && !self.calls.are_open() {
            return self.answers_are_there(now);
        }
        self.offer_handle(now);
        self.begin_by_itself(now);
    }

    /// The person has spoken into the turn.
    pub(super) fn interrupt(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        self.errand = None;
        self.send(&server_frame::interrupted());
        if turn.interruption == Interruption::Cancel {
            self.cancel_calls(None);
        }
        self.note_results();
        self.remember(&turn);
        self.send(&server_frame::turn_complete(&Map::new(), self.spoke_for, &turn.said));
        self.desk.books().report.interruptions += 1;
        self.note_played();
    }

    /// Takes note when that was the last turn of the scenario.
    pub(super) fn note_played(&self) {
        if self.desk.scenario().is_some_and(|scenario| self.conversation.position >= scenario.turns()) {
            self.desk.books().is_played = true;
        }
    }

    /// What was said becomes part of the conversation. The chat model's own words are there already.
    fn remember(&mut self, turn: &Turn) {
        if self.plays() {
            self.conversation.add(&Said { is_model: true, text: turn.said.clone() });
        }
    }
}
