//! What the model must be told that it did not see happen.

use std::collections::VecDeque;

use quarterdeck_contracts::{Outcome, ToolResponse};

use super::AnswerId;
use crate::note::{format_notes, late_answer_note};
use crate::voice::answers::ReceivedAnswer;

/// How many answers of the present connection are remembered. Those of one turn matter.
const MAX_REMEMBERED_ANSWERS: usize = 16;

/// Notes that wait for a pause in the conversation.
#[derive(Debug, Default)]
pub(super) struct ModelNotes {
    waiting: Vec<(u64, Note)>,
    last: u64,
    /// What the present connection was answered, the latest last.
    answered: VecDeque<(String, Outcome)>,
}

#[derive(Debug)]
enum Note {
    Words(String),
    /// The answer of a call whose connection is gone. It is delivered once the model has been told.
    Late(ReceivedAnswer),
}

impl Note {
    fn text(&self) -> String {
        match self {
            Self::Words(words) => words.clone(),
            Self::Late(answer) => late_answer_note(&answer.name, &answer.response),
        }
    }

    fn answer_id(&self) -> Option<AnswerId> {
        match self {
            Self::Words(_) => None,
            Self::Late(answer) => Some(answer.id),
        }
    }
}

impl ModelNotes {
    pub(super) fn add(&mut self, words: impl IntoIterator<Item = String>) {
        words.into_iter().for_each(|words| self.push(Note::Words(words)));
    }

    /// Adds the answer of a call whose connection is gone. Returns it as delivered if the model has made the call again
    /// and has its answer: of two that wait for the same call, either may complete first.
    pub(super) fn add_late(&mut self, answer: ReceivedAnswer) -> Option<AnswerId> {
        let is_same = |(name, outcome): &(String, Outcome)| {
            *name == *answer.name && *outcome == answer.response.outcome
        };
        if self.answered.iter().any(is_same) {
            return Some(answer.id);
        }
        self.push(Note::Late(answer));
        None
    }

    /// A new connection has been answered nothing.
    pub(super) fn on_connected(&mut self) {
        self.answered.clear();
    }

    fn push(&mut self, note: Note) {
        self.last += 1;
        self.waiting.push((self.last, note));
    }

    /// The model gets the answer of a call. Returns the late answers that it need not be told of any more.
    pub(super) fn on_answered(&mut self, name: &str, response: &ToolResponse) -> Vec<AnswerId> {
        let is_known = |note: &Note| match note {
            Note::Late(answer) => &*answer.name == name && answer.response.outcome == response.outcome,
            Note::Words(_) => false,
        };
        let known = self.waiting.extract_if(.., |(_, note)| is_known(note));
        let known = known.filter_map(|(_, note)| note.answer_id()).collect();
        if self.answered.len() == MAX_REMEMBERED_ANSWERS {
            self.answered.pop_front();
        }
        self.answered.push_back((name.to_owned(), response.outcome.clone()));
        known
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The text of each note, and the number of the last.
    pub(super) fn texts(&self) -> (Vec<String>, u64) {
        (self.waiting.iter().map(|(_, note)| note.text()).collect(), self.last)
    }

    /// Takes the notes up to a number, which the model has been told: their text, and the answers it has thereby got.
    pub(super) fn take_told(&mut self, last: u64) -> Option<(String, Vec<AnswerId>)> {
        let told: Vec<Note> =
            self.waiting.extract_if(.., |(number, _)| *number <= last).map(|(_, note)| note).collect();
        let texts: Vec<String> = told.iter().map(Note::text).collect();
        let answers = told.iter().filter_map(Note::answer_id).collect();
        (!texts.is_empty()).then(|| (format_notes(&texts), answers))
    }

    /// Takes the words that the model was never told. Late answers go back to the session.
    pub(super) fn take_untold(&mut self) -> Option<String> {
        let words: Vec<String> = self
            .waiting
            .drain(..)
            .filter_map(|(_, note)| match note {
                Note::Words(words) => Some(words),
                Note::Late(_) => None,
            })
            .collect();
        (!words.is_empty()).then(|| format_notes(&words))
    }
}
