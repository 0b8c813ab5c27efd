//! The ear: detector, echo gate and utterances together.

use std::fmt;
use std::time::Duration;

use quarterdeck_contracts::Audio;

use crate::detector::{VoiceDetector, Voicing};
use crate::echo::EchoGate;
use crate::framing::{FRAME_TIME, Framer, HEARD_FRAME, PLAYED_FRAME, power};
use crate::turn_end::{AnyPause, TurnEnd};
use crate::utterance::{EarEvent, EarSettings, UtteranceTracker};

/// Listens to the user of one call.
pub struct Ear {
    detector: VoiceDetector,
    echo: EchoGate,
    utterance: UtteranceTracker,
    turn_end: Box<dyn TurnEnd>,
    heard: Framer<HEARD_FRAME>,
    played: Framer<PLAYED_FRAME>,
}

impl Default for Ear {
    fn default() -> Self {
        Self::new(EarSettings::default(), Box::new(AnyPause))
    }
}

impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ear").field("utterance", &self.utterance).finish_non_exhaustive()
    }
}

impl Ear {
    pub fn new(settings: EarSettings, turn_end: Box<dyn TurnEnd>) -> Self {
        Self {
            detector: VoiceDetector::new(),
            echo: EchoGate::default(),
            utterance: UtteranceTracker::new(settings),
            turn_end,
            heard: Framer::default(),
            played: Framer::default(),
        }
    }

    /// Hears the user's audio: 16 kHz, in pieces of any size. `played` is how much of what was given to
    /// [`Ear::add_playback`] the user has been played by now, or `None` while nothing is played; an estimate that is off by
    /// the delay of the network does.
    pub fn hear(&mut self, audio: &Audio<'_>, played: Option<Duration>, mut on_event: impl FnMut(EarEvent)) {
        let played = played.map(|time| (time.as_millis() / FRAME_TIME.as_millis()) as u64);
        let Self { detector, echo, utterance, turn_end, heard, .. } = self;
        heard.push(audio, |frame| {
            let power = power(frame);
            let is_user = echo.is_user(power, played);
            // The network is asked about echo too: it must know what was before the user's first word.
            let judged = detector.judge(frame, power);
            let voicing = if is_user { judged } else { Voicing::Absent };
            if utterance.is_speech() {
                turn_end.on_frame(frame);
            }
            if let Some(event) = utterance.on_frame(voicing, &mut **turn_end) {
                on_event(event);
            }
        });
    }

    /// Audio that the user will be played, after what was added before: 24 kHz.
    pub fn add_playback(&mut self, audio: &Audio<'_>) {
        let Self { played, echo, .. } = self;
        played.push(audio, |frame| echo.add(power(frame)));
    }

    /// What was added and not played yet will not be played. Counting begins at zero again.
    pub fn clear_playback(&mut self) {
        self.played.clear();
        self.echo.clear();
    }

    /// No more of the user's audio comes for now: what has begun ends.
    pub fn stop(&mut self) -> Option<EarEvent> {
        self.heard.clear();
        self.utterance.stop()
    }

    /// Whether an onset is still to be confirmed or to be taken back.
    pub fn is_suspicious(&self) -> bool {
        self.utterance.is_suspected()
    }

    /// Whether the user is speaking.
    pub fn hears_speech(&self) -> bool {
        self.utterance.is_speech()
    }
}
