//! Speech that is being sent.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::live::scenario::Pace;
use crate::live::server_frame;
use crate::live::sound::{SAMPLE_RATE, Sound};

#[derive(Debug)]
pub(super) struct Utterance {
    sound: Sound,
    audio: bool,
    transcript: bool,
    /// Samples and words sent so far.
    samples: usize,
    words: usize,
    /// When the next frame goes out.
    pub(super) due: Instant,
}

impl Utterance {
    pub(super) fn new(sound: Sound, audio: bool, transcript: bool, now: Instant) -> Self {
        Self { sound, audio, transcript, samples: 0, words: 0, due: now }
    }

    /// How long it takes to play.
    pub(super) fn duration(&self) -> Duration {
        let samples = if self.audio { self.sound.samples.len() } else { 0 };
        Duration::from_secs_f64(samples as f64 / SAMPLE_RATE as f64)
    }

    /// The next frame and its words; nothing once all is sent.
    pub(super) fn next(&mut self, pace: &Pace) -> Option<(Value, String)> {
        let part = (SAMPLE_RATE * pace.part.as_millis() as usize / 1000).max(1);
        let rest = &self.sound.samples[self.samples..];
        let here = &rest[..rest.len().min(part * pace.parts_per_frame)];
        let end = self.samples + here.len();
        let is_last = end == self.sound.samples.len();
        let begun = self.sound.words[self.words..].iter().take_while(|(begins, _)| is_last || *begins < end);
        let words: String = begun.clone().map(|(_, word)| word.as_str()).collect();
        if here.is_empty() && words.is_empty() {
            return None;
        }
        self.words += begun.count();
        self.samples = end;
        let parts: Vec<_> = if self.audio { here.chunks(part).collect() } else { Vec::new() };
        let frame = server_frame::speech(&parts, if self.transcript { &words } else { "" });
        let pause = Duration::from_secs_f64(here.len() as f64 / SAMPLE_RATE as f64);
        self.due += pause.checked_div(pace.speed).unwrap_or_default();
        Some((frame, words))
    }
}
