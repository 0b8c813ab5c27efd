//! A block that was made on another node, or in another session of the client, ends what the client has here.

use std::sync::Arc;

use quarterdeck_contracts::{EndAfter, Mode, StoreError};

use crate::blocks::{Block, find_block, list_blocks};
use crate::orchestrator::Orchestrator;
use crate::session::{ClientEvent, Session, SessionCore};
use crate::state::{BLOCKED, PendingEnd};

impl Orchestrator {
    pub(super) async fn apply_block(&self, client: &str) -> Result<usize, StoreError> {
        if !self.shared().live_sessions().iter().any(|core| *core.client == *client) {
            return Ok(0);
        }
        match find_block(&**self.store(), client, self.now_ms()).await? {
            Some(block) => Ok(self.shut_out(&block).await),
            None => Ok(0),
        }
    }

    pub(super) async fn apply_all_blocks(&self) -> Result<usize, StoreError> {
        if self.shared().live_sessions().is_empty() {
            return Ok(0);
        }
        let mut found = 0;
        for block in list_blocks(&**self.store(), self.now_ms()).await? {
            found += self.shut_out(&block).await;
        }
        Ok(found)
    }

    /// Ends the client's calls and stops its turns; how many. The session in which it was blocked says farewell by itself.
    async fn shut_out(&self, block: &Block) -> usize {
        let mut count = 0;
        for core in self.shared().live_sessions() {
            let is_meant = *core.client == *block.client_id && *core.id != *block.session_id;
            if is_meant && shut_out(&core, block).await {
                count += 1;
            }
        }
        count
    }
}

async fn shut_out(core: &Arc<SessionCore>, block: &Block) -> bool {
    let session = Session { core: core.clone() };
    let state = session.state();
    if !state.is_active || state.pending_end_voice_session.is_some_and(|end| end.is_block()) {
        return false;
    }
    if core.mode == Mode::Voice {
        let end = PendingEnd {
            after: EndAfter::CurrentTurn,
            reason: BLOCKED.to_owned(),
            closing_message: Some(block.message.clone()),
            text_response: None,
        };
        session.end(end).await;
        return true;
    }
    // A written conversation outlives a block; its present turn does not.
    if !core.is_connected() {
        return false;
    }
    session.interrupt();
    let mut data = core.lock();
    let is_told = data.events.iter().any(|event| matches!(event, ClientEvent::Blocked { .. }));
    if !is_told {
        core.push_event(&mut data, ClientEvent::Blocked { message: block.message.as_str().into() });
    }
    !is_told
}
