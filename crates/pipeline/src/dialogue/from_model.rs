//! What the chat model writes.

use quarterdeck_contracts::{
    ChatError, ChatErrorKind, Finish, LiveEvent, ModelMessage, ModelPart, ModelReply, PartContent,
};

use super::{Dialogue, Generating, QueuedPiece};
use crate::conversation::replace_text;

/// How often the model is asked again in one turn because its reply was lost.
const MAX_REPEATS: u32 = 1;
const LOST_NOTE: &str = "[Note: The connection was lost while you were answering. The user has heard it as far as it stands here; go on from there.]";

/// How many bytes of one reply are spoken. It takes half an hour to say them.
const MAX_REPLY_BYTES: usize = 24_000;

impl Dialogue {
    /// More of the reply. Sentences that are complete are to be spoken.
    pub(crate) fn on_reply_text(&mut self, text: &str) {
        let Some(generating) = &mut self.generating else { return };
        let room = MAX_REPLY_BYTES.saturating_sub(generating.text.len());
        let taken = &text[..text.floor_char_boundary(room)];
        generating.text.push_str(taken);
        if taken.len() < text.len() && !std::mem::replace(&mut generating.is_too_long, true) {
            let what = "a reply is too long to be spoken, and was cut".to_owned();
            self.events.push_back(LiveEvent::Warning(what));
        }
        let reply = Some(generating.number);
        self.sentences.push(taken);
        while let Some(piece) = self.sentences.next_complete() {
            self.queue.push_back(QueuedPiece {
                reply,
                text: piece.text,
                is_code: piece.is_code,
                is_rest: false,
            });
        }
    }

    /// The reply is complete.
    pub(crate) fn on_reply_done(&mut self, mut reply: ModelReply) {
        let Some(generating) = &self.generating else { return };
        // A model may give all of it at once.
        let whole = reply.message.text();
        if let Some(rest) = whole.strip_prefix(&generating.text).filter(|_| !generating.is_too_long) {
            self.on_reply_text(rest);
        }
        self.queue_rest();
        let Some(generating) = self.generating.take() else { return };
        if generating.text != whole {
            replace_text(&mut reply.message, &generating.text);
        }
        let is_empty = generating.text.trim().is_empty();
        let calls = self.conversation.add_reply(generating.number, reply.message);
        self.events.push_back(LiveEvent::Usage(reply.usage));
        if !calls.is_empty() {
            self.events.push_back(LiveEvent::Calls(calls));
        } else if is_empty {
            let why = match reply.finish {
                Finish::Stop | Finish::Length => "the model has nothing to say".to_owned(),
                Finish::Filtered => "the provider held an answer back".to_owned(),
                Finish::Other(why) => format!("a reply ended as {why}"),
            };
            self.on_empty_reply(why);
        }
    }

    /// The model says nothing. After something was said that is its right; after results, which may have ended the call, no
    /// words of ours may come between.
    fn on_empty_reply(&mut self, why: String) {
        let has_words = self.playback.has_audio() || self.is_speaking() || !self.queue.is_empty();
        if !has_words && self.turn.steps == 1 {
            return self.fail(why);
        }
        self.events.push_back(LiveEvent::Warning(why));
        if !has_words {
            self.events.push_back(LiveEvent::ResponseFailed);
            self.turn.is_generation_complete = true;
        }
    }

    /// There is no reply, or no more of it. What was said of it stands, and the model is asked for the rest, once: neither is
    /// said twice nor is a call made that was not. A conversation that is too long is asked again without its older half.
    pub(crate) fn on_reply_failed(&mut self, error: &ChatError) {
        let Some(generating) = self.generating.take() else { return };
        let has_begun = !generating.text.trim().is_empty();
        if error.kind == ChatErrorKind::TooLong && !has_begun {
            let tokens = self.conversation.tokens();
            self.conversation.trim(tokens / 2);
            if self.conversation.tokens() < tokens {
                self.turn.wants_answer = true;
                return;
            }
        }
        let is_repeated = is_lost(error.kind) && self.turn.repeats < MAX_REPEATS;
        let unsaid = self.sentences.take_incomplete();
        let Generating { number, mut text, .. } = generating;
        text.truncate(text.len().saturating_sub(unsaid.len()));
        let is_partial = !text.trim().is_empty();
        let parts = vec![ModelPart::new(PartContent::Text(text))];
        let message = ModelMessage { by: self.conversation.model().to_owned(), parts };
        self.conversation.add_reply(number, message);
        if !is_repeated {
            return self.fail(error.to_string());
        }
        self.turn.repeats += 1;
        self.turn.wants_answer = true;
        self.events.push_back(LiveEvent::Warning(error.to_string()));
        if is_partial {
            self.conversation.add_note(LOST_NOTE);
        }
    }

    /// What was asked is not answered, or not to the end. The user must hear that.
    fn fail(&mut self, why: String) {
        self.events.push_back(LiveEvent::Warning(why));
        if !self.playback.has_audio() && self.queue.is_empty() && !self.is_speaking() {
            self.events.push_back(LiveEvent::ResponseFailed);
        }
        self.say(self.language.not_answered());
    }

    fn queue_rest(&mut self) {
        let reply = self.generating.as_ref().map(|generating| generating.number);
        while let Some(piece) = self.sentences.next_of_rest() {
            self.queue.push_back(QueuedPiece {
                reply,
                text: piece.text,
                is_code: piece.is_code,
                is_rest: false,
            });
        }
    }
}

/// Whether a reply was lost on its way, so that the model may have one if it is asked again.
fn is_lost(kind: ChatErrorKind) -> bool {
    matches!(kind, ChatErrorKind::Cut | ChatErrorKind::Unreachable | ChatErrorKind::Overloaded)
}
