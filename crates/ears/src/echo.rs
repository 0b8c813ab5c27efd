//! What the microphone hears of the loudspeaker is not the user.
//!
//! The gate knows how loud the audio is that is being played, and learns how much of it comes back: the *coupling*. Sound
//! that is not clearly louder than the echo which that explains is echo. The delay is not known, and a browser's own echo
//! cancellation changes the sound, so only loudness over time is compared, never the samples.

use std::collections::VecDeque;

/// How many frames after it was played an echo may be heard: 640 ms, most of which is the network.
const MAX_DELAY: usize = 40;
/// How many frames the estimate of what is being played may be behind: 160 ms.
const MAX_LEAD: usize = 10;
/// How many frames are compared to find out whether a sound follows what is played: a second. Over less, two people who
/// speak at a time rise and fall together by chance.
const COMPARED: usize = 64;
const HISTORY: usize = 128;
/// How many frames of audio that is still to be played are kept: two minutes, as much as a page takes.
const MAX_SCHEDULED: usize = 7_500;
/// How often the two are compared, in frames.
const COMPARE_EVERY: u32 = 4;

/// How much louder than the expected echo the user is, as a power: 6 dB.
const USER_MARGIN: f32 = 4.0;
/// The coupling before anything is known, as a power: a loudspeaker without echo cancellation. It is soon learned.
const FIRST_COUPLING: f32 = 0.1;
const MIN_COUPLING: f32 = 1e-5;
const MAX_COUPLING: f32 = 2.0;
/// How fast the coupling falls while less comes back: 14 dB in a second.
const COUPLING_DECAY: f32 = 0.95;
/// How fast it rises with each comparison that finds an echo: 16 dB in a second, so that chance raises it little.
const COUPLING_RISE: f32 = 1.26;
/// How fast it falls while there is sound that does not follow what is played: 3 dB in a second.
const UNEXPLAINED_DECAY: f32 = 0.99;
/// From which correlation on a sound follows what is played, and up to which it does not.
const ECHO_CORRELATION: f32 = 0.85;
const UNRELATED_CORRELATION: f32 = 0.4;
/// Power below which nothing is heard of what is played.
const SILENT_POWER: f32 = 1e-6;

#[derive(Debug)]
pub(crate) struct EchoGate {
    /// The power of each frame that is still to be played, and how many were before them.
    scheduled: VecDeque<f32>,
    played_frames: u64,
    /// What was played and what was heard, the latest last.
    played: Recent,
    heard: Recent,
    /// For how many frames nothing was played, and for how many an echo may be heard.
    still: usize,
    audible: usize,
    coupling: f32,
    /// How well what is heard follows what is played.
    correlation: f32,
    until_compare: u32,
}

impl Default for EchoGate {
    fn default() -> Self {
        Self {
            scheduled: VecDeque::new(),
            played_frames: 0,
            played: Recent::default(),
            heard: Recent::default(),
            still: HISTORY,
            audible: 0,
            coupling: FIRST_COUPLING,
            correlation: 0.0,
            until_compare: COMPARE_EVERY,
        }
    }
}

impl EchoGate {
    /// A frame that will be played.
    pub(crate) fn add(&mut self, power: f32) {
        if self.scheduled.len() < MAX_SCHEDULED {
            self.scheduled.push_back(power);
        }
    }

    /// What is scheduled will not be played. What was played may still be heard.
    pub(crate) fn clear(&mut self) {
        self.scheduled.clear();
        self.played_frames = 0;
    }

    /// Takes a frame of this power, heard when so many frames had been played. Returns whether it is more than echo.
    pub(crate) fn is_user(&mut self, power: f32, played_frames: Option<u64>) -> bool {
        let now_played = self.advance(played_frames);
        self.played.push(now_played);
        self.heard.push(power);
        let loudest = self.loudest();
        if loudest < SILENT_POWER {
            self.audible = 0;
            return true;
        }
        self.audible = self.audible.saturating_add(1);
        self.learn(loudest);
        power > loudest * self.coupling * USER_MARGIN
    }

    /// The power of what was played since the last frame.
    fn advance(&mut self, played_frames: Option<u64>) -> f32 {
        let mut loudest = 0.0_f32;
        let mut is_still = true;
        while let Some(until) = played_frames
            && self.played_frames < until
            && let Some(power) = self.scheduled.pop_front()
        {
            self.played_frames += 1;
            loudest = loudest.max(power);
            is_still = false;
        }
        self.still = if is_still { (self.still + 1).min(HISTORY) } else { 0 };
        loudest
    }

    /// The loudest that may be heard now of what is played.
    fn loudest(&self) -> f32 {
        let before = self.played.last(MAX_DELAY).fold(0.0, f32::max);
        // While playback is paused nothing is about to be heard.
        let is_playing = self.still < MAX_LEAD;
        let soon = self.scheduled.iter().take(if is_playing { MAX_LEAD } else { 0 });
        soon.copied().fold(before, f32::max)
    }

    fn learn(&mut self, loudest: f32) {
        self.until_compare -= 1;
        if self.until_compare == 0 {
            self.until_compare = COMPARE_EVERY;
            self.compare();
        }
        // The first echo may still be on its way.
        if self.audible <= MAX_DELAY {
            return;
        }
        let heard = self.heard.last(MAX_DELAY).fold(0.0, f32::max);
        if heard < loudest * self.coupling / USER_MARGIN {
            self.lower_coupling(COUPLING_DECAY);
        } else if self.correlation < UNRELATED_CORRELATION {
            self.lower_coupling(UNEXPLAINED_DECAY);
        }
    }

    fn lower_coupling(&mut self, factor: f32) {
        self.coupling = (self.coupling * factor).max(MIN_COUPLING);
    }

    /// Finds the delay at which what is heard follows what is played best, and how much louder or softer it is.
    fn compare(&mut self) {
        let heard = self.heard.latest(0);
        let best = (0..MAX_DELAY)
            .map(|delay| (correlation(heard, self.played.latest(delay)), delay))
            .max_by(|one, other| one.0.total_cmp(&other.0));
        let Some((correlation, delay)) = best else { return };
        self.correlation = correlation;
        if correlation < ECHO_CORRELATION {
            return;
        }
        let (mut back, mut sent) = (0.0, 0.0);
        for (heard, played) in heard.iter().zip(self.played.latest(delay)) {
            (back, sent) = (back + heard, sent + played);
        }
        if sent > SILENT_POWER {
            let measured = (back / sent).clamp(MIN_COUPLING, MAX_COUPLING);
            self.coupling = measured.min(self.coupling * COUPLING_RISE);
        }
    }
}

/// The last frames, kept twice so that any run of them is one slice.
#[derive(Debug)]
struct Recent {
    frames: [f32; 2 * HISTORY],
    next: usize,
}

impl Default for Recent {
    fn default() -> Self {
        Self { frames: [0.0; 2 * HISTORY], next: 0 }
    }
}

impl Recent {
    fn push(&mut self, power: f32) {
        self.frames[self.next] = power;
        self.frames[self.next + HISTORY] = power;
        self.next = (self.next + 1) % HISTORY;
    }

    fn last(&self, count: usize) -> impl Iterator<Item = f32> {
        let end = self.next + HISTORY;
        self.frames[end - count..end].iter().copied()
    }

    /// The frames that are compared, as they were so many frames ago.
    fn latest(&self, ago: usize) -> &[f32] {
        let end = self.next + HISTORY - ago;
        &self.frames[end - COMPARED..end]
    }
}

/// How alike two sounds rise and fall, from -1 to 1. Amplitudes are compared: powers would let one loud frame decide.
fn correlation(one: &[f32], other: &[f32]) -> f32 {
    let count = one.len() as f32;
    let (mut sum_x, mut sum_y, mut sum_xx, mut sum_yy, mut sum_xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in one.iter().zip(other) {
        let (x, y) = (x.sqrt(), y.sqrt());
        sum_x += x;
        sum_y += y;
        sum_xx += x * x;
        sum_yy += y * y;
        sum_xy += x * y;
    }
    let spread_x = sum_xx - sum_x * sum_x / count;
    let spread_y = sum_yy - sum_y * sum_y / count;
    let both = (spread_x * spread_y).sqrt();
    if both > 1e-9 { (sum_xy - sum_x * sum_y / count) / both } else { 0.0 }
}

#[cfg(test)]
mod tests;
