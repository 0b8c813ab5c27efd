//! Whether there is a voice in a frame.

use earshot::Detector;

use crate::framing::HEARD_FRAME;

/// Frames with less power than this are silence: -60 dB, a whisper across a room. The network is not asked.
const SILENT_POWER: f32 = 1e-6;
/// After this many silent frames the network has nothing left of what was before them.
const FORGET_AFTER: u32 = 3;
/// From which score on a frame has a voice, and down to which it still has while one is heard.
const VOICE_SCORE: f32 = 0.5;
const STILL_VOICE_SCORE: f32 = 0.35;

pub(crate) struct VoiceDetector {
    network: Box<Detector>,
    is_voice: bool,
    silent_frames: u32,
}

impl VoiceDetector {
    pub(crate) fn new() -> Self {
        Self { network: Box::new(Detector::default()), is_voice: false, silent_frames: 0 }
    }

    pub(crate) fn is_voice(&mut self, frame: &[i16; HEARD_FRAME], power: f32) -> bool {
        if power < SILENT_POWER {
            self.silent_frames = self.silent_frames.saturating_add(1);
            if self.silent_frames == FORGET_AFTER {
                self.network.reset();
            }
            self.is_voice = false;
            return false;
        }
        self.silent_frames = 0;
        let score = self.network.predict_i16(frame);
        self.is_voice = score >= if self.is_voice { STILL_VOICE_SCORE } else { VOICE_SCORE };
        self.is_voice
    }
}
