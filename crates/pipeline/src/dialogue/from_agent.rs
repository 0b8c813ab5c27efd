//! What the agent reports and wants: the user's voice and words, notes, results, silence.

use std::time::Duration;

use quarterdeck_contracts::{
    LiveEvent, LiveResult, ModelMessage, ModelPart, PartContent, TranscriptPiece, TranscriptStage,
};
use tokio::time::Instant;

use super::{Dialogue, RESULT_GRACE};
use crate::conversation::Delivery;
use crate::playback::Playback;
use crate::sentences::Sentences;

/// How much a client may lag behind the clock that ends a turn.
const MAX_CLIENT_LAG: Duration = Duration::from_secs(2);

impl Dialogue {
    /// The user has begun to speak.
    pub(crate) fn on_speech_started(&mut self, now: Instant) {
        self.make_room(now);
        self.turn.is_listening = true;
        // It was cancelled and is part of this utterance, or it goes on and is part of the same message.
        self.turn.wants_transcript |= self.turn.is_transcribing;
        self.turn.is_open = true;
        self.events.push_back(LiveEvent::SpeechStarted);
    }

    /// The user has stopped, and what they said is being transcribed if there is any of it.
    pub(crate) fn on_speech_ended(&mut self) {
        self.turn.is_listening = false;
    }

    /// Whether transcriptions are under way.
    pub(crate) fn set_transcribing(&mut self, is_transcribing: bool) {
        if is_transcribing && !self.turn.is_transcribing {
            self.turn.wants_transcript = true;
        }
        self.turn.is_transcribing = is_transcribing;
    }

    /// The words of an utterance, or of a part of one that goes on.
    pub(crate) fn on_transcript(&mut self, words: &str, stage: TranscriptStage, now: Instant) {
        self.turn.was_not_heard = false;
        let words = words.trim();
        if words.is_empty() {
            return self.close_idle_turn();
        }
        // Pieces follow each other without a space of their own.
        let has_words = std::mem::replace(&mut self.turn.has_words, true);
        let text = if has_words { format!(" {words}") } else { words.to_owned() };
        self.conversation.add_user(words, " ");
        self.events.push_back(LiveEvent::InputTranscript(TranscriptPiece { text: text.into(), stage }));
        if self.turn.wants_transcript {
            self.ask(now);
        } else {
            self.close_idle_turn();
        }
    }

    /// An utterance could not be transcribed. The user is told once in words, and after that by an error.
    pub(crate) fn on_not_heard(&mut self, what: String) {
        self.events.push_back(LiveEvent::Warning(what));
        if !self.turn.wants_transcript {
            return self.close_idle_turn();
        }
        // What was said before it, or is being said, will be answered.
        if self.turn.is_listening || self.turn.wants_answer {
            return;
        }
        let is_first = !std::mem::replace(&mut self.turn.was_not_heard, true);
        if is_first {
            let words = self.language.not_heard();
            return self.say(words);
        }
        self.events.push_back(LiveEvent::ResponseFailed);
        self.close_idle_turn();
    }

    pub(crate) fn on_text(&mut self, text: &str, now: Instant) {
        self.make_room(now);
        self.conversation.add_user(text, "\n");
        (self.turn.is_open, self.turn.has_words) = (true, true);
        self.ask(now);
    }

    pub(crate) fn on_note(&mut self, note: &str, asks: bool, now: Instant) {
        if !asks {
            return self.conversation.add_note(note);
        }
        if self.conversation.awaits_results() {
            // The model is asked with the results.
            self.turn.wants_answer = true;
            return self.conversation.add_note(note);
        }
        self.make_room(now);
        self.conversation.add_note(note);
        self.turn.is_open = true;
        self.turn.wants_answer = true;
    }

    /// Only while a call runs: later, the model has something to say itself. The words are for the moment and not for the
    /// history.
    pub(crate) fn on_filler(&mut self, words: &str) {
        if self.conversation.awaits_results() {
            self.say(words);
        }
    }

    pub(crate) fn on_result(&mut self, result: &LiveResult<'_>) {
        match self.conversation.deliver(result) {
            Delivery::Quiet => self.end_silent_batch(),
            Delivery::Ask => {
                self.turn.is_open = true;
                self.turn.wants_answer = true;
            }
            Delivery::Unknown => {
                let what = format!("a result of {} that answers no call", result.name);
                self.events.push_back(LiveEvent::Warning(what));
            }
        }
    }

    /// Every call has its result and nothing is to be said about it, so the turn is over once all was said.
    fn end_silent_batch(&mut self) {
        if !self.turn.is_answering {
            self.close_idle_turn();
        }
    }

    /// The user wants silence.
    pub(crate) fn on_interrupt(&mut self, heard: Option<Duration>, now: Instant) {
        let is_active =
            self.turn.is_answering || self.turn.wants_answer || self.conversation.awaits_results();
        self.turn.wants_transcript = false;
        self.turn.is_open = self.turn.is_listening || self.turn.is_transcribing;
        if !is_active {
            return self.cut_played(heard, now);
        }
        self.drop_unread_response();
        let mut words = None;
        if self.turn.is_answer_over {
            // The audio is of the turn before, and what was asked since has no answer yet.
            self.cut_played(heard, now);
        } else {
            words = self.cut(heard.unwrap_or_else(|| self.playback.played(now)));
        }
        self.conversation.detach_calls();
        self.turn.wants_answer = false;
        self.turn.is_answering = false;
        (self.turn.is_answer_over, self.turn.has_words) = (true, false);
        self.events.push_back(LiveEvent::Interrupted { end_follows: false });
        self.events.extend(words.map(LiveEvent::HeardAnswer));
        if self.turn.is_listening {
            // The turn that the user has begun stays open.
            self.events.push_back(LiveEvent::SpeechStarted);
        }
    }

    /// The clock says that all was played, but the client may lag a little. What it says is believed as far as that is so.
    fn cut_played(&mut self, heard: Option<Duration>, now: Instant) {
        let (Some(heard), true) = (heard, self.playback.is_played(now)) else { return };
        let is_believed = heard + MAX_CLIENT_LAG >= self.playback.length() && self.playback.has_audio();
        if is_believed {
            let words = self.cut(heard);
            self.events.extend(words.map(LiveEvent::HeardAnswer));
        }
    }

    /// Something new from the user, or for the model, takes the place of what is being answered. What was said of it is
    /// interrupted; what was only being thought is thought again, with what is new.
    fn make_room(&mut self, now: Instant) {
        if !self.turn.is_answering {
            return;
        }
        let unsaid = self.generating.as_ref().map(|generating| generating.number);
        let unsaid = unsaid.into_iter().chain(self.queue.iter().filter_map(|piece| piece.reply));
        let mut unsaid = unsaid.chain(self.speaking.iter().filter_map(|speaking| speaking.piece.reply));
        let is_said = unsaid.any(|reply| self.playback.has_said(reply)) || !self.playback.is_played(now);
        if is_said {
            return self.on_interrupt(None, now);
        }
        let is_thinking = self.is_generating() || self.is_speaking() || !self.queue.is_empty();
        if is_thinking {
            self.generating = None;
            self.drop_unheard(self.playback.length());
            self.turn.wants_answer = true;
        }
        if !self.conversation.awaits_results() {
            self.turn.is_answering = false;
        }
    }

    /// Drops what is under way, and from the history what was not heard. The model is told if some was heard and some was
    /// not. Returns the words that were heard, if there was anything to hear.
    fn cut(&mut self, heard: Duration) -> Option<String> {
        if let Some(generating) = self.generating.take() {
            let parts = vec![ModelPart::new(PartContent::Text(generating.text))];
            let message = ModelMessage { by: self.conversation.model().to_owned(), parts };
            self.conversation.add_reply(generating.number, message);
        }
        if self.drop_unheard(heard) {
            self.conversation.mark_interrupted();
        }
        let words = self.playback.has_audio().then(|| self.playback.heard_words(heard, &self.pace));
        // A later interruption does not concern what was cut.
        self.playback = Playback::default();
        self.turn.first_reply = u64::MAX;
        words
    }

    fn drop_unheard(&mut self, heard: Duration) -> bool {
        self.sentences = Sentences::default();
        self.queue.clear();
        self.speaking = None;
        let (playback, pace, first) = (&self.playback, &self.pace, self.turn.first_reply);
        self.conversation.cut_replies(first, |reply| playback.heard_of(reply, heard, pace))
    }

    /// What the agent has not read of the answer, it need not. Its calls are not run.
    fn drop_unread_response(&mut self) {
        let conversation = &mut self.conversation;
        self.events.retain(|event| match event {
            LiveEvent::Calls(calls) => {
                let ids: Vec<&str> = calls.iter().filter_map(|call| call.id.as_deref()).collect();
                conversation.refuse_calls(&ids);
                false
            }
            LiveEvent::Audio(_)
            | LiveEvent::OutputTranscript(_)
            | LiveEvent::GenerationComplete
            | LiveEvent::ResponseFailed
            | LiveEvent::TurnComplete { .. } => false,
            _ => true,
        });
    }

    /// The user waits for an answer. Results of calls that are running are waited for, but not for long.
    fn ask(&mut self, now: Instant) {
        self.turn.wants_answer = true;
        if self.conversation.awaits_results() {
            self.turn.waits_until = Some(now + RESULT_GRACE);
        }
    }
}
