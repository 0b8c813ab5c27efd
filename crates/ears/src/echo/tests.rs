use proptest::prelude::*;

use super::*;

/// How loud someone is who speaks, frame by frame: syllables of 80 to 240 ms and short gaps.
fn speech(mut seed: u64, frames: usize) -> Vec<f32> {
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut powers = Vec::with_capacity(frames + 32);
    while powers.len() < frames {
        let (length, loudness) = (5 + random(11) as usize, 0.02 + random(100) as f32 / 1_000.0);
        let syllable = (0..length).map(|at| {
            let place = (at as f32 + 0.5) / length as f32;
            (loudness * (std::f32::consts::PI * place).sin()).powi(2)
        });
        powers.extend(syllable);
        powers.extend(std::iter::repeat_n(0.0, 1 + random(6) as usize));
    }
    powers.truncate(frames);
    powers
}

/// Plays something for as long as it is, and tells which frames were taken for the user. `mic` makes what is heard of the
/// frame and of what the loudspeaker played then.
fn listen(gate: &mut EchoGate, played: &[f32], delay: usize, mic: impl Fn(usize, f32) -> f32) -> Vec<bool> {
    gate.clear();
    played.iter().for_each(|power| gate.add(*power));
    let frames = 0..played.len();
    let heard = |at: usize| if at >= delay { played[at - delay] } else { 0.0 };
    frames.map(|at| gate.is_user(mic(at, heard(at)), Some(at as u64 + 1))).collect()
}

fn decibels(db: f32) -> f32 {
    10_f32.powf(db / 10.0)
}

fn count(frames: &[bool]) -> usize {
    frames.iter().filter(|is_user| **is_user).count()
}

/// The most frames of the user's in a row.
fn longest(frames: &[bool]) -> usize {
    frames.split(|is_user| !is_user).map(<[bool]>::len).max().unwrap_or_default()
}

#[test]
fn without_playback_everything_is_the_user() {
    let mut gate = EchoGate::default();
    assert!((0..100).all(|_| gate.is_user(1e-5, None)));
}

#[test]
fn where_no_echo_comes_back_a_quiet_user_is_heard_after_two_seconds() {
    let mut gate = EchoGate::default();
    listen(&mut gate, &speech(1, 125), 0, |_, _| 0.0);
    let user = speech(2, 200);
    let taken = listen(&mut gate, &speech(3, 200), 0, |at, _| user[at] * decibels(-12.0));
    let voiced = user.iter().filter(|power| **power > 1e-4).count();
    assert!(count(&taken) * 10 > voiced * 8, "{} of {voiced}", count(&taken));
}

#[test]
fn a_user_who_waits_for_the_echo_to_end_is_heard_at_once() {
    let mut gate = EchoGate::default();
    listen(&mut gate, &speech(4, 300), 10, |_, echo| echo * decibels(-6.0));
    assert!(!gate.is_user(1e-4, None), "the end of the answer may still be heard");
    (0..MAX_DELAY).for_each(|_| _ = gate.is_user(0.0, None));
    assert!(gate.is_user(1e-5, None));
}

#[test]
fn paused_playback_makes_no_echo() {
    let mut gate = EchoGate::default();
    let played = speech(5, 400);
    played.iter().for_each(|power| gate.add(*power));
    (0..200).for_each(|at| _ = gate.is_user(played[at as usize] * 0.1, Some(at + 1)));
    (0..=MAX_DELAY).for_each(|_| _ = gate.is_user(0.0, Some(200)));
    assert!(gate.is_user(1e-5, Some(200)), "there is more to play, and it is paused");
}

#[test]
fn playback_that_nothing_takes_away_is_bounded() {
    let mut gate = EchoGate::default();
    (0..100_000).for_each(|_| gate.add(0.1));
    assert!(gate.scheduled.len() <= MAX_SCHEDULED);
}

/// Half of what is speech. A few frames in a row are an onset at most, which pauses playback for a moment.
const MAX_TAKEN_FRAMES: usize = 8;

proptest! {
    #[test]
    fn an_echo_is_never_taken_for_speech_once_it_is_known(
        seed in any::<u64>(), coupling in -45.0_f32..-3.0, delay in 0_usize..32,
    ) {
        let mut gate = EchoGate::default();
        let echo = |_: usize, played: f32| played * decibels(coupling);
        listen(&mut gate, &speech(seed, 150), delay, echo);
        let taken = listen(&mut gate, &speech(seed ^ 1, 600), delay, echo);
        prop_assert!(longest(&taken) < MAX_TAKEN_FRAMES, "{} frames in a row", longest(&taken));
    }

    #[test]
    fn the_first_echo_of_a_call_is_not_taken_for_speech(
        seed in any::<u64>(), coupling in -45.0_f32..-5.0, delay in 0_usize..32,
    ) {
        let mut gate = EchoGate::default();
        let taken = listen(&mut gate, &speech(seed, 300), delay, |_, played| played * decibels(coupling));
        prop_assert!(longest(&taken) < MAX_TAKEN_FRAMES, "{} frames in a row", longest(&taken));
    }

    #[test]
    fn a_user_who_talks_over_the_echo_is_heard(
        seed in any::<u64>(), coupling in -45.0_f32..-18.0, delay in 0_usize..32,
    ) {
        let mut gate = EchoGate::default();
        listen(&mut gate, &speech(seed, 250), delay, |_, played| played * decibels(coupling));
        let user = speech(seed ^ 2, 125);
        let taken = listen(&mut gate, &speech(seed ^ 3, 125), delay, |at, played| user[at] + played * decibels(coupling));
        // Chance makes it rise and fall with the echo for a while; three frames are an onset.
        prop_assert!(count(&taken[..62]) >= 10, "a sixth of a second in the first one: {}", count(&taken[..62]));
    }
}
