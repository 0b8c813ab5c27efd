//! Sentences on their way to the voice, and their audio on its way to the user.

use quarterdeck_contracts::{Audio, LiveEvent, TranscriptPiece, TranscriptStage};
use tokio::time::Instant;

use super::{Dialogue, QueuedPiece, SpeakingPiece};
use crate::spoken::spoken_form;

impl Dialogue {
    /// Whether more audio may be made: not much more than can have been played.
    pub(crate) fn may_make_audio(&self, now: Instant) -> bool {
        self.playback.lead(now) <= self.max_lead
    }

    /// The next sentence for the voice, as it is spoken, if none is being spoken.
    pub(crate) fn next_sentence(&mut self, now: Instant) -> Option<String> {
        while self.speaking.is_none() && self.may_make_audio(now) {
            let piece = self.queue.pop_front()?;
            let spoken = if piece.is_code { String::new() } else { spoken_form(&piece.text, self.language) };
            if spoken.is_empty() {
                self.show(&piece, 0);
                self.playback.end_sentence(&mut self.pace);
                continue;
            }
            self.speaking = Some(SpeakingPiece { piece, chars: spoken.chars().count(), has_begun: false });
            return Some(spoken);
        }
        None
    }

    /// Audio of the sentence that is being spoken. Its words go with the first of it.
    pub(crate) fn on_audio(&mut self, samples: &[i16], now: Instant) {
        let Some(mut speaking) = self.speaking.take() else { return };
        if !std::mem::replace(&mut speaking.has_begun, true) {
            self.show(&speaking.piece, speaking.chars);
        }
        self.speaking = Some(speaking);
        self.playback.add(samples.len(), now);
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        self.events.push_back(LiveEvent::Audio(Audio::Pcm(bytes.into())));
    }

    /// The sentence has no more audio. One that has none at all is shown.
    pub(crate) fn on_sentence_end(&mut self) {
        let Some(speaking) = self.speaking.take() else { return };
        if !speaking.has_begun {
            self.show(&speaking.piece, speaking.chars);
        }
        self.playback.end_sentence(&mut self.pace);
    }

    /// The voice knows how long the sentence is that it speaks, before all of it is sent.
    pub(crate) fn set_sentence_length(&mut self, samples: usize) {
        if self.speaking.as_ref().is_some_and(|speaking| speaking.has_begun) {
            self.playback.set_whole(samples);
        }
    }

    /// The voice fails. The words are shown, and the next sentence is tried; one that breaks off is gone on with, once.
    pub(crate) fn on_sentence_failed(&mut self, what: String) {
        self.events.push_back(LiveEvent::Warning(what));
        let Some(SpeakingPiece { piece, .. }) = self.speaking.take_if(|speaking| speaking.has_begun) else {
            return self.on_sentence_end();
        };
        let rest = self.playback.break_sentence(&self.pace);
        if !rest.trim().is_empty() && !piece.is_rest {
            self.queue.push_front(QueuedPiece { text: rest, is_rest: true, ..piece });
        }
    }

    /// Says words of our own.
    pub(super) fn say(&mut self, words: &str) {
        self.begin_answer();
        self.queue.push_back(QueuedPiece {
            reply: None,
            text: words.to_owned(),
            is_code: false,
            is_rest: false,
        });
    }

    fn show(&mut self, piece: &QueuedPiece, chars: usize) {
        let shown = format!("{}{}", self.playback.separator(&piece.text), piece.text);
        self.playback.begin_sentence(piece.reply, &piece.text, chars);
        self.turn.is_pause_reported = false;
        if piece.is_rest {
            return;
        }
        let words = TranscriptPiece { text: shown.into(), stage: TranscriptStage::Segment };
        self.events.push_back(LiveEvent::OutputTranscript(words));
    }
}
