//! How a request reaches its conversation.

use std::collections::HashMap;
use std::sync::Arc;

use quarterdeck_contracts::{CommitError, ErrorType, Mode, StoreError, ToolError};
use quarterdeck_runtime::{Session, SessionError};

use super::conversation::{Conversation, ConversationState, ResolvedConfirmation};
use super::history::{self, TurnRecord};
use super::listing::{self, Listing};
use super::start::MAX_TAKES;
use super::{Address, Refusal, TextCore, User};
use crate::turn::Ending;

/// How ids of sessions begin.
const SESSION_ID_PREFIX: &str = "ses_";

/// A process that has died or lost the conversation may have run an approved call and not said so in the conversation: a turn
/// that still waits for the user's decision gets what the session knows of its calls.
pub(super) fn record_known_outcomes(session: &Session, record: &mut TurnRecord) {
    let waiting: Vec<Arc<str>> = record.turn.unresolved().map(Into::into).collect();
    for call_id in waiting {
        if let Some(response) = session.answer_of(&call_id) {
            record.record_resolution(ResolvedConfirmation { call_id, response, gates: None });
        }
    }
}

/// A conversation that was to be taken out of memory.
enum Taken {
    /// It is not in memory.
    Absent,
    /// It was not taken: a turn runs in it, or another request has it.
    InUse,
    Conversation(Box<ConversationState>),
}

impl TextCore {
    /// The conversation that a request means; one that does not exist yet is begun where that makes sense.
    pub(super) async fn open_conversation(
        &self,
        user: &User,
        address: Address<'_>,
    ) -> Result<Arc<Conversation>, Refusal> {
        self.check_may_write()?;
        match address {
            Address::New => self.open(user).await,
            Address::Session(id) => self.resume(user, id).await,
            Address::Chat(chat) => self.open_chat(user, chat).await,
        }
    }

    /// The same for a message, whose turn is stored next: what begins a conversation is stored with it.
    pub(super) async fn open_for_message(
        &self,
        user: &User,
        address: Address<'_>,
    ) -> Result<Arc<Conversation>, Refusal> {
        match address {
            Address::New => {
                self.check_may_write()?;
                self.open_unstored(user).await
            }
            Address::Session(_) | Address::Chat(_) => self.open_conversation(user, address).await,
        }
    }

    /// The conversation that a request means, if there is one.
    pub(super) async fn find(
        &self,
        user: &User,
        address: Address<'_>,
    ) -> Result<Option<Arc<Conversation>>, Refusal> {
        let Some(id) = self.session_id(user, address).await? else { return Ok(None) };
        match self.resume(user, &id).await {
            Ok(conversation) => Ok(Some(conversation)),
            Err(Refusal::Session(SessionError::NotFound | SessionError::Ended | SessionError::InvalidId)) => {
                Ok(None)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// The id of the session that a request means. Whether there is one is not known.
    pub(super) async fn session_id(
        &self,
        user: &User,
        address: Address<'_>,
    ) -> Result<Option<String>, Refusal> {
        Ok(match address {
            Address::New => None,
            Address::Session(id) => Some(id.to_owned()),
            Address::Chat(chat) => {
                let store = self.orchestrator.store();
                let known = history::session_of_chat(&**store, &user.client.id, chat).await?;
                // The name may be a session id: pages use what they were given.
                Some(known.map_or_else(|| chat.to_owned(), |(id, _)| id))
            }
        })
    }

    /// A listed conversation of the client whose session has ended, with its id and turns.
    pub(super) async fn load_ended(
        &self,
        user: &User,
        address: Address<'_>,
    ) -> Result<Option<(String, Listing, Vec<TurnRecord>)>, Refusal> {
        let store = &**self.orchestrator.store();
        let Some(id) = self.session_id(user, address).await? else { return Ok(None) };
        let Some(listing) = listing::load(store, &user.client.id, &id).await? else { return Ok(None) };
        let mut turns = history::load_earlier(store, &listing.earlier).await?;
        turns.extend(history::load(store, &id).await?);
        Ok(Some((id, listing, turns)))
    }

    async fn open(&self, user: &User) -> Result<Arc<Conversation>, Refusal> {
        let session = self.orchestrator.open(user.client.clone(), Mode::Text, &self.registry).await?;
        Ok(self.cache(session, self.new_state(Vec::new(), None)))
    }

    /// Begins a conversation that its first commit stores.
    async fn open_unstored(&self, user: &User) -> Result<Arc<Conversation>, Refusal> {
        let session =
            self.orchestrator.open_unstored(user.client.clone(), Mode::Text, &self.registry).await?;
        Ok(self.cache(session, self.new_state(Vec::new(), None)))
    }

    async fn resume(&self, user: &User, id: &str) -> Result<Arc<Conversation>, Refusal> {
        let is_followed = self.registry.is_followed();
        let _moving = if is_followed { Some(self.moving.lock().await) } else { None };
        let mut session = self.orchestrator.resume(id, user.client.clone(), &self.registry).await?;
        if session.mode() != Mode::Text {
            return Err(SessionError::NotFound.into());
        }
        if is_followed && !self.has_current_tools(&session) {
            match self.take_idle(id) {
                Taken::InUse => {}
                Taken::Absent => session = self.repin(user, session).await?,
                Taken::Conversation(state) => {
                    let session = self.repin(user, session).await?;
                    return Ok(self.cache(session, *state));
                }
            }
        }
        if let Some(known) = self.cached(&session) {
            return Ok(known);
        }
        let store = &**self.orchestrator.store();
        let turns = history::load(store, id).await?;
        let turns = self.end_interrupted(&session, turns);
        session.skip_to_turn(turns.last().map_or(0, |record| record.number));
        let listing = listing::load(store, &user.client.id, id).await?;
        let earlier = listing.as_ref().map_or(&[][..], |listing| &listing.earlier);
        let mut all = self.end_interrupted(&session, history::load_earlier(store, earlier).await?);
        all.extend(turns);
        if let Some(last) = all.last_mut() {
            record_known_outcomes(&session, last);
        }
        Ok(self.cache(session, self.new_state(all, listing)))
    }

    /// The conversation of a session that is in memory. One from before another node had the session is dropped.
    fn cached(&self, session: &Session) -> Option<Arc<Conversation>> {
        let mut known = self.lock();
        let conversation = known.get(session.id())?;
        if conversation.session.is_same(session) {
            return Some(conversation.clone());
        }
        known.remove(session.id());
        None
    }

    /// Drops a conversation that another node has, or that could not be stored.
    pub(super) fn forget_lost(&self, conversation: &Conversation) {
        let mut known = self.lock();
        let id = conversation.session.id();
        if known.get(id).is_some_and(|cached| cached.session.is_same(&conversation.session)) {
            known.remove(id);
        }
    }

    /// A node that the others may believe dead begins no turn.
    fn check_may_write(&self) -> Result<(), Refusal> {
        if self.orchestrator.may_write() {
            return Ok(());
        }
        let error = "this node cannot tell the others that it lives, so it begins nothing";
        Err(StoreError::Unavailable(error.into()).into())
    }

    /// Takes a conversation for this node, which nothing that is about to be done would.
    pub(super) async fn hold(&self, conversation: &Conversation) -> Result<(), Refusal> {
        let held = conversation.session.hold().await;
        if matches!(held, Err(SessionError::Lost)) {
            self.forget_lost(conversation);
        }
        Ok(held?)
    }

    /// The conversation that a request means, if there is one, taken for this node.
    pub(super) async fn find_held(
        &self,
        user: &User,
        address: Address<'_>,
    ) -> Result<Option<Arc<Conversation>>, Refusal> {
        self.check_may_write()?;
        for _ in 0..MAX_TAKES {
            let Some(conversation) = self.find(user, address).await? else { return Ok(None) };
            match self.hold(&conversation).await {
                Err(Refusal::Session(SessionError::Lost)) => {}
                held => return held.map(|()| Some(conversation)),
            }
        }
        Err(Refusal::Busy)
    }

    /// Gives a conversation away in which nothing is going on that other nodes could not go on with.
    pub(super) async fn release_settled(&self, conversation: &Conversation) {
        if !conversation.is_running()
            && conversation.is_settled()
            && let Err(error) = conversation.session.release().await
        {
            tracing::warn!(session = conversation.session.id(), error = %error, "conversation was not released");
        }
    }

    fn has_current_tools(&self, session: &Session) -> bool {
        session.snapshot().content_hash() == self.registry.snapshot().content_hash()
    }

    /// Gives a session the tools as they are now, unless something still belongs to those that it has.
    async fn repin(&self, user: &User, session: Session) -> Result<Session, Refusal> {
        Ok(self.orchestrator.repin(session, user.client.clone(), &self.registry).await?)
    }

    /// Takes a conversation out of memory if nothing is going on in it, so that its session can be replaced.
    fn take_idle(&self, id: &str) -> Taken {
        let mut known = self.lock();
        match known.remove(id) {
            None => Taken::Absent,
            Some(conversation) if conversation.is_running() => {
                known.insert(id.to_owned(), conversation);
                Taken::InUse
            }
            Some(conversation) => match Arc::try_unwrap(conversation) {
                Ok(conversation) => Taken::Conversation(Box::new(conversation.into_state())),
                Err(conversation) => {
                    known.insert(id.to_owned(), conversation);
                    Taken::InUse
                }
            },
        }
    }

    fn new_state(&self, turns: Vec<TurnRecord>, listing: Option<Listing>) -> ConversationState {
        ConversationState::new(turns, listing, &self.memory)
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
                // A page that has found the conversation in the list may have no other name for it than the session's.
                None if chat.starts_with(SESSION_ID_PREFIX) => match self.resume(user, chat).await {
                    Ok(conversation) => return Ok(conversation),
                    Err(Refusal::Session(SessionError::Ended)) => Some(chat.to_owned()),
                    Err(Refusal::Session(SessionError::NotFound | SessionError::InvalidId)) => None,
                    Err(refusal) => return Err(refusal),
                },
                None => None,
            };
            let conversation = self.open_unstored(user).await?;
            let seen = known.map(|(_, version)| version);
            let entered = history::link_chat(client, chat, conversation.session.id(), seen, self.expiry_ms());
            if let Err(error) = conversation.session.commit(entered).await {
                self.forget_lost(&conversation);
                match error {
                    CommitError::Conflict { .. } => continue,
                    error => return Err(error.into_store_error().into()),
                }
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
        let sessions = self.continue_listing(conversation, ended).await?;
        let turns = history::load_earlier(&**self.orchestrator.store(), &sessions).await?;
        let turns = self.end_interrupted(&conversation.session, turns);
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
    fn cache(&self, session: Session, state: ConversationState) -> Arc<Conversation> {
        let now_ms = self.orchestrator.now_ms();
        let mut known = self.lock();
        if known.len() >= self.settings.conversations {
            evict_oldest(&mut known);
        }
        while self.memory.is_full() && evict_oldest(&mut known) {}
        let id = session.id().to_owned();
        known.entry(id).or_insert_with(|| Conversation::new(session, state, now_ms)).clone()
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
pub(super) fn is_idle(conversation: &Arc<Conversation>) -> bool {
    Arc::strong_count(conversation) == 1 && !conversation.is_running()
}
