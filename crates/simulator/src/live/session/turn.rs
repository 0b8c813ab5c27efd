//! A turn, step by step.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::saying::Saying;
use super::{Done, Errand, Out, Session};
use crate::live::client_frame::Scheduling;
use crate::live::scenario::{Interruption, Step};
use crate::live::server_frame;
use crate::live::sound::Sound;

/// What the model is doing.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) steps: VecDeque<Step>,
    wait: Wait,
    pub(super) interruption: Interruption,
    /// What comes with `turnComplete`.
    pub(super) beside: Map<String, Value>,
    /// When everything that was sent has been heard.
    heard_until: Instant,
    /// What has been said so far.
    pub(super) said: String,
    /// Whether nothing is said because the answers do not want it.
    is_muted: bool,
}

/// What the next step waits for.
#[derive(Debug)]
enum Wait {
    Nothing,
    Until(Instant),
    Saying(Saying),
    /// The answers to calls that block.
    Blocked,
    Answers(Option<Instant>),
    Interruption(Instant),
    /// Somebody does something for us; these are the words that it is about.
    Errand(Option<(String, bool)>),
}

impl Turn {
    pub(super) fn new(steps: Vec<Step>, interruption: Interruption, now: Instant) -> Self {
        Self {
            steps: steps.into(),
            wait: Wait::Nothing,
            interruption,
            beside: Map::new(),
            heard_until: now,
            said: String::new(),
            is_muted: false,
        }
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        match &self.wait {
            Wait::Until(at) | Wait::Interruption(at) => Some(*at),
            Wait::Saying(saying) => Some(saying.due),
            Wait::Answers(until) => *until,
            Wait::Nothing | Wait::Blocked | Wait::Errand(_) => None,
        }
    }
}

impl Session {
    /// Goes one step further. Whether there may be another one.
    pub(super) fn step(&mut self, now: Instant) -> bool {
        if self.turn.is_none() {
            return self.begin_waiting(now);
        }
        if !self.wait_is_over(now) {
            return false;
        }
        let step = self.turn.as_mut().and_then(|turn| {
            turn.wait = Wait::Nothing;
            turn.steps.pop_front()
        });
        match step {
            Some(step) => self.perform(step, now),
            None => self.turn = None,
        }
        true
    }

    fn wait_is_over(&mut self, now: Instant) -> bool {
        let (blocks, are_open) = (self.calls.block(), self.calls.are_open());
        let Some(turn) = &mut self.turn else { return true };
        match &mut turn.wait {
            Wait::Nothing => true,
            Wait::Until(at) => *at <= now,
            Wait::Blocked => !blocks,
            Wait::Errand(_) => false,
            Wait::Saying(saying) => {
                let mut frames = Vec::new();
                let is_over = loop {
                    if saying.due > now {
                        break false;
                    }
                    let Some((frame, words)) = saying.next(&self.pace) else { break true };
                    turn.said.push_str(&words);
                    frames.push(frame);
                };
                frames.iter().for_each(|frame| self.send(frame));
                is_over
            }
            Wait::Answers(_) if !are_open => {
                self.mind_scheduling(now);
                true
            }
            Wait::Answers(until) => {
                let is_late = until.is_some_and(|until| until <= now);
                if is_late {
                    self.fault("calls were not answered in time");
                }
                is_late
            }
            Wait::Interruption(until) => {
                let is_late = *until <= now;
                if is_late {
                    self.fault("nobody has interrupted the turn that was to be interrupted");
                }
                is_late
            }
        }
    }

    fn perform(&mut self, step: Step, now: Instant) {
        match step {
            Step::Say { text, audio, transcript } => self.say(text, audio, transcript, now),
            Step::Think(text) => self.send(&server_frame::thought(&text)),
            Step::Call { calls, behaviour, with } => {
                self.make_calls(calls, behaviour, &with);
                self.unmute();
                self.wait_for(Wait::Blocked);
            }
            Step::Await { within } => self.wait_for(Wait::Answers(within.map(|within| now + within))),
            Step::Cancel(ids) => self.cancel_calls(ids),
            Step::Interrupt => {
                self.interrupt();
                self.offer_handle(now);
                self.begin_by_itself(now);
            }
            Step::ExpectInterruption(within) => self.wait_for(Wait::Interruption(now + within)),
            Step::GoAway { left, closes_after, ending } => {
                self.send(&server_frame::go_away(left));
                self.send_later(now + closes_after, ending.into());
            }
            Step::Drop(ending) => {
                let ends = |step: &Step| {
                    matches!(step, Step::Generated | Step::Heard | Step::Complete | Step::Leave)
                };
                if self.turn.as_ref().is_some_and(|turn| turn.steps.iter().all(ends)) {
                    self.note_played();
                }
                self.end(ending.into());
            }
            Step::Only { on, step } => {
                if on == self.number {
                    self.perform(*step, now);
                }
            }
            Step::Wait(pause) => self.wait_for(Wait::Until(now + pause)),
            Step::Send { bytes, after: Duration::ZERO } => self.send_bytes(bytes),
            Step::Send { bytes, after } => self.send_later(now + after, Out::Frame(bytes)),
            Step::Resumable(is_resumable) => {
                let conversation = self.conversation.clone();
                let handle = is_resumable.then(|| self.desk.books().handle(conversation, now));
                self.send(&server_frame::resumption(handle.as_deref()));
            }
            Step::Generated => self.send(&server_frame::generation_complete()),
            Step::Heard => {
                let until = self.turn.as_ref().map_or(now, |turn| turn.heard_until);
                if self.pace.is_heard {
                    self.wait_for(Wait::Until(until));
                }
            }
            Step::Complete => self.complete(now),
            Step::Leave => {
                self.turn = None;
                self.note_played();
            }
            Step::Ask => {
                self.note_results();
                match self.turn.as_ref().is_some_and(|turn| turn.is_muted) {
                    true => self.finish(),
                    false => {
                        self.ask();
                        self.wait_for(Wait::Errand(None));
                    }
                }
            }
        }
    }

    /// Only what follows the answers of one message is kept unsaid.
    fn unmute(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.is_muted = false;
        }
    }

    fn wait_for(&mut self, wait: Wait) {
        if let Some(turn) = &mut self.turn {
            turn.wait = wait;
        }
    }

    fn say(&mut self, text: String, audio: bool, transcript: bool, now: Instant) {
        let Some(turn) = &mut self.turn else { return };
        if turn.is_muted {
            return;
        }
        if !self.setup.speaks {
            turn.said.push_str(&text);
            self.send(&server_frame::text(&text));
        } else if self.desk.voice.is_some() && audio {
            turn.wait = Wait::Errand(Some((text.clone(), transcript)));
            self.errand = Some(Errand::Speak(text));
        } else {
            self.utter(Sound::tones(&text), audio, transcript, now);
        }
    }

    fn utter(&mut self, sound: Sound, audio: bool, transcript: bool, now: Instant) {
        let transcript = transcript && self.setup.transcribes_output;
        let saying = Saying::new(sound, audio, transcript, now);
        if let Some(turn) = &mut self.turn {
            turn.heard_until = turn.heard_until.max(now) + saying.length();
            turn.wait = Wait::Saying(saying);
        }
    }

    /// Takes what an errand has come to.
    pub(in crate::live) fn done(&mut self, done: Done, now: Instant) {
        let Some(turn) = &mut self.turn else { return };
        let Wait::Errand(words) = std::mem::replace(&mut turn.wait, Wait::Nothing) else { return };
        match (done, words) {
            (Done::Samples(samples), Some((text, transcript))) => {
                let sound = match samples {
                    Some(samples) => Sound::spoken(&text, samples),
                    None => Sound::tones(&text),
                };
                self.utter(sound, true, transcript, now);
            }
            (Done::Reply(Ok(reply)), _) => self.take_reply(reply),
            (Done::Reply(Err(why)), _) => self.end(Out::Close(1011, why)),
            (Done::Samples(_), None) => {}
        }
    }

    /// Whether somebody is still to do something for us.
    pub(in crate::live) fn waits_for_errand(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| matches!(turn.wait, Wait::Errand(_)))
    }

    pub(super) fn waits_for_answers(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| matches!(turn.wait, Wait::Answers(_) | Wait::Blocked))
    }

    pub(super) fn finish(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.steps.extend([Step::Generated, Step::Heard, Step::Complete]);
        }
    }

    /// All answers are there: says something at once, when nothing else is being said, or nothing.
    fn mind_scheduling(&mut self, now: Instant) {
        let scheduling = self.calls.scheduling(self.calls_of_step);
        self.answers_are_due = false;
        let Some(turn) = &mut self.turn else { return };
        let is_heard = turn.heard_until <= now;
        turn.is_muted = scheduling == Scheduling::Silent;
        if scheduling == Scheduling::Interrupt && !is_heard {
            turn.heard_until = now;
            self.send(&server_frame::interrupted());
        } else if scheduling == Scheduling::WhenIdle && !is_heard && self.pace.is_heard {
            turn.steps.push_front(Step::Heard);
        }
    }
}
