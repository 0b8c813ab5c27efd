//! The conversation as the chat model is shown it: what the user said, what they heard of the answers, and what the
//! calls came to. It does no I/O and reads no clock.

mod reply;

use std::collections::VecDeque;
use std::sync::Arc;

use quarterdeck_contracts::{
    ChatMessage, ErrorType, LiveResult, LiveTurn, ModelCall, ModelMessage, Speaker, estimate_tokens,
};

pub(crate) use reply::replace_text;
use reply::{OpenCall, Reply, failure, is_empty_text, text_part};

/// How many bytes of one message of the user are kept, notes included.
const MAX_MESSAGE_BYTES: usize = 32_000;
/// How many notes may wait for the next message.
const MAX_NOTES: usize = 32;
/// How many messages are kept at the most; the oldest go first.
const MAX_ENTRIES: usize = 400;

const INTERRUPTED_NOTE: &str =
    "[Note: You were interrupted. The user has heard your last answer only as far as it stands here.]";

/// What was said, the oldest first.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// [`quarterdeck_contracts::ChatModel::name`].
    model: String,
    entries: VecDeque<Entry>,
    /// Notes for the model that stand before the user's next message.
    notes: Vec<String>,
    replies: u64,
    call_ids: CallIds,
}

#[derive(Debug)]
enum Entry {
    User(String),
    Reply(Reply),
}

/// Names calls. A model's own ids may be missing, or be the same in every reply, and a result that was recorded under an
/// id is never another call's.
#[derive(Debug)]
struct CallIds {
    prefix: String,
    last: u64,
}

/// What follows from a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// More results are awaited, or nothing is to be said.
    Quiet,
    /// Every call of the message has its result, and the model should speak about it.
    Ask,
    /// It answers no call that waits.
    Unknown,
}

impl Conversation {
    /// `prefix` makes the ids of calls unlike those of any other connection.
    pub(crate) fn new(model: &str, prefix: String, history: Vec<LiveTurn>) -> Self {
        let call_ids = CallIds { prefix, last: 0 };
        let mut conversation = Self {
            model: model.to_owned(),
            entries: VecDeque::new(),
            notes: Vec::new(),
            replies: 0,
            call_ids,
        };
        for turn in history {
            match turn.by {
                Speaker::User => conversation.add_user(&turn.text, "\n"),
                Speaker::Model => conversation.add_spoken(&turn.text),
            }
        }
        conversation
    }

    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    /// Adds what the user said or wrote. What has no answer yet is one message with it.
    pub(crate) fn add_user(&mut self, text: &str, separator: &str) {
        if text.trim().is_empty() {
            return;
        }
        let notes = std::mem::take(&mut self.notes);
        if let Some(Entry::User(message)) = self.entries.back_mut() {
            let notes: String = notes.iter().map(|note| format!("\n\n{note}\n\n")).collect();
            let separator = if notes.is_empty() { separator } else { &notes };
            push_bounded(message, separator);
            return push_bounded(message, text.trim());
        }
        let mut message = String::new();
        for note in notes {
            push_bounded(&mut message, &note);
            push_bounded(&mut message, "\n\n");
        }
        push_bounded(&mut message, text.trim());
        self.push(Entry::User(message));
    }

    /// Adds a note for the model, which stands before the user's next message.
    pub(crate) fn add_note(&mut self, note: &str) {
        if self.notes.len() < MAX_NOTES && !note.trim().is_empty() {
            self.notes.push(note.trim().to_owned());
        }
    }

    fn add_spoken(&mut self, text: &str) {
        if let Some(Entry::Reply(reply)) = self.entries.back_mut() {
            reply.message.parts.push(text_part(text));
            return;
        }
        let message = ModelMessage { by: self.model.clone(), parts: vec![text_part(text)] };
        let number = self.begin_reply();
        self.add_reply(number, message);
    }

    /// The number of a reply that the model is about to give.
    pub(crate) fn begin_reply(&mut self) -> u64 {
        self.replies += 1;
        self.replies
    }

    /// Adds a reply. Returns its calls under ids that no other call has.
    pub(crate) fn add_reply(&mut self, number: u64, mut message: ModelMessage) -> Vec<ModelCall> {
        message.parts.retain(|part| part.state.is_some() || !is_empty_text(part));
        if message.parts.is_empty() {
            return Vec::new();
        }
        let (mut named, mut calls) = (Vec::new(), Vec::new());
        for call in message.calls() {
            let id = self.call_ids.next();
            let (own_id, name) = (call.id.clone(), call.name.clone());
            calls.push(OpenCall { id: id.clone(), own_id, name, result: None });
            named.push(ModelCall { id: Some(id), ..call.clone() });
        }
        let reply = Reply { number, message, calls, is_detached: false, needs_words: false };
        self.push(Entry::Reply(reply));
        named
    }

    /// Takes the result of a call.
    pub(crate) fn deliver(&mut self, result: &LiveResult<'_>) -> Delivery {
        let replies = self.entries.iter_mut().rev().filter_map(Entry::as_reply);
        for reply in replies {
            let Some(call) = reply.calls.iter_mut().find(|call| call.answers(result)) else { continue };
            call.result = Some(Arc::new(result.response.for_model()));
            reply.needs_words |= !result.is_silent;
            let is_complete = result.is_last || reply.calls.iter().all(|call| call.result.is_some());
            if !is_complete || !std::mem::take(&mut reply.needs_words) {
                return Delivery::Quiet;
            }
            if reply.is_detached {
                // The model has been told that there was no result yet, and may have said so.
                let name = result.name;
                self.add_note(&format!("[Note: {name}, which you called before, has its result now.]"));
            }
            return Delivery::Ask;
        }
        Delivery::Unknown
    }

    /// Whether the model waits for results, so that it can not be asked.
    pub(crate) fn awaits_results(&self) -> bool {
        let replies = self.entries.iter().filter_map(|entry| match entry {
            Entry::Reply(reply) => Some(reply),
            Entry::User(_) => None,
        });
        replies.filter(|reply| !reply.is_detached).any(Reply::has_open_calls)
    }

    /// Calls that the agent was never told of are not run.
    pub(crate) fn refuse_calls(&mut self, ids: &[&str]) {
        let replies = self.entries.iter_mut().filter_map(Entry::as_reply);
        for call in replies.flat_map(|reply| &mut reply.calls).filter(|call| ids.contains(&&*call.id)) {
            let message = "The user has interrupted. Nothing was done.";
            call.result = Some(Arc::new(failure(&call.name, ErrorType::Cancelled, message)));
        }
    }

    /// The conversation goes on without the results that are missing. They are taken when they come.
    pub(crate) fn detach_calls(&mut self) {
        for reply in self.entries.iter_mut().filter_map(Entry::as_reply) {
            reply.is_detached |= reply.has_open_calls();
        }
    }

    /// Cuts replies down to what the user has heard of each, by their numbers. One of which nothing was heard is gone, but its
    /// calls and their results stay. Returns whether some of it was heard and some was not.
    pub(crate) fn cut_replies(&mut self, first: u64, heard: impl Fn(u64) -> String) -> bool {
        let (mut was_heard, mut was_cut) = (false, false);
        for reply in self.entries.iter_mut().filter_map(Entry::as_reply).filter(|reply| reply.number >= first)
        {
            let heard = heard(reply.number);
            was_heard |= !heard.trim().is_empty();
            was_cut |= heard.trim() != reply.message.text().trim();
            reply.cut(&heard);
        }
        self.entries.retain(|entry| match entry {
            Entry::Reply(reply) => !reply.message.parts.is_empty(),
            Entry::User(_) => true,
        });
        self.join_user_messages();
        was_heard && was_cut
    }

    /// Messages of the user between which an answer was dropped are one.
    fn join_user_messages(&mut self) {
        let mut joined: VecDeque<Entry> = VecDeque::with_capacity(self.entries.len());
        for entry in self.entries.drain(..) {
            match (joined.back_mut(), entry) {
                (Some(Entry::User(message)), Entry::User(text)) => {
                    push_bounded(message, "\n");
                    push_bounded(message, &text);
                }
                (_, entry) => joined.push_back(entry),
            }
        }
        self.entries = joined;
    }

    /// The model is told that what it sees of its last answer is what was heard.
    pub(crate) fn mark_interrupted(&mut self) {
        self.add_note(INTERRUPTED_NOTE);
    }

    /// What is to be sent to the model, or nothing when the last word is its own. Notes that wait are in it.
    pub(crate) fn request(&mut self) -> Option<Vec<ChatMessage>> {
        self.place_notes();
        if !self.is_askable() {
            return None;
        }
        Some(self.messages())
    }

    fn is_askable(&self) -> bool {
        match self.entries.back() {
            Some(Entry::User(_)) => true,
            Some(Entry::Reply(reply)) => !reply.calls.is_empty(),
            None => false,
        }
    }

    /// Notes without a message of the user are a message of their own, or stand before one that waits for its answer.
    fn place_notes(&mut self) {
        if self.notes.is_empty() {
            return;
        }
        let mut notes = std::mem::take(&mut self.notes).join("\n");
        match self.entries.back_mut() {
            Some(Entry::User(message)) => {
                notes.push_str("\n\n");
                message.insert_str(0, &notes);
                message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
            }
            _ => {
                notes.truncate(notes.floor_char_boundary(MAX_MESSAGE_BYTES));
                self.push(Entry::User(notes));
            }
        }
    }

    /// The messages, from the first of the user's on. Every call has a result.
    pub(crate) fn messages(&self) -> Vec<ChatMessage> {
        let mut messages = Vec::new();
        for entry in self.entries.iter().skip_while(|entry| matches!(entry, Entry::Reply(_))) {
            match entry {
                Entry::User(text) => messages.push(ChatMessage::User { text: text.clone() }),
                Entry::Reply(reply) => {
                    messages.push(ChatMessage::Model(reply.message.clone()));
                    if !reply.calls.is_empty() {
                        messages.push(ChatMessage::Tools { results: reply.results() });
                    }
                }
            }
        }
        messages
    }

    /// Drops the oldest turns until the rest has about so many tokens. The last turn stays.
    pub(crate) fn trim(&mut self, max_tokens: usize) {
        let mut tokens: usize = self.entries.iter().map(Entry::tokens).sum();
        while tokens > max_tokens {
            let is_user = |entry: &Entry| matches!(entry, Entry::User(_));
            let Some(next) = self.entries.iter().skip(1).position(is_user) else { return };
            tokens -= self.entries.drain(..=next).map(|entry| entry.tokens()).sum::<usize>();
        }
    }

    /// About how many tokens it has.
    pub(crate) fn tokens(&self) -> usize {
        self.entries.iter().map(Entry::tokens).sum()
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }
}

impl Entry {
    fn as_reply(&mut self) -> Option<&mut Reply> {
        match self {
            Self::Reply(reply) => Some(reply),
            Self::User(_) => None,
        }
    }

    fn tokens(&self) -> usize {
        match self {
            Self::User(text) => estimate_tokens(text.len()),
            Self::Reply(reply) => reply.tokens(),
        }
    }
}

impl CallIds {
    fn next(&mut self) -> String {
        self.last += 1;
        format!("{}-{}", self.prefix, self.last)
    }
}

fn push_bounded(to: &mut String, text: &str) {
    let room = MAX_MESSAGE_BYTES.saturating_sub(to.len());
    to.push_str(&text[..text.floor_char_boundary(room)]);
}
