//! How a request reaches its conversation.

use std::collections::HashMap;
use std::sync::Arc;

use quarterdeck_contracts::{CommitError, ErrorType, Mode, ToolError};
use quarterdeck_runtime::{Session, SessionError};

use super::conversation::Conversation;
use super::history::{self, TurnRecord};
use super::{Address, Refusal, TextCore, User};
use crate::turn::Ending;

/// How many turns of an ended session are carried over into the next.
const MAX_CARRIED_TURNS: usize = 50;

impl TextCore {
    /// The conversation that a request means; one that does not exist yet is begun where that makes sense.
    pub(super) async fn open_conversation(
        &self,
        user: &User,
        address: Address<'_>,
    ) -> Result<Arc<Conversation>, Refusal> {
        match address {
            Address::New => self.open(user).await,
            Address::Session(id) => self.resume(user, id).await,
            Address::Chat(chat) => self.open_chat(user, chat).await,
        }
    }

    /// The conversation that a request means, if there is one.
    pub(super) async fn find(
        &self,
        user: &User,
        address: Address<'_>,
    ) -> Result<Option<Arc<Conversation>>, Refusal> {
        let id = match address {
            Address::New => return Ok(None),
            Address::Session(id) => id.to_owned(),
            Address::Chat(chat) => {
                let store = self.orchestrator.store();
                match history::session_of_chat(&**store, &user.client.id, chat).await? {
                    Some((id, _)) => id,
                    // The name may be a session id: pages use what they were given.
                    None => chat.to_owned(),
                }
            }
        };
        match self.resume(user, &id).await {
            Ok(conversation) => Ok(Some(conversation)),
            Err(Refusal::Session(SessionError::NotFound | SessionError::Ended | SessionError::InvalidId)) => {
                Ok(None)
            }
            Err(refusal) => Err(refusal),
        }
    }

    async fn open(&self, user: &User) -> Result<Arc<Conversation>, Refusal> {
        let session = self.orchestrator.open(user.client.clone(), Mode::Text, &self.registry).await?;
        Ok(self.cache(session, Vec::new()))
    }

    async fn resume(&self, user: &User, id: &str) -> Result<Arc<Conversation>, Refusal> {
        let session = self.orchestrator.resume(id, user.client.clone(), &self.registry).await?;
        if session.mode() != Mode::Text {
            return Err(SessionError::NotFound.into());
        }
        if let Some(known) = self.lock().get(id) {
            return Ok(known.clone());
        }
        let turns = history::load(&**self.orchestrator.store(), id).await?;
        let turns = self.end_interrupted(&session, turns);
        session.skip_to_turn(turns.last().map_or(0, |record| record.number));
        Ok(self.cache(session, turns))
    }

    /// Opens a conversation by the client's own name for it. After its session has ended, it continues in a new one.
    async fn open_chat(&self, user: &User, chat: &str) -> Result<Arc<Conversation>, Refusal> {
        let store = self.orchestrator.store().clone();
        let client = &user.client.id;
        // A request that loses the race against another first message finds the winner's session the second time.
        for _ in 0..3 {
            let known = history::session_of_chat(&*store, client, chat).await?;
            let ended = match &known {
                Some((id, _)) => match self.resume(user, id).await {
                    Ok(conversation) => return Ok(conversation),
                    Err(Refusal::Session(SessionError::Ended | SessionError::NotFound)) => Some(id.clone()),
                    Err(refusal) => return Err(refusal),
                },
                None => None,
            };
            let conversation = self.open(user).await?;
            let id = conversation.session.id().to_owned();
            let seen = known.map(|(_, version)| version);
            let entered = history::link_chat(client, chat, &id, seen, self.expiry_ms());
            match store.commit(entered).await {
                Ok(()) => {}
                Err(CommitError::Conflict { .. }) => continue,
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
            if let Some(ended) = ended {
                self.carry_over(&conversation, &ended).await?;
            }
            return Ok(conversation);
        }
        Err(Refusal::Busy)
    }

    /// Carries the history of an ended session over into the one that follows it.
    async fn carry_over(&self, conversation: &Conversation, ended: &str) -> Result<(), Refusal> {
        let turns = history::load(&**self.orchestrator.store(), ended).await?;
        let mut turns = self.end_interrupted(&conversation.session, turns);
        turns.drain(..turns.len().saturating_sub(MAX_CARRIED_TURNS));
        // They come before the new session's first turn, whose number is one, and are found under their new session
        // only in memory: the store has them under the old one.
        for turn in &mut turns {
            turn.number = 0;
        }
        let mut state = conversation.lock();
        state.turns = turns;
        state.recount_bytes();
        Ok(())
    }

    /// Ends turns that a crash has left open, so that the conversation can continue.
    fn end_interrupted(&self, session: &Session, mut turns: Vec<TurnRecord>) -> Vec<TurnRecord> {
        let last = turns.len().saturating_sub(1);
        let now = self.orchestrator.now();
        for (place, record) in turns.iter_mut().enumerate() {
            let waits = place == last && record.turn.is_suspended();
            if record.turn.ending().is_some() || waits {
                continue;
            }
            record.turn.stop(None, Ending::Failed, |tool| {
                let message =
                    "This was not answered before the server stopped. It is unknown whether it was done.";
                Arc::new(session.snapshot().refuse(tool, ToolError::new(ErrorType::Internal, message), now))
            });
        }
        turns
    }

    /// Keeps a conversation in memory. Of two that were loaded at the same time, the first one counts.
    fn cache(&self, session: Session, turns: Vec<TurnRecord>) -> Arc<Conversation> {
        let now_ms = self.orchestrator.now_ms();
        let mut known = self.lock();
        if known.len() >= self.settings.conversations {
            evict_oldest(&mut known);
        }
        while self.memory.is_full() && evict_oldest(&mut known) {}
        let id = session.id().to_owned();
        known.entry(id).or_insert_with(|| Conversation::new(session, turns, now_ms, &self.memory)).clone()
    }

    /// Lets go of what need not stay in memory now that a turn of this session is over.
    pub(super) fn evict_if_large(&self, id: &str) {
        let mut known = self.lock();
        if known
            .get(id)
            .is_some_and(|conversation| is_idle(conversation) && conversation.is_large_and_stored())
        {
            known.remove(id);
        }
        while self.memory.is_full() && evict_oldest(&mut known) {}
    }
}

/// Evicts the conversation that was idle for the longest time, stored ones first. Returns whether there
/// was one.
fn evict_oldest(known: &mut HashMap<String, Arc<Conversation>>) -> bool {
    let idle = known.iter().filter(|(_, conversation)| is_idle(conversation));
    let oldest = idle.min_by_key(|(_, conversation)| (!conversation.is_stored(), conversation.used_ms()));
    let oldest = oldest.map(|(id, _)| id.clone());
    oldest.is_some_and(|oldest| known.remove(&oldest).is_some())
}

/// Whether nothing is going on in it, nor about to begin: a request that has reached it holds on to it, and a second one
/// beside it would begin a second turn.
fn is_idle(conversation: &Arc<Conversation>) -> bool {
    Arc::strong_count(conversation) == 1 && !conversation.is_running()
}
