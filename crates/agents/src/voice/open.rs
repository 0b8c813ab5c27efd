//! Opens the session of a call: one to resume, one that was issued for it, or a new one.

use quarterdeck_contracts::Mode;
use quarterdeck_runtime::{Holder, Session, SessionError};

use super::journal::{self, Journal};
use super::{CallRequest, VoiceCore};
use crate::text::User;

pub(super) struct OpenedSession {
    pub(super) session: Session,
    pub(super) journal: Journal,
    pub(super) is_resumed: bool,
    /// What the user wants before they have said anything.
    pub(super) pending_request: Option<String>,
}

impl VoiceCore {
    pub(super) async fn open(
        &self,
        user: &User,
        request: &CallRequest,
    ) -> Result<OpenedSession, SessionError> {
        let id = request.session_id.as_deref();
        if let Some(id) = id.filter(|_| request.may_resume)
            && let Some(opened) = self.resume(user, id, request.dead_holder.as_ref()).await?
        {
            return Ok(opened);
        }
        let client = user.client.clone();
        let mut opened = None;
        if let Some(id) = id
            && let Some(request) = self.orchestrator.take_voice_request(id, &client.id).await?
        {
            let session = self.orchestrator.open_as(id, client.clone(), Mode::Voice, &self.registry).await;
            match session {
                Ok(session) => opened = Some((session, Some(request).filter(|request| !request.is_empty()))),
                // It was issued for a call and taken by one already.
                Err(SessionError::InvalidId) => {}
                Err(error) => return Err(error),
            }
        }
        let (session, pending_request) = match opened {
            Some(opened) => opened,
            None => {
                let session = self.orchestrator.open(client, Mode::Voice, &self.registry).await?;
                (session, request.pending_request.clone())
            }
        };
        Ok(OpenedSession { session, journal: Journal::default(), is_resumed: false, pending_request })
    }

    /// Resumes a session; `None` when it has ended, or is no voice session.
    async fn resume(
        &self,
        user: &User,
        id: &str,
        dead_holder: Option<&Holder>,
    ) -> Result<Option<OpenedSession>, SessionError> {
        let client = user.client.clone();
        let resumed = match dead_holder {
            Some(dead) => self.orchestrator.resume_from_dead(id, client, &self.registry, dead).await,
            None => self.orchestrator.resume(id, client, &self.registry).await,
        };
        match resumed {
            Ok(session) if session.mode() == Mode::Voice => {
                // A call is this node's until it ends.
                session.hold().await?;
                let journal = journal::load(&**self.orchestrator.store(), id).await?;
                Ok(Some(OpenedSession { session, journal, is_resumed: true, pending_request: None }))
            }
            Ok(_) | Err(SessionError::NotFound | SessionError::Ended | SessionError::InvalidId) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
