//! What a model must be told that it did not see happen.

use std::collections::VecDeque;

use quarterdeck_contracts::{Outcome, ToolResponse};
use quarterdeck_runtime::Answer;

use crate::note::{format_notes, late_answer_note};

/// How many answers are kept in mind. Those of one turn matter.
const MOST_ANSWERED: usize = 16;

/// Notes that wait for a pause.
#[derive(Debug, Default)]
pub(super) struct Notes {
    waiting: Vec<(u64, Note)>,
    last: u64,
    /// What the present connection was answered, the latest last.
    answered: VecDeque<(String, Outcome)>,
}

#[derive(Debug)]
enum Note {
    Words(String),
    /// What a call came to whose connection was gone. It is delivered once the model has been told, and goes back to the
    /// session if it never is.
    Late(Answer),
}

impl Note {
    fn text(&self) -> String {
        match self {
            Self::Words(words) => words.clone(),
            Self::Late(answer) => late_answer_note(&answer.name, &answer.response),
        }
    }

    fn told(self) {
        if let Self::Late(answer) = self {
            answer.mark_delivered();
        }
    }
}

impl Notes {
    pub(super) fn add(&mut self, words: impl IntoIterator<Item = String>) {
        words.into_iter().for_each(|words| self.push(Note::Words(words)));
    }

    /// What a call came to whose connection was gone. If the model has made it again and has its answer, it need not be
    /// told: of two that wait for the same call, either may land first.
    pub(super) fn add_late(&mut self, answer: Answer) {
        let is_same = |(name, outcome): &(String, Outcome)| {
            *name == *answer.name && *outcome == answer.response.outcome
        };
        match self.answered.iter().any(is_same) {
            true => answer.mark_delivered(),
            false => self.push(Note::Late(answer)),
        }
    }

    /// A new connection has been answered nothing.
    pub(super) fn connected(&mut self) {
        self.answered.clear();
    }

    fn push(&mut self, note: Note) {
        self.last += 1;
        self.waiting.push((self.last, note));
    }

    /// The model has made a call again and has its answer, so it need not be told of it.
    pub(super) fn answered(&mut self, name: &str, response: &ToolResponse) {
        let is_known = |note: &Note| match note {
            Note::Late(answer) => &*answer.name == name && answer.response.outcome == response.outcome,
            Note::Words(_) => false,
        };
        let known = self.waiting.extract_if(.., |(_, note)| is_known(note));
        known.for_each(|(_, note)| note.told());
        if self.answered.len() == MOST_ANSWERED {
            self.answered.pop_front();
        }
        self.answered.push_back((name.to_owned(), response.outcome.clone()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Each in words, and the number of the last.
    pub(super) fn texts(&self) -> (Vec<String>, u64) {
        (self.waiting.iter().map(|(_, note)| note.text()).collect(), self.last)
    }

    /// Takes those up to a number, which the model has been told. What it was told.
    pub(super) fn told(&mut self, last: u64) -> Option<String> {
        let told: Vec<Note> =
            self.waiting.extract_if(.., |(number, _)| *number <= last).map(|(_, note)| note).collect();
        let texts: Vec<String> = told.iter().map(Note::text).collect();
        told.into_iter().for_each(Note::told);
        (!texts.is_empty()).then(|| format_notes(&texts))
    }

    /// Takes the words that were never told. Answers go back to the session by themselves.
    pub(super) fn untold(&mut self) -> Option<String> {
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
