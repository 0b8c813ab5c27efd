//! What a page should know that was not there when it happened.

use std::collections::VecDeque;
use std::sync::Arc;

use quarterdeck_contracts::{Speaker, ToolResponse};
use quarterdeck_runtime::gates::Trace;
use serde_json::Value;

use super::line::{ClientLink, ServerMessage};

/// How many things are kept; the oldest go first.
const MOST: usize = 50;
/// How many bytes of words are kept that somebody has said without a pause.
const LONGEST: usize = 16_000;

/// Calls whose results the page has, the latest last, so that none is told twice.
#[derive(Debug, Default)]
pub(super) struct Shown {
    ids: VecDeque<Arc<str>>,
}

impl Shown {
    pub(super) fn add(&mut self, id: &Arc<str>) {
        if self.ids.len() == MOST {
            self.ids.pop_front();
        }
        self.ids.push_back(id.clone());
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.ids.iter().any(|known| &**known == id)
    }
}

/// What happened while nobody was on the line.
#[derive(Debug, Default)]
pub(super) struct Missed {
    kept: VecDeque<Kept>,
}

#[derive(Debug)]
enum Kept {
    Transcript(Speaker, String),
    Result(String, Arc<ToolResponse>, Option<Trace>),
    Message(Value),
}

impl Missed {
    /// Keeps what is worth it.
    pub(super) fn keep(&mut self, told: &ServerMessage<'_>) {
        let kept = match told {
            ServerMessage::Transcript { by, text, is_final: true, .. } => match self.kept.back_mut() {
                // A sentence comes in many pieces, which are one thing.
                Some(Kept::Transcript(of, words)) if of == by => return append(words, text),
                _ => Kept::Transcript(*by, clipped(text, LONGEST).to_owned()),
            },
            ServerMessage::ToolResult { id, response, gates } => {
                Kept::Result((*id).to_owned(), Arc::new((*response).clone()), gates.cloned())
            }
            ServerMessage::Message(value) => Kept::Message((*value).clone()),
            _ => return,
        };
        if self.kept.len() == MOST {
            self.kept.pop_front();
        }
        self.kept.push_back(kept);
    }

    /// Tells it.
    pub(super) fn tell(&mut self, line: &mut dyn ClientLink) {
        for kept in self.kept.drain(..) {
            match &kept {
                Kept::Transcript(by, text) => {
                    line.send(ServerMessage::Transcript { by: *by, text, is_final: true, is_late: false });
                }
                Kept::Result(id, response, gates) => {
                    line.send(ServerMessage::ToolResult { id, response, gates: gates.as_ref() });
                }
                Kept::Message(value) => line.send(ServerMessage::Message(value)),
            }
        }
    }
}

fn append(words: &mut String, text: &str) {
    words.push_str(clipped(text, LONGEST.saturating_sub(words.len())));
}

fn clipped(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
