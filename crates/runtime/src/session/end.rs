//! How a session ends, and what happens when its last handle is dropped.

use quarterdeck_contracts::Table;
use quarterdeck_contracts::handler::CancelReason;
use serde_json::json;

use super::events::ClientEvent;
use super::{Session, SessionCore};
use crate::state::PendingEnd;
use crate::version_holders::holder_key;

impl Session {
    /// Ends the session. What has begun to write finishes; nothing else does. Ending it again changes nothing.
    pub async fn end(&self, end: PendingEnd) {
        let core = &self.core;
        if core.is_lost() {
            return;
        }
        let (transition, commit) = {
            let mut data = core.lock();
            for entry in &data.unfinished {
                entry.cancel(CancelReason::SessionEnded);
            }
            core.shared.tasks.cancel_all_of(&core.id, CancelReason::SessionEnded);
            let transition = data.controller.end(&end.reason);
            data.facts = None;
            if transition.applied {
                core.sum_up_turn(&mut data);
                data.ledger.stop_tracking();
                core.push_event(&mut data, ClientEvent::End(end.clone()));
            }
            data.unsaved.session = true;
            (transition, core.take_unsaved(&mut data))
        };
        let is_first = transition.applied;
        core.audit_transitions(vec![transition]);
        if !is_first {
            return;
        }
        core.audit_session("session_end", json!({ "reason": end.reason }));
        core.close();
        core.shared.forget(core);
        // Its version may be dropped now.
        let commit = commit.delete(Table::Versions, holder_key(core.snapshot.content_hash(), &core.id));
        if let Err(error) = core.commit(commit).await {
            tracing::error!(session = %core.id, error = %error, "end of session was not stored");
        }
    }
}

/// A session that is dropped waits in the store, with everything it has come to.
impl Drop for SessionCore {
    fn drop(&mut self) {
        if !*self.is_registered.get_mut() {
            return;
        }
        self.leave_to_store();
        self.sum_up_turn(&mut self.lock());
        if self.lock().controller.state().is_active {
            self.close();
        }
        self.shared.forget_dropped(&self.id);
    }
}

impl SessionCore {
    /// Takes it out of the count of open sessions.
    fn close(&self) {
        self.shared.metrics.session_ended(self.mode);
        self.shared.voice_sessions.closed(self.mode, &self.client);
    }

    /// When a client was last connected; `None` while one is.
    pub(crate) fn disconnected_since(&self) -> Option<u64> {
        let data = self.lock();
        data.connection.current.is_none().then_some(data.seen_ms)
    }

    /// When something last happened.
    pub(crate) fn seen_ms(&self) -> u64 {
        self.lock().seen_ms
    }
}
