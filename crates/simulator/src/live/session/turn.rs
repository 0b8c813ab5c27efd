//! The steps of a turn.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::utterance::Utterance;
use super::{Output, Session, Task, TaskResult};
use crate::live::client_frame::Scheduling;
use crate::live::scenario::{Interruption, Step};
use crate::live::server_frame;
use crate::live::sound::Sound;

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) steps: VecDeque<Step>,
    wait: Wait,
    pub(super) interruption: Interruption,
    /// Further fields of the frame with `turnComplete`.
    pub(super) beside: Map<String, Value>,
    /// When everything that was sent has been played.
    played_until: Instant,
    pub(super) said: String,
    /// Whether nothing is said because all answers are silent.
    is_muted: bool,
}

#[derive(Debug)]
enum Wait {
    Nothing,
    Until(Instant),
    Speaking(Utterance),
    /// For the answers to blocking calls.
    Blocked,
    Answers(Option<Instant>),
    Interruption(Instant),
    /// For a task; the text and whether it is transcribed, if it is to be spoken.
    Task(Option<(String, bool)>),
}

impl Turn {
    pub(super) fn new(steps: Vec<Step>, interruption: Interruption, now: Instant) -> Self {
        Self {
            steps: steps.into(),
            wait: Wait::Nothing,
            interruption,
            beside: Map::new(),
            played_until: now,
            said: String::new(),
            is_muted: false,
        }
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        match &self.wait {
            Wait::Until(at) | Wait::Interruption(at) => Some(*at),
            Wait::Speaking(utterance) => Some(utterance.due),
            Wait::Answers(until) => *until,
            Wait::Nothing | Wait::Blocked | Wait::Task(_) => None,
        }
    }
}

impl Session {
    /// Performs one step. Returns whether there may be another one.
    pub(super) fn step(&mut self, now: Instant) -> bool {
        if self.turn.is_none() {
            return self.begin_pending(now);
        }
        if !self.is_wait_over(now) {
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

    fn is_wait_over(&mut self, now: Instant) -> bool {
        let (blocks, are_open) = (self.calls.are_blocking(), self.calls.are_open());
        let Some(turn) = &mut self.turn else { return true };
        match &mut turn.wait {
            Wait::Nothing => true,
            Wait::Until(at) => *at <= now,
            Wait::Blocked => !blocks,
            Wait::Task(_) => false,
            Wait::Speaking(utterance) => {
                let mut frames = Vec::new();
                let is_over = loop {
                    if utterance.due > now {
                        break false;
                    }
                    let Some((frame, words)) = utterance.next(&self.pace) else { break true };
                    turn.said.push_str(&words);
                    frames.push(frame);
                };
                frames.iter().for_each(|frame| self.send(frame));
                is_over
            }
            Wait::Answers(_) if !are_open => {
                self.apply_scheduling(now);
                true
            }
            Wait::Answers(until) => {
                let is_overdue = until.is_some_and(|until| until <= now);
                if is_overdue {
                    self.fault("calls were not answered in time");
                }
                is_overdue
            }
            Wait::Interruption(until) => {
                let is_overdue = *until <= now;
                if is_overdue {
                    self.fault("the turn was not interrupted in time");
                }
                is_overdue
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
                self.begin_unprompted(now);
            }
            Step::ExpectInterruption(within) => self.wait_for(Wait::Interruption(now + within)),
            Step::GoAway { left, closes_after, ending } => {
                self.send(&server_frame::go_away(left));
                self.schedule(now + closes_after, ending.into());
            }
            Step::Drop(ending) => {
                if self.turn.as_ref().is_some_and(|turn| turn.steps.iter().all(Step::is_ending)) {
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
            Step::Send { bytes, after } => self.schedule(now + after, Output::Frame(bytes)),
            Step::Resumable(is_resumable) => {
                let conversation = self.conversation.clone();
                let handle = is_resumable.then(|| self.simulation.state().issue_handle(conversation, now));
                self.send(&server_frame::resumption(handle.as_deref()));
            }
            Step::GenerationComplete => self.send(&server_frame::generation_complete()),
            Step::WaitForPlayback => {
                let until = self.turn.as_ref().map_or(now, |turn| turn.played_until);
                if self.pace.waits_for_playback {
                    self.wait_for(Wait::Until(until));
                }
            }
            Step::Complete => self.complete(now),
            Step::EndSilently => {
                self.turn = None;
                self.note_played();
            }
            Step::Ask => self.ask_unless_muted(),
        }
    }

    fn ask_unless_muted(&mut self) {
        self.note_results();
        if self.turn.as_ref().is_some_and(|turn| turn.is_muted) {
            return self.finish();
        }
        self.ask();
        self.wait_for(Wait::Task(None));
    }

    /// Silent answers mute only what follows the same message.
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
        } else if self.simulation.voice.is_some() && audio {
            turn.wait = Wait::Task(Some((text.clone(), transcript)));
            self.task = Some(Task::Speak(text));
        } else {
            let sound = Sound::substitute(&text, self.simulation.substitute);
            self.speak(sound, audio, transcript, now);
        }
    }

    fn speak(&mut self, sound: Sound, audio: bool, transcript: bool, now: Instant) {
        let transcript = transcript && self.setup.transcribes_output;
        let utterance = Utterance::new(sound, audio, transcript, now);
        if let Some(turn) = &mut self.turn {
            turn.played_until = turn.played_until.max(now) + utterance.duration();
            turn.wait = Wait::Speaking(utterance);
        }
    }

    pub(in crate::live) fn take_result(&mut self, result: TaskResult, now: Instant) {
        let Some(turn) = &mut self.turn else { return };
        let Wait::Task(speech) = std::mem::replace(&mut turn.wait, Wait::Nothing) else { return };
        match (result, speech) {
            (TaskResult::Samples(samples), Some((text, transcript))) => {
                let sound = match samples {
                    Some(samples) => Sound::spoken(&text, samples),
                    None => Sound::substitute(&text, self.simulation.substitute),
                };
                self.speak(sound, true, transcript, now);
            }
            (TaskResult::Reply(Ok(reply)), _) => self.take_reply(reply),
            (TaskResult::Reply(Err(why)), _) => self.end(Output::Close(1011, why)),
            (TaskResult::Samples(_), None) => {}
        }
    }

    pub(in crate::live) fn is_waiting_for_task(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| matches!(turn.wait, Wait::Task(_)))
    }

    pub(super) fn waits_for_answers(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| matches!(turn.wait, Wait::Answers(_) | Wait::Blocked))
    }

    pub(super) fn finish(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.steps.extend([Step::GenerationComplete, Step::WaitForPlayback, Step::Complete]);
        }
    }

    /// All answers have come: the turn goes on at once, after playback, or muted.
    fn apply_scheduling(&mut self, now: Instant) {
        let scheduling = self.calls.scheduling();
        self.calls.answers_are_due = false;
        let Some(turn) = &mut self.turn else { return };
        let is_played = turn.played_until <= now;
        turn.is_muted = scheduling == Scheduling::Silent;
        if scheduling == Scheduling::Interrupt && !is_played {
            turn.played_until = now;
            self.send(&server_frame::interrupted());
        } else if scheduling == Scheduling::WhenIdle && !is_played && self.pace.waits_for_playback {
            turn.steps.push_front(Step::WaitForPlayback);
        }
    }
}
