//! Plays sound to an ear.

use std::time::Duration;

use quarterdeck_contracts::Audio;
use quarterdeck_ears::{Ear, EarEvent};

pub(crate) const RATE: usize = 16_000;

pub(crate) fn silence(time: Duration, rate: usize) -> Vec<i16> {
    vec![0; (time.as_secs_f32() * rate as f32) as usize]
}

pub(crate) fn pcm(samples: &[i16]) -> Audio<'static> {
    Audio::Pcm(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<_>>().into())
}

/// Hears frames of 20 ms, and tells at which time what was heard. `played` is how much of what was added has been played.
pub(crate) fn hear(
    ear: &mut Ear,
    samples: &[i16],
    played: impl Fn(Duration) -> Option<Duration>,
) -> Vec<(u64, EarEvent)> {
    let mut events = Vec::new();
    for (number, frame) in samples.chunks(RATE / 50).enumerate() {
        let now = Duration::from_millis(20) * (number as u32 + 1);
        ear.hear(&pcm(frame), played(now), |event| events.push((now.as_millis() as u64, event)));
    }
    events
}
