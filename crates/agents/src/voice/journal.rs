//! What was said in a call, so that it can go on where a provider has lost the context.
//!
//! A provider hands out a resumption handle now and then, and a connection that is opened with it knows everything up to
//! that moment and nothing after. So the journal knows how much a handle covers. What comes after it is replayed as text;
//! without a handle, everything is.

use std::collections::VecDeque;

use quarterdeck_contracts::{Commit, LiveTurn, Speaker, Store, StoreError, Table, TranscriptStage};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::state::HeardPart;

/// How many bytes are kept; the oldest turns go first.
const MAX_JOURNAL_BYTES: usize = 48_000;
/// How many bytes of one speaker in one turn are kept: as much as a client may write, in any alphabet.
const MAX_TURN_BYTES: usize = 16_000;

/// How many completed writes of one turn are remembered.
const MAX_WRITES_PER_TURN: usize = 16;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Journal {
    /// Turns that are over.
    turns: VecDeque<LiveTurn>,
    /// The provider's handle, and whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handle: Option<Handle>,
    /// What the user has said in the present turn.
    heard: String,
    /// What the model has said in it.
    said: String,
    /// Whether the model has said everything that it had to say in it.
    is_answered: bool,
    /// Notes about writes in it, as long as the model has not said everything that it had to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    done: Vec<String>,
    /// Whether the handle covers the present turn too.
    #[serde(default)]
    is_covered: bool,
    /// Grows with every change.
    #[serde(skip)]
    revision: u64,
    /// Counts turns that were added, those included that were dropped since.
    #[serde(skip)]
    added: usize,
    /// Which of them is the answer of the last turn, and where it would be if nothing was heard of it.
    #[serde(skip)]
    last_answer: Option<usize>,
    #[serde(skip)]
    answer_place: Option<usize>,
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
pub(super) struct ContextReplay {
    pub(super) handle: Option<String>,
    pub(super) history: Vec<LiveTurn>,
    /// Whether the user waits for an answer.
    pub(super) asks: bool,
}

impl Journal {
    pub(super) fn add_user_transcript(&mut self, text: &str, stage: TranscriptStage) {
        if stage != TranscriptStage::Interim && !text.is_empty() {
            append(&mut self.heard, text);
            self.reopen();
        }
    }

    /// Adds words of a turn that is over, which were transcribed only now.
    pub(super) fn add_late_transcript(&mut self, text: &str) {
        let answer = self.turns.pop_back_if(|turn| turn.by == Speaker::Model);
        let after = self.handle.as_ref().map(|handle| handle.after);
        self.push(Speaker::User, text.to_owned());
        // A handle that covers the answer covers the words before it.
        if let (Some(handle), Some(0), true) = (&mut self.handle, after, answer.is_some()) {
            handle.after = 0;
        }
        self.turns.extend(answer);
        self.revision += 1;
    }

    fn reopen(&mut self) {
        self.is_answered = false;
        self.is_covered = false;
        self.revision += 1;
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn added_turns(&self) -> usize {
        self.added
    }

    /// The turns that were added since there were so many.
    pub(super) fn turns_since(&self, added: usize) -> impl Iterator<Item = &LiveTurn> {
        self.turns.iter().skip(self.turns.len().saturating_sub(self.added - added))
    }

    pub(super) fn user_text(&self) -> &str {
        &self.heard
    }

    /// What the model has said in the present turn.
    pub(super) fn model_text(&self) -> &str {
        &self.said
    }

    /// Adds a message that the user wrote.
    pub(super) fn add_user_text(&mut self, text: &str) {
        if !self.heard.is_empty() {
            self.heard.push('\n');
        }
        append(&mut self.heard, text);
        self.reopen();
    }

    pub(super) fn add_model_transcript(&mut self, text: &str) {
        append(&mut self.said, text);
        self.revision += 1;
    }

    /// Drops what the model has said: it answers something older.
    pub(super) fn discard_answer(&mut self) {
        self.said.clear();
        self.is_answered = false;
        self.revision += 1;
    }

    /// Playback was cut off. What the user has not heard was not said: neither of the present answer, nor of the one before
    /// it, which may have been played still.
    pub(super) fn cut_answers(&mut self, present: Option<HeardPart>, last: Option<HeardPart>) {
        if present.is_some_and(|part| cut(&mut self.said, part)) {
            self.is_answered = false;
            self.revision += 1;
        }
        if let (Some(part), Some(turn)) = (last, self.last_answer_mut())
            && cut(&mut turn.text, part)
        {
            keep_turn(turn);
            self.revision += 1;
        }
    }

    /// How many words were heard of the present answer, and how many it has.
    pub(super) fn heard_words(&self, part: HeardPart) -> (u32, u32) {
        (heard_words(&self.said, part), count_words(&self.said))
    }

    /// How many words were heard of the answer of the last turn, if it is still there.
    pub(super) fn heard_words_of_last(&self, part: HeardPart) -> Option<u32> {
        let index = self.index_of(self.last_answer?)?;
        self.turns.get(index).map(|turn| heard_words(&turn.text, part))
    }

    /// The provider knows to the word what was heard of the answer that was cut off last.
    pub(super) fn set_heard(&mut self, text: &str) {
        let text = text.trim();
        if let Some(turn) = self.last_answer_mut() {
            text.clone_into(&mut turn.text);
            keep_turn(turn);
        } else if let (false, Some(place)) = (text.is_empty(), self.answer_place) {
            let Some(index) = self.index_of(place) else { return };
            self.turns.insert(index, LiveTurn { by: Speaker::Model, text: text.to_owned() });
            self.added += 1;
            self.last_answer = Some(place);
        }
        self.revision += 1;
    }

    /// The answer of the last turn, unless it was dropped since.
    fn last_answer_mut(&mut self) -> Option<&mut LiveTurn> {
        let index = self.index_of(self.last_answer?)?;
        self.turns.get_mut(index).filter(|turn| turn.by == Speaker::Model)
    }

    /// Where a turn is, by how many were added before it.
    fn index_of(&self, added: usize) -> Option<usize> {
        self.turns.len().checked_sub(self.added - added)
    }

    /// The model has said what it had to say, though the turn is not over.
    pub(super) fn complete_answer(&mut self) {
        self.is_answered = !self.said.is_empty();
    }

    /// Adds a write that the model knows of. A connection that has lost it must not do it again in a later turn.
    pub(super) fn add_completed_write(&mut self, what: String) {
        if self.done.len() < MAX_WRITES_PER_TURN {
            self.done.push(what);
            self.revision += 1;
        }
    }

    /// The turn is over, or was interrupted.
    pub(super) fn end_turn(&mut self) {
        let (heard, said) = (std::mem::take(&mut self.heard), std::mem::take(&mut self.said));
        let done = std::mem::take(&mut self.done);
        let after = self.handle.as_ref().map(|handle| handle.after);
        self.push(Speaker::User, heard);
        let before = self.added;
        self.push(Speaker::Model, said);
        self.last_answer = (self.added > before).then_some(before);
        self.answer_place = Some(before);
        // A complete answer speaks of it.
        if !self.is_answered && !done.is_empty() {
            self.push(Speaker::User, crate::note::format_notes(&done));
        }
        if let (true, Some(handle), Some(after)) = (self.is_covered, &mut self.handle, after) {
            handle.after = after;
        }
        self.reopen();
    }

    /// Adds a note that the model was given, which a new connection must get too.
    pub(super) fn add_note(&mut self, note: &str) {
        self.push(Speaker::User, note.to_owned());
        self.revision += 1;
    }

    fn push(&mut self, by: Speaker, text: String) {
        if text.trim().is_empty() {
            return;
        }
        self.turns.push_back(LiveTurn { by, text });
        self.added += 1;
        if let Some(handle) = &mut self.handle {
            handle.after += 1;
        }
        let mut kept: usize = self.turns.iter().map(|turn| turn.text.len()).sum();
        while kept > MAX_JOURNAL_BYTES
            && let Some(oldest) = self.turns.pop_front()
        {
            kept -= oldest.text.len();
        }
    }

    /// From here on the conversation can be resumed with this handle.
    pub(super) fn set_handle(&mut self, by: &str, value: String) {
        self.handle = Some(Handle { by: by.to_owned(), value, after: 0 });
        self.is_covered = self.is_answered;
    }

    pub(super) fn drop_handle(&mut self) {
        self.handle = None;
    }

    /// Whether the user has said something that has no complete answer yet.
    pub(super) fn awaits_answer(&self) -> bool {
        !self.heard.trim().is_empty() && !self.is_answered
    }

    /// Whether the model has said everything that it had to say in the present turn.
    pub(super) fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// What a new connection has to be told, with notes that were not given yet. `owes_words` says that the model was
    /// asked something, or given a result, and has not said anything about it.
    pub(super) fn replay(&self, by: &str, notes: &[String], owes_words: bool) -> ContextReplay {
        let handle = self.handle.as_ref().filter(|handle| handle.by == by);
        let known = handle.map_or(0, |handle| self.turns.len().saturating_sub(handle.after));
        let mut history: Vec<LiveTurn> = self.turns.iter().skip(known).cloned().collect();
        let mut add = |by, text: &str| history.push(LiveTurn { by, text: text.to_owned() });
        let is_known = handle.is_some() && self.is_covered;
        if !self.heard.trim().is_empty() && !is_known {
            add(Speaker::User, &self.heard);
        }
        if !self.said.trim().is_empty() && !is_known {
            add(Speaker::Model, &self.said);
        }
        let mut notes = notes.to_vec();
        if self.awaits_answer() && !self.said.trim().is_empty() {
            // Half an answer does not say what was done.
            notes.extend(self.done.iter().cloned());
            notes.push("the connection was lost while you were answering; go on from there".into());
        } else if owes_words && !self.awaits_answer() {
            notes.push("the connection was lost before you said anything about it; go on from there".into());
        }
        let asks = self.awaits_answer() || !notes.is_empty();
        if !notes.is_empty() {
            add(Speaker::User, &crate::note::format_notes(&notes));
        }
        ContextReplay { handle: handle.map(|handle| handle.value.clone()), history, asks }
    }
}

/// Cuts a text after the last word that was heard. Returns whether something was cut off.
fn cut(text: &mut String, HeardPart { heard, of }: HeardPart) -> bool {
    if heard >= of || text.is_empty() {
        return false;
    }
    let characters = text.chars().count() as f64 * heard.as_secs_f64() / of.as_secs_f64();
    let end = text.char_indices().nth(characters as usize).map_or(text.len(), |(at, _)| at);
    let is_between_words = text[end..].starts_with(char::is_whitespace);
    let end = match text[..end].rfind(char::is_whitespace) {
        _ if is_between_words => end,
        Some(space) => space,
        // Some scripts put no space between words.
        None if !text.trim().contains(char::is_whitespace) && !text.is_ascii() => end,
        None => 0,
    };
    text.truncate(end);
    text.truncate(text.trim_end().len());
    true
}

fn heard_words(text: &str, part: HeardPart) -> u32 {
    let mut text = text.to_owned();
    cut(&mut text, part);
    count_words(&text)
}

pub(super) fn count_words(text: &str) -> u32 {
    text.split_whitespace().count() as u32
}

/// A turn of which nothing was heard stays, because others are counted from it.
fn keep_turn(turn: &mut LiveTurn) {
    if turn.text.is_empty() {
        turn.text.push('…');
    }
}

fn append(to: &mut String, text: &str) {
    let room = MAX_TURN_BYTES.saturating_sub(to.len());
    to.push_str(&text[..text.floor_char_boundary(room)]);
}

fn key(session: &str) -> String {
    format!("s/{session}/voice")
}

pub(super) fn put(session: &str, journal: &Journal, expires_ms: u64) -> Commit {
    Commit::default().put_until(Table::History, key(session), json!(journal), Some(expires_ms))
}

/// The journal of a session; empty when there is none.
pub(super) async fn load(store: &dyn Store, session: &str) -> Result<Journal, StoreError> {
    let Some(row) = store.get(Table::History, &key(session)).await? else { return Ok(Journal::default()) };
    Ok(serde_json::from_value(row.value).unwrap_or_else(|error| {
        tracing::error!(session, error = %error, "stored journal is unreadable");
        Journal::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns_of(replay: &ContextReplay) -> Vec<(Speaker, &str)> {
        replay.history.iter().map(|turn| (turn.by, turn.text.as_str())).collect()
    }

    fn turn(journal: &mut Journal, heard: &str, said: &str) {
        journal.add_user_transcript(heard, TranscriptStage::Final);
        journal.add_model_transcript(said);
        journal.complete_answer();
        journal.end_turn();
    }

    #[test]
    fn a_resumption_handle_covers_the_turns_before_it() {
        let mut journal = Journal::default();
        turn(&mut journal, "Who built the Fram?", "Colin Archer.");
        journal.set_handle("sim", "h1".into());
        assert_eq!(
            journal.replay("sim", &[], false),
            ContextReplay { handle: Some("h1".into()), history: vec![], asks: false }
        );
        turn(&mut journal, "When?", "In 1892.");
        let replay = journal.replay("sim", &[], false);
        assert_eq!(replay.handle.as_deref(), Some("h1"));
        assert_eq!(turns_of(&replay), [(Speaker::User, "When?"), (Speaker::Model, "In 1892.")]);
        assert!(!replay.asks);
    }

    #[test]
    fn another_model_gets_no_handle_and_the_whole_history() {
        let mut journal = Journal::default();
        turn(&mut journal, "Who built the Fram?", "Colin Archer.");
        journal.set_handle("sim", "h1".into());
        let replay = journal.replay("other", &[], false);
        assert_eq!(replay.handle, None);
        assert_eq!(replay.history.len(), 2);
        journal.drop_handle();
        assert_eq!(journal.replay("sim", &[], false).history.len(), 2);
    }

    #[test]
    fn an_unanswered_message_is_replayed_and_asks() {
        let mut journal = Journal::default();
        journal.add_user_transcript("Who was ", TranscriptStage::Segment);
        journal.add_user_transcript("who w", TranscriptStage::Interim);
        journal.add_user_transcript("Nansen?", TranscriptStage::Final);
        let replay = journal.replay("sim", &[], false);
        assert_eq!(
            (turns_of(&replay).as_slice(), replay.asks),
            ([(Speaker::User, "Who was Nansen?")].as_slice(), true)
        );
        journal.add_model_transcript("A scien");
        let replay = journal.replay("sim", &[], false);
        assert_eq!(replay.history.len(), 3, "the half answer, and a note that it was cut: {replay:?}");
        assert!(replay.asks);
        journal.add_model_transcript("tist.");
        journal.complete_answer();
        assert!(!journal.replay("sim", &[], false).asks, "it was said to the end");
    }

    #[test]
    fn a_model_that_owes_words_is_asked_again() {
        let mut journal = Journal::default();
        turn(&mut journal, "Is it free?", "Let me look.");
        let replay = journal.replay("sim", &[], true);
        assert!(replay.asks && replay.history.len() == 3, "{replay:?}");
    }

    #[test]
    fn a_late_transcript_stands_before_its_answer() {
        let mut journal = Journal::default();
        journal.add_model_transcript("In 1892.");
        journal.end_turn();
        journal.add_late_transcript("When was she built?");
        let replay = journal.replay("sim", &[], false);
        assert_eq!(turns_of(&replay), [(Speaker::User, "When was she built?"), (Speaker::Model, "In 1892.")]);
    }

    #[test]
    fn a_late_transcript_of_a_turn_that_the_handle_covers_is_not_replayed() {
        let mut journal = Journal::default();
        turn(&mut journal, "", "In 1892.");
        journal.set_handle("sim", "h1".into());
        journal.add_late_transcript("When was she built?");
        assert_eq!(journal.replay("sim", &[], false).history, []);
        assert_eq!(journal.replay("other", &[], false).history.len(), 2);
    }

    #[test]
    fn a_handle_given_before_the_turn_is_over_covers_it() {
        let mut journal = Journal::default();
        journal.add_user_transcript("One?", TranscriptStage::Final);
        journal.add_model_transcript("Yes.");
        journal.complete_answer();
        journal.set_handle("sim", "h1".into());
        assert_eq!(journal.replay("sim", &[], false).history, []);
        journal.end_turn();
        assert_eq!(journal.replay("sim", &[], false).history, []);
        assert_eq!(journal.replay("other", &[], false).history.len(), 2);
    }

    #[test]
    fn a_write_in_an_interrupted_turn_is_replayed() {
        let mut journal = Journal::default();
        journal.add_user_transcript("Book the room.", TranscriptStage::Final);
        journal.add_completed_write("book was done".into());
        journal.add_model_transcript("It i");
        journal.end_turn();
        let replay = journal.replay("sim", &[], false);
        let (user, model) = (Speaker::User, Speaker::Model);
        let expected = [(user, "Book the room."), (model, "It i"), (user, "[Note: book was done]")];
        assert_eq!(turns_of(&replay), expected);
        journal.add_user_transcript("Book the hall.", TranscriptStage::Final);
        journal.add_completed_write("book was done".into());
        journal.add_model_transcript("It is booked.");
        journal.complete_answer();
        journal.end_turn();
        assert_eq!(
            journal.replay("sim", &[], false).history.len(),
            5,
            "words that were said to the end tell it"
        );
    }

    fn heard(heard: u64, of: u64) -> Option<HeardPart> {
        let ms = std::time::Duration::from_millis;
        Some(HeardPart { heard: ms(heard), of: ms(of) })
    }

    #[test]
    fn an_interrupted_answer_is_cut_after_the_last_word_that_was_heard() {
        let check = |said: &str, part: u64, expected: &str| {
            let mut text = said.to_owned();
            cut(&mut text, heard(part, 1_000).expect("it is one"));
            assert_eq!(text, expected, "{part} of {said:?}");
        };
        let said = "The Fram was built by Colin Archer.";
        check(said, 1_000, said);
        check(said, 999, "The Fram was built by Colin");
        check(said, 500, "The Fram was");
        check(said, 230, "The Fram");
        check(said, 20, "");
        check("Ja.", 500, "");
        check("船は美しいです", 500, "船は美");
        check("", 500, "");
    }

    #[test]
    fn what_was_not_heard_is_not_in_the_history() {
        let mut journal = Journal::default();
        turn(&mut journal, "Who built her?", "She was built by Colin Archer.");
        journal.add_note("a note");
        journal.add_user_transcript("And when?", TranscriptStage::Final);
        journal.add_model_transcript("In 1892, at Larvik.");
        journal.complete_answer();
        journal.cut_answers(heard(0, 900), heard(500, 1_000));
        assert!(!journal.is_answered());
        journal.end_turn();
        let (user, model) = (Speaker::User, Speaker::Model);
        let expected =
            [(user, "Who built her?"), (model, "She was built"), (user, "a note"), (user, "And when?")];
        assert_eq!(turns_of(&journal.replay("sim", &[], false)), expected);
    }

    #[test]
    fn a_provider_that_knows_what_was_heard_is_believed() {
        let (user, model) = (Speaker::User, Speaker::Model);
        let mut journal = Journal::default();
        for part in [500, 1] {
            journal.add_user_transcript("Who built her?", TranscriptStage::Final);
            journal.add_model_transcript("She was built by Colin Archer.");
            journal.cut_answers(heard(part, 1_000), None);
            journal.add_completed_write("look was done".into());
            journal.end_turn();
            journal.set_heard("She was built by");
            let replay = journal.replay("sim", &[], false);
            let turns = turns_of(&replay);
            let note = "[Note: look was done]";
            let expected = [(user, "Who built her?"), (model, "She was built by"), (user, note)];
            assert_eq!(turns[turns.len() - 3..], expected, "the estimate was {part}");
        }
        journal.set_heard("");
        let replay = journal.replay("sim", &[], false);
        assert_eq!(turns_of(&replay)[4], (model, "…"));
    }

    #[test]
    fn an_older_answer_than_the_last_is_never_cut() {
        let mut journal = Journal::default();
        turn(&mut journal, "One?", "The first answer.");
        turn(&mut journal, "Two?", "");
        let before = journal.clone();
        journal.cut_answers(None, heard(1, 1_000));
        assert_eq!(journal, before);
    }

    #[test]
    fn a_note_asks_for_an_answer() {
        let replay = Journal::default().replay("sim", &["book was done".into()], false);
        assert_eq!(turns_of(&replay), [(Speaker::User, "[Note: book was done]")]);
        assert!(replay.asks);
    }

    #[test]
    fn the_oldest_turns_are_dropped() {
        let mut journal = Journal::default();
        for number in 0..1_000 {
            turn(&mut journal, &format!("question {number} {}", "x".repeat(100)), "answer");
        }
        journal.set_handle("sim", "h".into());
        turn(&mut journal, &"y".repeat(10_000), "z");
        let kept: usize = journal.turns.iter().map(|turn| turn.text.len()).sum();
        assert!(kept <= MAX_JOURNAL_BYTES, "{kept}");
        assert_eq!(journal.replay("sim", &[], false).history.len(), 2);
    }
}
