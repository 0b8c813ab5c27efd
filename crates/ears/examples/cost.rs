//! What an ear costs: microseconds for 20 ms of audio, by what is in it.
//!
//!     cargo run --release -p quarterdeck-ears --example cost

use std::time::{Duration, Instant};

use quarterdeck_contracts::Audio;
use quarterdeck_ears::Ear;

const FRAMES: u32 = 20_000;

fn main() {
    let mut seed = 1_u64;
    let mut noise = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 52) as i16
    };
    let frame =
        |samples: Vec<i16>| -> Vec<u8> { samples.iter().flat_map(|sample| sample.to_le_bytes()).collect() };
    let silent = frame(vec![3; 320]);
    let loud = frame((0..320).map(|_| noise()).collect());
    let answer = frame((0..480).map(|_| noise()).collect());
    report("below the energy floor", &mut Ear::default(), &silent, None);
    report("sound", &mut Ear::default(), &loud, None);
    report("sound while an answer is played", &mut Ear::default(), &loud, Some(&answer));
}

#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
fn report(what: &str, ear: &mut Ear, heard: &[u8], answer: Option<&[u8]>) {
    let mut played = Duration::ZERO;
    let since = Instant::now();
    for _ in 0..FRAMES {
        if let Some(answer) = answer {
            ear.add_playback(&Audio::Pcm(answer.into()));
            played += Duration::from_millis(20);
        }
        ear.hear(&Audio::Pcm(heard.into()), answer.map(|_| played), |_| {});
    }
    println!("{what}: {:.1} µs", since.elapsed().as_secs_f64() * 1e6 / f64::from(FRAMES));
}
