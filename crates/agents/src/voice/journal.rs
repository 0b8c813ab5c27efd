//! What was said, so that a conversation can go on where a provider has forgotten it.
//!
//! A provider hands out a handle now and then, and a connection that is opened with it knows everything up to that
//! moment and nothing after. So the journal knows how much a handle covers. What comes after it is told again in words;
//! without a handle, everything is.

use std::collections::VecDeque;

use quarterdeck_contracts::{Commit, LiveTurn, Speaker, Store, StoreError, Table, TranscriptStage};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How many bytes are kept. Older ones are forgotten, as in any long conversation.
const LONGEST: usize = 48_000;
/// How many bytes of one turn are kept: as much as a page may write, in any alphabet.
const LONGEST_UTTERANCE: usize = 16_000;

/// How many things are remembered that were done in one turn.
const MOST_DONE: usize = 16;

/// What was said in a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Journal {
    /// What was said in turns that are over.
    turns: VecDeque<LiveTurn>,
    /// The provider's handle, and whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handle: Option<Handle>,
    /// What the person has said in the present turn.
    heard: String,
    /// What the model has said in it.
    said: String,
    /// Whether the model has said everything that it had to say in it.
    is_answered: bool,
    /// What was done in it, as long as the model has not said everything that it had to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    done: Vec<String>,
    /// Whether the handle covers the present turn too.
    #[serde(default)]
    is_covered: bool,
    /// Grows with every change.
    #[serde(skip)]
    revision: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Handle {
    by: String,
    value: String,
    /// How many of the turns came after it.
    after: usize,
}

/// What a new connection has to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Retold {
    pub(super) handle: Option<String>,
    pub(super) history: Vec<LiveTurn>,
    /// Whether the person waits for an answer.
    pub(super) asks: bool,
}

impl Journal {
    /// A piece of what the person said.
    pub(super) fn heard(&mut self, text: &str, stage: TranscriptStage) {
        if stage != TranscriptStage::Interim && !text.is_empty() {
            append(&mut self.heard, text);
            self.changed();
        }
    }

    /// Words of a turn that is over, which were understood only now.
    pub(super) fn heard_late(&mut self, text: &str) {
        let is_model = |turn: &LiveTurn| turn.by == Speaker::Model;
        let answer = self.turns.pop_back_if(|turn| is_model(turn));
        self.push(Speaker::User, text.to_owned());
        self.turns.extend(answer);
        self.revision += 1;
    }

    fn changed(&mut self) {
        self.is_answered = false;
        self.is_covered = false;
        self.revision += 1;
    }

    /// Grows with every change.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// What the person has said in the present turn.
    pub(super) fn present(&self) -> &str {
        &self.heard
    }

    /// Something that the person wrote: whole at once.
    pub(super) fn written(&mut self, text: &str) {
        if !self.heard.is_empty() {
            self.heard.push('\n');
        }
        append(&mut self.heard, text);
        self.changed();
    }

    /// A piece of what the model said.
    pub(super) fn said(&mut self, text: &str) {
        append(&mut self.said, text);
        self.revision += 1;
    }

    /// What the model has said answers something older.
    pub(super) fn unsay(&mut self) {
        self.said.clear();
        self.is_answered = false;
        self.revision += 1;
    }

    /// The model has said what it had to say, though the turn is not over.
    pub(super) fn answered(&mut self) {
        self.is_answered = !self.said.is_empty();
    }

    /// The model knows that something was done. A connection that has forgotten it must not do it again in a later turn.
    pub(super) fn done(&mut self, what: String) {
        if self.done.len() < MOST_DONE {
            self.done.push(what);
            self.revision += 1;
        }
    }

    /// The turn is over, or was cut off by the person.
    pub(super) fn turn_over(&mut self) {
        let (heard, said) = (std::mem::take(&mut self.heard), std::mem::take(&mut self.said));
        let done = std::mem::take(&mut self.done);
        let after = self.handle.as_ref().map(|handle| handle.after);
        self.push(Speaker::User, heard);
        self.push(Speaker::Model, said);
        // What the model has said to the end speaks of it.
        if !self.is_answered && !done.is_empty() {
            self.push(Speaker::User, crate::note::format_notes(&done));
        }
        if let (true, Some(handle), Some(after)) = (self.is_covered, &mut self.handle, after) {
            handle.after = after;
        }
        self.changed();
    }

    /// Something that the model was told behind the person's back, which a new connection must hear too.
    pub(super) fn noted(&mut self, note: &str) {
        self.push(Speaker::User, note.to_owned());
        self.revision += 1;
    }

    fn push(&mut self, by: Speaker, text: String) {
        if text.trim().is_empty() {
            return;
        }
        self.turns.push_back(LiveTurn { by, text });
        if let Some(handle) = &mut self.handle {
            handle.after += 1;
        }
        let mut kept: usize = self.turns.iter().map(|turn| turn.text.len()).sum();
        while kept > LONGEST
            && let Some(oldest) = self.turns.pop_front()
        {
            kept -= oldest.text.len();
        }
    }

    /// From here on the conversation can be gone on with by this handle.
    pub(super) fn resumable(&mut self, by: &str, value: String) {
        self.handle = Some(Handle { by: by.to_owned(), value, after: 0 });
        self.is_covered = self.is_answered;
    }

    /// The provider does not know the handle any more.
    pub(super) fn forget_handle(&mut self) {
        self.handle = None;
    }

    /// Whether the person has said something that has no answer yet.
    pub(super) fn is_open(&self) -> bool {
        !self.heard.trim().is_empty() && !self.is_answered
    }

    /// Whether the model has said everything that it had to say in the present turn.
    pub(super) fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// What a new connection has to be told, with notes that nobody has told yet. `owes_words` says that the model was
    /// asked something, or given a result, and has not said anything about it.
    pub(super) fn retell(&self, by: &str, notes: &[String], owes_words: bool) -> Retold {
        let handle = self.handle.as_ref().filter(|handle| handle.by == by);
        let known = handle.map_or(0, |handle| self.turns.len().saturating_sub(handle.after));
        let mut history: Vec<LiveTurn> = self.turns.iter().skip(known).cloned().collect();
        let mut tell = |by, text: &str| history.push(LiveTurn { by, text: text.to_owned() });
        let is_known = handle.is_some() && self.is_covered;
        if !self.heard.trim().is_empty() && !is_known {
            tell(Speaker::User, &self.heard);
        }
        if !self.said.trim().is_empty() && !is_known {
            tell(Speaker::Model, &self.said);
        }
        let mut notes = notes.to_vec();
        if self.is_open() && !self.said.trim().is_empty() {
            // Half an answer does not say what it is about.
            notes.extend(self.done.iter().cloned());
            notes.push("the connection was lost while you were answering; go on from there".into());
        } else if owes_words && !self.is_open() {
            notes.push("the connection was lost before you said anything about it; go on from there".into());
        }
        let asks = self.is_open() || !notes.is_empty();
        if !notes.is_empty() {
            tell(Speaker::User, &crate::note::format_notes(&notes));
        }
        Retold { handle: handle.map(|handle| handle.value.clone()), history, asks }
    }
}

fn append(to: &mut String, text: &str) {
    let room = LONGEST_UTTERANCE.saturating_sub(to.len());
    to.push_str(&text[..text.floor_char_boundary(room)]);
}

fn key(session: &str) -> String {
    format!("s/{session}/voice")
}

/// The write that keeps a journal.
pub(super) fn keep(session: &str, journal: &Journal, expires_ms: u64) -> Commit {
    Commit::default().put_until(Table::History, key(session), json!(journal), Some(expires_ms))
}

/// The journal of a session; empty when there is none.
pub(super) async fn load(store: &dyn Store, session: &str) -> Result<Journal, StoreError> {
    let Some(row) = store.get(Table::History, &key(session)).await? else { return Ok(Journal::default()) };
    Ok(serde_json::from_value(row.value).unwrap_or_else(|error| {
        tracing::error!(session, error = %error, "what was said in a call cannot be read");
        Journal::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(retold: &Retold) -> Vec<(Speaker, &str)> {
        retold.history.iter().map(|turn| (turn.by, turn.text.as_str())).collect()
    }

    fn turn(journal: &mut Journal, heard: &str, said: &str) {
        journal.heard(heard, TranscriptStage::Final);
        journal.said(said);
        journal.answered();
        journal.turn_over();
    }

    #[test]
    fn a_handle_covers_what_was_said_before_it() {
        let mut journal = Journal::default();
        turn(&mut journal, "Who built the Fram?", "Colin Archer.");
        journal.resumable("sim", "h1".into());
        assert_eq!(
            journal.retell("sim", &[], false),
            Retold { handle: Some("h1".into()), history: vec![], asks: false }
        );
        turn(&mut journal, "When?", "In 1892.");
        let retold = journal.retell("sim", &[], false);
        assert_eq!(retold.handle.as_deref(), Some("h1"));
        assert_eq!(told(&retold), [(Speaker::User, "When?"), (Speaker::Model, "In 1892.")]);
        assert!(!retold.asks);
    }

    #[test]
    fn another_model_does_not_get_the_handle_and_hears_everything() {
        let mut journal = Journal::default();
        turn(&mut journal, "Who built the Fram?", "Colin Archer.");
        journal.resumable("sim", "h1".into());
        let retold = journal.retell("other", &[], false);
        assert_eq!(retold.handle, None);
        assert_eq!(retold.history.len(), 2);
        journal.forget_handle();
        assert_eq!(journal.retell("sim", &[], false).history.len(), 2);
    }

    #[test]
    fn what_has_no_answer_asks_for_one() {
        let mut journal = Journal::default();
        journal.heard("Who was ", TranscriptStage::Segment);
        journal.heard("who w", TranscriptStage::Interim);
        journal.heard("Nansen?", TranscriptStage::Final);
        let retold = journal.retell("sim", &[], false);
        assert_eq!(
            (told(&retold).as_slice(), retold.asks),
            ([(Speaker::User, "Who was Nansen?")].as_slice(), true)
        );
        journal.said("A scien");
        let retold = journal.retell("sim", &[], false);
        assert_eq!(retold.history.len(), 3, "the half answer, and a note that it was cut: {retold:?}");
        assert!(retold.asks);
        journal.said("tist.");
        journal.answered();
        assert!(!journal.retell("sim", &[], false).asks, "it was said to the end");
    }

    #[test]
    fn a_model_that_was_about_to_speak_is_asked_again() {
        let mut journal = Journal::default();
        turn(&mut journal, "Is it free?", "Let me look.");
        let retold = journal.retell("sim", &[], true);
        assert!(retold.asks && retold.history.len() == 3, "{retold:?}");
    }

    #[test]
    fn words_that_come_late_stand_before_their_answer() {
        let mut journal = Journal::default();
        journal.said("In 1892.");
        journal.turn_over();
        journal.heard_late("When was she built?");
        let retold = journal.retell("sim", &[], false);
        assert_eq!(told(&retold), [(Speaker::User, "When was she built?"), (Speaker::Model, "In 1892.")]);
    }

    #[test]
    fn a_handle_given_before_the_turn_is_over_covers_it() {
        let mut journal = Journal::default();
        journal.heard("One?", TranscriptStage::Final);
        journal.said("Yes.");
        journal.answered();
        journal.resumable("sim", "h1".into());
        assert_eq!(journal.retell("sim", &[], false).history, []);
        journal.turn_over();
        assert_eq!(journal.retell("sim", &[], false).history, []);
        assert_eq!(journal.retell("other", &[], false).history.len(), 2);
    }

    #[test]
    fn what_was_done_in_a_turn_that_was_cut_off_is_not_forgotten() {
        let mut journal = Journal::default();
        journal.heard("Book the room.", TranscriptStage::Final);
        journal.done("book was done".into());
        journal.said("It i");
        journal.turn_over();
        let retold = journal.retell("sim", &[], false);
        let (person, model) = (Speaker::User, Speaker::Model);
        let expected = [(person, "Book the room."), (model, "It i"), (person, "[Note: book was done]")];
        assert_eq!(told(&retold), expected);
        journal.heard("Book the hall.", TranscriptStage::Final);
        journal.done("book was done".into());
        journal.said("It is booked.");
        journal.answered();
        journal.turn_over();
        assert_eq!(
            journal.retell("sim", &[], false).history.len(),
            5,
            "words that were said to the end tell it"
        );
    }

    #[test]
    fn a_note_asks_too() {
        let retold = Journal::default().retell("sim", &["book was done".into()], false);
        assert_eq!(told(&retold), [(Speaker::User, "[Note: book was done]")]);
        assert!(retold.asks);
    }

    #[test]
    fn it_forgets_what_is_long_ago() {
        let mut journal = Journal::default();
        for number in 0..1_000 {
            turn(&mut journal, &format!("question {number} {}", "x".repeat(100)), "answer");
        }
        journal.resumable("sim", "h".into());
        turn(&mut journal, &"y".repeat(10_000), "z");
        let kept: usize = journal.turns.iter().map(|turn| turn.text.len()).sum();
        assert!(kept <= LONGEST, "{kept}");
        assert_eq!(journal.retell("sim", &[], false).history.len(), 2);
    }
}
