//! From frames with and without a voice to utterances: a cough is none, and a pause for breath does not end one.

use std::time::Duration;

use crate::detector::Voicing;
use crate::framing::FRAME_TIME;
use crate::turn_end::TurnEnd;

/// How long is what. All are rounded up to frames of 16 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarSettings {
    /// How much voice makes an onset, at which playback pauses.
    pub onset: Duration,
    /// How much voice is speech, and no cough.
    pub min_speech: Duration,
    /// How much silence after an onset shows that it was a cough.
    pub cough_silence: Duration,
    /// How much silence ends an utterance.
    pub hangover: Duration,
    /// The same where it sounds unfinished ([`TurnEnd`]).
    pub unfinished_hangover: Duration,
    /// How long an utterance may be. What follows is another one.
    pub max_speech: Duration,
}

impl Default for EarSettings {
    fn default() -> Self {
        Self {
            onset: Duration::from_millis(48),
            min_speech: Duration::from_millis(250),
            cough_silence: Duration::from_millis(200),
            hangover: Duration::from_millis(600),
            unfinished_hangover: Duration::from_millis(1_500),
            max_speech: Duration::from_secs(60),
        }
    }
}

/// What an ear has heard.
///
/// An onset is followed by [`EarEvent::SpeechStarted`] or [`EarEvent::FalseAlarm`], and speech by
/// [`EarEvent::SpeechEnded`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarEvent {
    /// The user may have begun to speak.
    Onset,
    /// The user has begun to speak, this long ago.
    SpeechStarted {
        /// Since the first voiced frame.
        ago: Duration,
    },
    /// It was a cough, or a noise.
    FalseAlarm,
    /// The user has stopped, this long ago.
    SpeechEnded {
        /// Since the last voiced frame.
        ago: Duration,
    },
}

/// Follows one speaker, frame by frame.
#[derive(Debug)]
pub(crate) struct UtteranceTracker {
    settings: EarSettings,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No speech. Every frame without a voice takes back two with one. Frames that may have a voice count once it is certain:
    /// words that begin with a hiss are noticed two frames sooner, and a noise never becomes an onset.
    Silence {
        voiced: u32,
        frames: u32,
    },
    /// After an onset.
    Suspected {
        voiced: u32,
        silent: u32,
        frames: u32,
    },
    Speech {
        silent: u32,
        frames: u32,
        is_unfinished: bool,
    },
}

const SILENCE: State = State::Silence { voiced: 0, frames: 0 };

impl UtteranceTracker {
    pub(crate) fn new(settings: EarSettings) -> Self {
        Self { settings, state: SILENCE }
    }

    /// Whether an onset is still to be confirmed or to be taken back.
    pub(crate) fn is_suspected(&self) -> bool {
        matches!(self.state, State::Suspected { .. })
    }

    pub(crate) fn is_speech(&self) -> bool {
        matches!(self.state, State::Speech { .. })
    }

    /// No more audio comes for now: what has begun ends.
    pub(crate) fn stop(&mut self) -> Option<EarEvent> {
        match std::mem::replace(&mut self.state, SILENCE) {
            State::Silence { .. } => None,
            State::Suspected { .. } => Some(EarEvent::FalseAlarm),
            State::Speech { silent, .. } => Some(EarEvent::SpeechEnded { ago: time(silent) }),
        }
    }

    pub(crate) fn on_frame(&mut self, voicing: Voicing, turn_end: &mut dyn TurnEnd) -> Option<EarEvent> {
        let is_voice = voicing == Voicing::Certain;
        match self.state {
            State::Silence { voiced, frames } => self.in_silence(voicing, voiced, frames),
            State::Suspected { voiced, silent, frames } => {
                let (voiced, silent) = if is_voice { (voiced + 1, 0) } else { (voiced, silent + 1) };
                let event = self.in_suspicion(voiced, silent, frames + 1);
                if matches!(event, Some(EarEvent::SpeechStarted { .. })) {
                    turn_end.begin();
                }
                event
            }
            State::Speech { silent, frames, is_unfinished } => {
                let silent = if is_voice { 0 } else { silent + 1 };
                self.in_speech(silent, frames + 1, is_unfinished && !is_voice, turn_end)
            }
        }
    }

    fn in_silence(&mut self, voicing: Voicing, voiced: u32, frames: u32) -> Option<EarEvent> {
        let onset = count(self.settings.onset);
        let (voiced, frames) = match voicing {
            Voicing::Absent => (voiced.saturating_sub(2), frames + 1),
            // However long a noise is, certainty that comes after it finds no more than an onset.
            Voicing::Possible => ((voiced + 1).min(onset), (frames + 1).min(onset)),
            Voicing::Certain => (voiced + 1, frames + 1),
        };
        let frames = if voiced == 0 { 0 } else { frames };
        if voiced < onset || voicing != Voicing::Certain {
            self.state = State::Silence { voiced, frames };
            return None;
        }
        self.state = State::Suspected { voiced, silent: 0, frames };
        Some(EarEvent::Onset)
    }

    fn in_suspicion(&mut self, voiced: u32, silent: u32, frames: u32) -> Option<EarEvent> {
        if voiced >= count(self.settings.min_speech) {
            self.state = State::Speech { silent, frames, is_unfinished: false };
            return Some(EarEvent::SpeechStarted { ago: time(frames) });
        }
        // A voice that comes and goes is none after a while either.
        if silent >= count(self.settings.cough_silence) || frames >= 4 * count(self.settings.min_speech) {
            self.state = SILENCE;
            return Some(EarEvent::FalseAlarm);
        }
        self.state = State::Suspected { voiced, silent, frames };
        None
    }

    fn in_speech(
        &mut self,
        silent: u32,
        frames: u32,
        mut is_unfinished: bool,
        turn_end: &mut dyn TurnEnd,
    ) -> Option<EarEvent> {
        let hangover = count(self.settings.hangover);
        if silent == hangover {
            is_unfinished = !turn_end.sounds_finished();
        }
        let limit = if is_unfinished { count(self.settings.unfinished_hangover) } else { hangover };
        if silent >= limit.max(hangover) || frames >= count(self.settings.max_speech) {
            self.state = SILENCE;
            return Some(EarEvent::SpeechEnded { ago: time(silent) });
        }
        self.state = State::Speech { silent, frames, is_unfinished };
        None
    }
}

/// How many frames are that long, at least one.
fn count(time: Duration) -> u32 {
    let frames = time.as_millis().div_ceil(FRAME_TIME.as_millis());
    u32::try_from(frames).unwrap_or(u32::MAX / 8).clamp(1, u32::MAX / 8)
}

fn time(frames: u32) -> Duration {
    FRAME_TIME * frames
}

#[cfg(test)]
mod tests;
