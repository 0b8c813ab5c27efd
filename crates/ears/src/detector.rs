//! Whether there is a voice in a frame.

use earshot::Detector;

use crate::framing::HEARD_FRAME;

/// Frames with less power than this are silence: -60 dB, a whisper across a room. The network is not asked.
const SILENT_POWER: f32 = 1e-6;
/// How many silent frames the network hears all the same, a third of a second. What it has heard decides how soon it takes
/// a sound for a voice: after silence within two frames, from nothing only within fifteen.
const SETTLE_FRAMES: u32 = 20;
/// From which score on a frame has a voice, and from which it may have one; while a voice is heard, that is enough. Recorded
/// speech scores above 0.7 within two frames, and noise that follows silence up to 0.65.
const VOICE_SCORE: f32 = 0.7;
const POSSIBLE_VOICE_SCORE: f32 = 0.5;

/// Sound that is never this much louder than at its softest within a quarter of a second is a tone or a noise: 4 dB. The
/// network takes some of those for a voice when they begin.
const MIN_RANGE: f32 = 2.5;
const RANGE_FRAMES: usize = 16;

/// How sure it is that there is a voice in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voicing {
    Absent,
    /// As a hiss before the vowel, or a noise. What comes next tells which.
    Possible,
    Certain,
}

pub(crate) struct VoiceDetector {
    network: Box<Detector>,
    /// The power of the last frames.
    recent: [f32; RANGE_FRAMES],
    next: usize,
    is_voice: bool,
    silent_frames: u32,
}

impl VoiceDetector {
    pub(crate) fn new() -> Self {
        let mut network = Box::new(Detector::default());
        (0..SETTLE_FRAMES).for_each(|_| _ = network.predict_i16(&[0; HEARD_FRAME]));
        let recent = [0.0; RANGE_FRAMES];
        Self { network, recent, next: 0, is_voice: false, silent_frames: SETTLE_FRAMES }
    }

    pub(crate) fn judge(&mut self, frame: &[i16; HEARD_FRAME], power: f32) -> Voicing {
        self.recent[self.next] = power;
        self.next = (self.next + 1) % RANGE_FRAMES;
        if power < SILENT_POWER {
            if self.silent_frames < SETTLE_FRAMES {
                self.silent_frames += 1;
                self.network.predict_i16(frame);
            }
            self.is_voice = false;
            return Voicing::Absent;
        }
        self.silent_frames = 0;
        let score = self.network.predict_i16(frame);
        self.is_voice = score >= if self.is_voice { POSSIBLE_VOICE_SCORE } else { VOICE_SCORE };
        if score < POSSIBLE_VOICE_SCORE || self.is_steady() {
            Voicing::Absent
        } else if self.is_voice {
            Voicing::Certain
        } else {
            Voicing::Possible
        }
    }

    fn is_steady(&self) -> bool {
        let loudest = self.recent.iter().copied().fold(0.0, f32::max);
        let softest = self.recent.iter().copied().fold(f32::MAX, f32::min);
        loudest < softest * MIN_RANGE
    }
}
