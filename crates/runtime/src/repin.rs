//! How a text session moves on to a newer version of the tools, where the registry follows a folder.

use std::sync::Arc;

use quarterdeck_contracts::{CommitError, Mode};

use crate::orchestrator::{Client, Orchestrator, SessionError};
use crate::ownership::is_lease_conflict;
use crate::registry::Registry;
use crate::session::{Session, SessionCore};

impl Orchestrator {
    /// Pins a session to the version that a new session of its client would get. To be called between two turns.
    ///
    /// The session is left to the store and resumed from there, as after a restart. It stays as it is where something
    /// still holds it to its version: a call that runs, a question that is open, a task, a connection, or another handle.
    pub async fn repin(
        &self,
        session: Session,
        client: Client,
        registry: &Registry,
    ) -> Result<Session, SessionError> {
        // A header is for new sessions.
        let client = Client { requested_version: None, ..client };
        let pin = self.choose_tools(&client, registry)?;
        if pin.snapshot.content_hash() == session.snapshot().content_hash() || !session.core.can_move_on() {
            return Ok(session);
        }
        let saved = {
            let mut data = session.core.lock();
            data.unsaved.session = true;
            session.core.take_unsaved(&mut data)
        };
        match session.core.commit(saved).await {
            Err(error) if is_lease_conflict(&error) => return Err(SessionError::Lost),
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into_store_error().into()),
        }
        let id = session.core.id.clone();
        match Arc::try_unwrap(session.core) {
            Ok(core) => drop(core),
            Err(core) => return Ok(Session { core }),
        }
        self.resume(&id, client, pin.snapshot).await
    }
}

impl SessionCore {
    /// Whether nothing that is under way belongs to the version that it has.
    fn can_move_on(&self) -> bool {
        if self.mode != Mode::Text || self.shared.tasks.has_any_of(&self.id) {
            return false;
        }
        let data = self.lock();
        data.controller.state().is_active
            && data.connection.current.is_none()
            && data.confirmations.is_empty()
            && data.unfinished.is_empty()
            && data.unadmitted.is_empty()
    }
}
