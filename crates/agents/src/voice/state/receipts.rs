//! What the user has heard of each answer, once that is known: everything when it was played, or a part when it was
//! interrupted.

use std::collections::VecDeque;
use std::time::Duration;

use quarterdeck_runtime::HeardReceipt;

use super::playback::HeardPart;
use super::{CallState, Output};
use crate::voice::journal::count_words;
use crate::voice::session::CallSession;

/// How many answers wait to be played. Few are: the next one begins when the user has heard the one before it.
const MAX_UNHEARD_ANSWERS: usize = 8;

/// Answers that are over and may still be played, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    unheard: VecDeque<UnheardAnswer>,
}

#[derive(Debug)]
struct UnheardAnswer {
    turn: u64,
    /// Where it begins and ends in what was sent.
    begin: Duration,
    end: Duration,
    words: u32,
}

impl Receipts {
    /// An answer is over, and has these words.
    pub(super) fn add(&mut self, turn: u64, (begin, end): (Duration, Duration), words: u32) {
        if self.unheard.len() == MAX_UNHEARD_ANSWERS {
            self.unheard.pop_front();
        }
        self.unheard.push_back(UnheardAnswer { turn, begin, end, words });
    }

    /// The receipt of the oldest answer, if it has been played to its end.
    pub(super) fn take_heard(&mut self, played: Duration) -> Option<HeardReceipt> {
        let heard = self.unheard.pop_front_if(|answer| answer.end <= played)?;
        let of = heard.end.saturating_sub(heard.begin);
        Some(receipt(heard.turn, HeardPart { heard: of, of }, (heard.words, heard.words), false))
    }

    /// Playback was cut off. The receipts of what was to be played, with the words that were heard of the last answer.
    pub(super) fn interrupt(&mut self, played: Duration, last_words: Option<u32>) -> Vec<HeardReceipt> {
        let count = self.unheard.len();
        let unheard = self.unheard.drain(..).enumerate();
        let receipts = unheard.map(|(index, answer)| {
            let of = answer.end.saturating_sub(answer.begin);
            let heard = played.min(answer.end).saturating_sub(answer.begin);
            let words = match last_words.filter(|_| index + 1 == count) {
                Some(words) => words,
                None if heard == of => answer.words,
                None => 0,
            };
            receipt(answer.turn, HeardPart { heard, of }, (words, answer.words), heard < of)
        });
        receipts.collect()
    }
}

impl<S: CallSession> CallState<S> {
    /// The model has ended its answer, which may still be played.
    pub(super) fn await_receipt(&mut self) {
        if let Some(span) = self.speech.playback.answer_span() {
            let words = count_words(self.journal.model_text());
            self.speech.receipts.add(self.session.turn(), span, words);
        }
    }

    /// Reports answers that have been played to their end. A client that is away plays nothing.
    pub(super) fn report_heard(&mut self) {
        let played = self.speech.playback.played(self.timing.now);
        while self.client.is_connected
            && let Some(receipt) = self.speech.receipts.take_heard(played)
        {
            self.push(Output::ReportHeard(receipt));
        }
    }

    /// What the client has not played by now it never will.
    pub(super) fn report_interrupted(&mut self) {
        let receipts = self.take_receipts();
        self.outputs.extend(receipts.into_iter().map(Output::ReportHeard));
    }

    /// The receipts of everything that was to be played, as far as it was heard.
    pub(in crate::voice) fn take_receipts(&mut self) -> Vec<HeardReceipt> {
        let until = self.client.away_since.unwrap_or(self.timing.now);
        let (present, last) = self.speech.playback.heard_parts(until);
        let last_words = last.and_then(|part| self.journal.heard_words_of_last(part));
        let mut receipts = self.speech.receipts.interrupt(self.speech.playback.played(until), last_words);
        receipts.extend(
            present.map(|part| receipt(self.session.turn(), part, self.journal.heard_words(part), true)),
        );
        receipts
    }
}

/// A receipt; `words` are those that were heard and all of them.
pub(super) fn receipt(turn: u64, part: HeardPart, words: (u32, u32), is_interrupted: bool) -> HeardReceipt {
    let HeardPart { heard, of } = part;
    HeardReceipt { turn, heard, of, words: words.0, of_words: words.1, is_interrupted }
}
