//! What a model must be told that it did not see happen.

use std::sync::Arc;

use quarterdeck_contracts::ToolResponse;

use crate::note::{as_note, late};

/// Notes that wait for a pause.
#[derive(Debug, Default)]
pub(super) struct Notes {
    waiting: Vec<Note>,
}

#[derive(Debug)]
enum Note {
    Words(String),
    /// What a call came to whose connection was gone.
    Late {
        name: Arc<str>,
        response: Arc<ToolResponse>,
    },
}

impl Notes {
    pub(super) fn add(&mut self, words: impl IntoIterator<Item = String>) {
        self.waiting.extend(words.into_iter().map(Note::Words));
    }

    pub(super) fn add_late(&mut self, name: &Arc<str>, response: &Arc<ToolResponse>) {
        self.waiting.push(Note::Late { name: name.clone(), response: response.clone() });
    }

    /// The model has made a call again and has its answer, so it need not be told of it.
    pub(super) fn answered(&mut self, name: &str, response: &ToolResponse) {
        self.waiting.retain(|note| match note {
            Note::Late { name: of, response: late } => &**of != name || late.outcome != response.outcome,
            Note::Words(_) => true,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Each in words.
    pub(super) fn texts(&self) -> Vec<String> {
        let text = |note: &Note| match note {
            Note::Words(words) => words.clone(),
            Note::Late { name, response } => late(name, response),
        };
        self.waiting.iter().map(text).collect()
    }

    /// Takes all of them, as the model is told.
    pub(super) fn take(&mut self) -> String {
        let text = as_note(&self.texts());
        self.waiting.clear();
        text
    }

    /// Takes the first ones, which a new connection was told.
    pub(super) fn told(&mut self, count: usize) -> Option<String> {
        let count = count.min(self.waiting.len());
        let rest = self.waiting.split_off(count);
        let told = (count > 0).then(|| self.take());
        self.waiting = rest;
        told
    }
}
