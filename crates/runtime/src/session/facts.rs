//! What handlers are given about their session.

use std::sync::Arc;

use quarterdeck_contracts::Mode;
use quarterdeck_contracts::handler::SessionFacts;
use serde_json::json;

use super::{SessionCore, SessionData};

impl SessionCore {
    /// The facts in a turn. They are shared between calls until something changes.
    pub(crate) fn facts_at(&self, turn: u64) -> Arc<SessionFacts> {
        let facts = self.current_facts();
        if facts.turn == turn {
            return facts;
        }
        // A call that had to wait belongs to the turn that made it.
        Arc::new(SessionFacts { turn, ..(*facts).clone() })
    }

    fn current_facts(&self) -> Arc<SessionFacts> {
        let changes = self.shared.voice_sessions.changes();
        let mut data = self.lock();
        if let Some((made, facts)) = &data.facts
            && *made == changes
        {
            return facts.clone();
        }
        let facts = Arc::new(self.make_facts(&data));
        data.facts = Some((changes, facts.clone()));
        facts
    }

    fn make_facts(&self, data: &SessionData) -> SessionFacts {
        let state = data.controller.state();
        let mut copy = json!(state);
        let is_voice = self.mode == Mode::Voice && state.is_active;
        copy["voiceActive"] = (is_voice || self.shared.voice_sessions.has_open(&self.client)).into();
        SessionFacts {
            id: self.id.to_string(),
            is_active: state.is_active,
            turn: data.ledger.turn_number(),
            tools_version: self.snapshot.version().to_owned(),
            state: copy,
        }
    }
}
