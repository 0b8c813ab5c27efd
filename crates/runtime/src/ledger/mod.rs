//! The calls of one session: which were seen, how far they are, and what they came to.
//!
//! The ledger is memory. What must outlive the process is written from it to the store by the session.

mod empty_result;
mod entry;
mod history;
mod keys;
mod slow;
mod turn;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarterdeck_contracts::ToolResponse;

pub use empty_result::is_empty_result;
pub use entry::Phase;
pub(crate) use entry::{CallIdentity, CallUpdate, Entry};
use history::TurnHistory;
pub(crate) use keys::{CallContent, hash_key};
pub(crate) use slow::SlowCalls;
pub(crate) use turn::{Turn, TurnFacts};

use crate::gates::{Duplicate, Redelivery};
use crate::metrics::TrackedTurns;

/// How many refusals are remembered for their ids.
const MAX_REFUSALS: usize = 200;

/// A map whose keys are hashed fast and from a random seed.
type Map<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

pub(crate) struct Ledger {
    turns: TurnHistory,
    /// The calls of this turn, by content.
    by_content: Map<CallContent, Arc<Entry>>,
    by_provider_id: Map<Arc<str>, KnownCall>,
    /// Writes whose answers were not delivered yet, by content.
    undelivered_writes: Map<CallContent, Arc<Entry>>,
    /// Calls that do not write, the least recently used first.
    reads: VecDeque<Arc<Entry>>,
    refusals: VecDeque<Arc<str>>,
    max_remembered_calls: usize,
    /// Whether the next turn begins with what others wrote.
    announces_foreign_text: bool,
    /// Calls that took longer than they should, for a note at the beginning of the next turn.
    slow_calls: SlowCalls,
}

/// What a provider's id stood for.
#[derive(Clone)]
pub(crate) enum KnownCall {
    Call(Arc<Entry>),
    Refusal { content: CallContent, response: Arc<ToolResponse>, turn: u64 },
}

impl Ledger {
    pub(crate) fn new(turn: u64, max_remembered_calls: usize, tracked: TrackedTurns) -> Self {
        Self {
            turns: TurnHistory::new(Turn::new(turn), tracked),
            by_content: Map::default(),
            by_provider_id: Map::default(),
            undelivered_writes: Map::default(),
            reads: VecDeque::new(),
            refusals: VecDeque::new(),
            max_remembered_calls,
            announces_foreign_text: false,
            slow_calls: SlowCalls::default(),
        }
    }

    pub(crate) fn turn(&mut self) -> &mut Turn {
        self.turns.present()
    }

    pub(crate) fn turn_number(&self) -> u64 {
        self.turns.present_number()
    }

    pub(crate) fn slow_calls(&mut self) -> &mut SlowCalls {
        &mut self.slow_calls
    }

    /// The session has ended: its turns do not count among those that are tracked.
    pub(crate) fn stop_tracking(&mut self) {
        self.turns.stop_tracking();
    }

    /// Budgets and loop counts start over.
    pub(crate) fn begin_turn(&mut self) -> u64 {
        let number = self.turn_number() + 1;
        let has_read_foreign_text = std::mem::take(&mut self.announces_foreign_text);
        let mut turn = Turn::new(number);
        turn.has_read_foreign_text = has_read_foreign_text;
        self.turns.push(turn);
        self.by_content.clear();
        number
    }

    /// The model will read text by others, in this turn or at the beginning of the next.
    pub(crate) fn announce_foreign_text(&mut self) {
        self.turn().has_read_foreign_text = true;
        self.announces_foreign_text = true;
    }

    /// What another node needs to continue the present turn as if it had been its own; `None` when that would be too much.
    pub(crate) fn turn_facts(&mut self) -> Option<TurnFacts> {
        let announces_foreign_text = self.announces_foreign_text;
        self.turn().facts(announces_foreign_text)
    }

    /// Continues the present turn from what another node has handed over; `false` when that was another turn.
    pub(crate) fn continue_turn(&mut self, facts: &TurnFacts) -> bool {
        self.announces_foreign_text = facts.announces_foreign_text();
        self.turn().continue_from(facts)
    }

    /// Goes on at a turn that is known from elsewhere to have begun.
    pub(crate) fn skip_to(&mut self, number: u64) {
        if number > self.turn_number() {
            self.begin_turn();
            self.turn().number = number;
        }
    }

    /// Whether a provider's id was seen, and with the same content.
    pub(crate) fn redelivery(&self, provider_id: Option<&str>, content: &str) -> Redelivery {
        match provider_id.and_then(|id| self.by_provider_id.get(id)) {
            None => Redelivery::New,
            Some(KnownCall::Call(entry)) if *entry.content == *content => Redelivery::Same,
            Some(KnownCall::Refusal { content: seen, .. }) if **seen == *content => Redelivery::Same,
            Some(_) => Redelivery::Different,
        }
    }

    pub(crate) fn duplicate(&self, content: &CallContent) -> Duplicate {
        if self.by_content.contains_key(content) {
            Duplicate::InTurn
        } else if self.undelivered_writes.contains_key(content) {
            Duplicate::UndeliveredWrite
        } else {
            Duplicate::No
        }
    }

    pub(crate) fn find_by_provider_id(&mut self, provider_id: &str) -> Option<KnownCall> {
        let seen = self.by_provider_id.get(provider_id).cloned();
        if let Some(KnownCall::Call(entry)) = &seen {
            self.touch(entry);
        }
        seen
    }

    /// The answer of a call by the id under which it came; nothing for one that was refused or has none yet.
    pub(crate) fn answer_of(&self, provider_id: &str) -> Option<Arc<ToolResponse>> {
        match self.by_provider_id.get(provider_id)? {
            KnownCall::Call(entry) => entry.answer(),
            KnownCall::Refusal { .. } => None,
        }
    }

    /// The equal call of this turn, or the undelivered write of an earlier one.
    pub(crate) fn find_equal(&mut self, content: &CallContent) -> Option<Arc<Entry>> {
        let entry = self.by_content.get(content).or_else(|| self.undelivered_writes.get(content)).cloned()?;
        self.touch(&entry);
        Some(entry)
    }

    /// The equal call of this turn, while it has no answer.
    pub(crate) fn find_unanswered(&self, content: &CallContent) -> Option<Arc<Entry>> {
        self.by_content.get(content).filter(|entry| entry.answer().is_none()).cloned()
    }

    /// Enters a call. The one that was forgotten for it, if any.
    pub(crate) fn insert(&mut self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        if entry.turn == self.turn_number() {
            self.by_content.insert(entry.content.clone(), entry.clone());
        }
        if let Some(id) = &entry.provider_id {
            self.by_provider_id.insert(id.clone(), KnownCall::Call(entry.clone()));
        }
        if entry.writes {
            self.undelivered_writes.insert(entry.content.clone(), entry);
            return None;
        }
        // A call that waited for approval is inserted a second time when it runs.
        if entry.is_listed.swap(true, Ordering::Relaxed) {
            self.reads.retain(|other| !Arc::ptr_eq(other, &entry));
        }
        self.reads.push_back(entry);
        let oldest = (self.reads.len() > self.max_remembered_calls).then(|| self.reads.pop_front())??;
        self.unlink(&oldest);
        Some(oldest)
    }

    /// Remembers a refusal under the id of its call. The id that was forgotten for it, if any.
    pub(crate) fn remember_refusal(
        &mut self,
        provider_id: &str,
        content: CallContent,
        response: Arc<ToolResponse>,
        turn: u64,
    ) -> Option<Arc<str>> {
        let id: Arc<str> = provider_id.into();
        self.by_provider_id.insert(id.clone(), KnownCall::Refusal { content, response, turn });
        // An id that is refused again is remembered from now on, and not forgotten with its first refusal.
        self.refusals.retain(|other| *other != id);
        self.refusals.push_back(id);
        let oldest = (self.refusals.len() > MAX_REFUSALS).then(|| self.refusals.pop_front())??;
        if matches!(self.by_provider_id.get(&oldest), Some(KnownCall::Refusal { .. })) {
            self.by_provider_id.remove(&oldest);
        }
        Some(oldest)
    }

    /// Removes a call, so that it may be made again.
    pub(crate) fn remove(&mut self, entry: &Arc<Entry>) {
        self.unlink(entry);
        self.reads.retain(|other| !Arc::ptr_eq(other, entry));
    }

    pub(crate) fn mark_delivered(&mut self, entry: &Arc<Entry>) {
        entry.advance(Phase::Delivered);
        if self.undelivered_writes.get(&entry.content).is_some_and(|other| Arc::ptr_eq(other, entry)) {
            self.undelivered_writes.remove(&entry.content);
        }
    }

    /// The receiver has forgotten the answer. If it was a write, the same call again is answered from the record.
    pub(crate) fn mark_forgotten(&mut self, entry: &Arc<Entry>) {
        if entry.writes && entry.is_final() {
            self.undelivered_writes.entry(entry.content.clone()).or_insert_with(|| entry.clone());
        }
    }

    /// Everything delivered so far has been heard.
    pub(crate) fn mark_heard(&mut self) {
        for seen in self.by_provider_id.values() {
            if let KnownCall::Call(entry) = seen
                && entry.phase() == Phase::Delivered
            {
                entry.advance(Phase::Heard);
            }
        }
    }

    fn touch(&mut self, entry: &Arc<Entry>) {
        if let Some(place) = self.reads.iter().position(|other| Arc::ptr_eq(other, entry))
            && let Some(entry) = self.reads.remove(place)
        {
            self.reads.push_back(entry);
        }
    }

    fn unlink(&mut self, entry: &Arc<Entry>) {
        let is_it = |other: &Arc<Entry>| Arc::ptr_eq(other, entry);
        if self.by_content.get(&entry.content).is_some_and(is_it) {
            self.by_content.remove(&entry.content);
        }
        if self.undelivered_writes.get(&entry.content).is_some_and(is_it) {
            self.undelivered_writes.remove(&entry.content);
        }
        if let Some(id) = &entry.provider_id
            && matches!(self.by_provider_id.get(id), Some(KnownCall::Call(other)) if is_it(other))
        {
            self.by_provider_id.remove(id);
        }
    }
}
