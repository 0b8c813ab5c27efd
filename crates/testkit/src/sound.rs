//! Sound that voice activity detection takes for speech, made without a recording: a voice with a melody,
//! vowels that change, consonants and short gaps.

use std::f32::consts::{PI, TAU};
use std::time::Duration;

/// The first three formants of some vowels, in Hz.
const VOWELS: [[f32; 3]; 5] = [
    [730.0, 1_090.0, 2_440.0],
    [270.0, 2_290.0, 3_010.0],
    [530.0, 1_840.0, 2_480.0],
    [570.0, 840.0, 2_410.0],
    [300.0, 870.0, 2_240.0],
];

/// A resonance of the mouth.
struct Formant {
    before: [f32; 2],
}

impl Formant {
    fn filter(&mut self, input: f32, frequency: f32, width: f32, rate: f32) -> f32 {
        let radius = (-PI * width / rate).exp();
        let turn = 2.0 * radius * (TAU * frequency / rate).cos();
        let output = (1.0 - radius) * input + turn * self.before[0] - radius * radius * self.before[1];
        self.before = [output, self.before[0]];
        output
    }
}

/// Noise from -1 to 1.
pub struct Noise(pub u64);

impl Noise {
    pub fn sample(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Syllables at this sample rate, this loud at their peaks, from 0 to 1.
pub fn speech(time: Duration, loudness: f32, rate: usize) -> Vec<i16> {
    let samples = (time.as_secs_f32() * rate as f32) as usize;
    let per_second = rate as f32;
    let mut noise = Noise(7);
    let mut formants = [0, 1, 2].map(|_| Formant { before: [0.0; 2] });
    let mut phase = 0.0_f32;
    let mut sound: Vec<f32> = (0..samples)
        .map(|at| {
            let now = at as f32 / per_second;
            // Four syllables and a half each second, the pitch falling and rising over a sentence.
            let syllable = now * 4.5 + 0.25;
            let place = syllable.fract();
            let pitch = 125.0 + 25.0 * (now * 2.1).sin() + 8.0 * (now * 9.0).sin();
            phase = (phase + pitch / per_second).fract();
            // A glottal pulse: a slow opening and a sharp closing.
            let pulse = if phase < 0.6 { phase / 0.6 } else { (phase - 1.0) / 0.4 };
            let is_consonant = place < 0.15;
            let source = if is_consonant { 0.25 * noise.sample() } else { pulse + 0.02 * noise.sample() };
            let vowel = VOWELS[(syllable as usize * 3) % VOWELS.len()];
            let next = VOWELS[(syllable as usize * 3 + 3) % VOWELS.len()];
            let voice: f32 = formants
                .iter_mut()
                .enumerate()
                .map(|(number, formant)| {
                    let frequency = vowel[number] + (next[number] - vowel[number]) * place;
                    formant.filter(source, frequency, 80.0 + 40.0 * number as f32, per_second)
                })
                .sum();
            voice * (0.3 + 0.7 * (PI * place).sin())
        })
        .collect();
    let peak = sound.iter().fold(1e-6_f32, |peak, sample| peak.max(sample.abs()));
    sound.iter_mut().for_each(|sample| *sample *= loudness / peak);
    sound.iter().map(|sample| (sample * 32_767.0) as i16).collect()
}
