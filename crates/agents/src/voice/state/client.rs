//! What the machine knows of the client: whether it is there, what it has been shown, and what it missed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{ConfirmationRequest, ConfirmationToken};
use tokio::time::Instant;

use super::output::ClientOutput;

/// How many messages are kept for a client that is away; the oldest go first.
const MAX_BUFFERED_MESSAGES: usize = 50;
/// How many bytes of one speaker's words are kept in one message.
const MAX_TRANSCRIPT_BYTES: usize = 16_000;
/// How many results are remembered as shown.
const MAX_SHOWN_RESULTS: usize = 50;

#[derive(Debug)]
pub(super) struct ClientState {
    pub(super) is_connected: bool,
    /// Whether an earlier session, or this one on an earlier link, is resumed.
    pub(super) is_resumed: bool,
    /// Whether the call stands, so that a link can be greeted.
    pub(super) is_ready: bool,
    pub(super) away_since: Option<Instant>,
    pub(super) last_seen: Instant,
    pub(super) last_ping: Instant,
    confirmations: Vec<OpenConfirmation>,
    /// Calls whose results the client has, the latest last, so that none is shown twice.
    shown: VecDeque<Arc<str>>,
    pub(super) missed: ReplayBuffer,
}

#[derive(Debug)]
struct OpenConfirmation {
    call_id: Arc<str>,
    request: Arc<ConfirmationRequest>,
    since: Instant,
}

impl OpenConfirmation {
    fn token(&self) -> Option<&str> {
        self.request.token.as_ref().map(ConfirmationToken::expose)
    }
}

impl ClientState {
    pub(super) fn new(is_resumed: bool, now: Instant) -> Self {
        Self {
            is_connected: true,
            is_resumed,
            is_ready: false,
            away_since: None,
            last_seen: now,
            last_ping: now,
            confirmations: Vec::new(),
            shown: VecDeque::new(),
            missed: ReplayBuffer::default(),
        }
    }

    pub(super) fn attach(&mut self, now: Instant) {
        self.is_connected = true;
        self.away_since = None;
        (self.last_seen, self.last_ping) = (now, now);
    }

    pub(super) fn detach(&mut self, now: Instant) {
        self.is_connected = false;
        self.away_since = Some(now);
    }

    pub(super) fn add_confirmation(
        &mut self,
        call_id: Arc<str>,
        request: Arc<ConfirmationRequest>,
        now: Instant,
    ) {
        self.remove_confirmation(&call_id);
        self.confirmations.push(OpenConfirmation { call_id, request, since: now });
    }

    /// The confirmation that is open, with its token, if there is exactly one. One that has not been resolved within
    /// `lifetime` is not open any more.
    pub(super) fn only_confirmation(
        &self,
        now: Instant,
        lifetime: Duration,
    ) -> Option<(String, Arc<ConfirmationRequest>)> {
        let is_open = |own: &&OpenConfirmation| now.saturating_duration_since(own.since) < lifetime;
        let mut open = self.confirmations.iter().filter(is_open);
        let first = open.next()?;
        let token = first.token()?;
        // A model that makes the same call again asks the same question.
        open.all(|other| other.token() == Some(token)).then(|| (token.to_owned(), first.request.clone()))
    }

    pub(super) fn remove_confirmation(&mut self, call_id: &str) {
        self.confirmations.retain(|own| &*own.call_id != call_id);
    }

    pub(super) fn remove_confirmation_by_token(&mut self, token: &str) {
        self.confirmations.retain(|own| own.token() != Some(token));
    }

    /// Open confirmations, to be shown again to a client that comes back.
    pub(super) fn confirmations(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<ConfirmationRequest>)> {
        self.confirmations.iter().map(|own| (&own.call_id, &own.request))
    }

    pub(super) fn mark_shown(&mut self, call_id: &Arc<str>) {
        if self.shown.len() == MAX_SHOWN_RESULTS {
            self.shown.pop_front();
        }
        self.shown.push_back(call_id.clone());
    }

    pub(super) fn was_shown(&self, call_id: &str) -> bool {
        self.shown.iter().any(|shown| &**shown == call_id)
    }
}

/// Messages for a client that is away.
#[derive(Debug, Default)]
pub(super) struct ReplayBuffer {
    messages: VecDeque<ClientOutput>,
}

impl ReplayBuffer {
    /// Keeps a message if it still matters later: final words, results, and what tools say.
    pub(super) fn push(&mut self, mut message: ClientOutput) {
        match &mut message {
            ClientOutput::Transcript { by, text, is_final: true, is_late } => {
                // A sentence comes in many pieces.
                if let Some(ClientOutput::Transcript { by: last, text: words, .. }) = self.messages.back_mut()
                    && last == by
                {
                    let room = MAX_TRANSCRIPT_BYTES.saturating_sub(words.len());
                    return words.push_str(&text[..text.floor_char_boundary(room)]);
                }
                text.truncate(text.floor_char_boundary(MAX_TRANSCRIPT_BYTES));
                *is_late = false;
            }
            ClientOutput::ToolResult { .. } | ClientOutput::Message(_) => {}
            _ => return,
        }
        if self.messages.len() == MAX_BUFFERED_MESSAGES {
            self.messages.pop_front();
        }
        self.messages.push_back(message);
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = ClientOutput> {
        self.messages.drain(..)
    }
}
