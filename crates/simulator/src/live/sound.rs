//! Synthesised speech, or tones or silence instead of it.

use std::f32::consts::TAU;
use std::future::Future;
use std::pin::Pin;

/// Of what the model says, in samples per second.
pub(super) const SAMPLE_RATE: usize = 24_000;
/// Two minutes. The rest is in the transcript alone.
const MAX_SAMPLES: usize = 120 * SAMPLE_RATE;
/// Of tones, of 32,768.
const AMPLITUDE: f32 = 6_000.0;
/// Fade-in and fade-out of a tone, so that it does not click.
const FADE_SAMPLES: usize = SAMPLE_RATE / 100;

/// Synthesises speech. The simulator starts no program itself; its caller may provide a voice.
pub trait Voice: Send + Sync {
    /// The text as 16-bit mono samples at 24 kHz; nothing when that is not possible, and then a substitute is sent.
    fn speak(&self, text: &str) -> SpeechFuture;
}

/// Resolves to samples.
pub type SpeechFuture = Pin<Box<dyn Future<Output = Option<Vec<i16>>> + Send>>;

/// What is sent where nothing speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Substitute {
    /// A tone for each word: tests of clients can tell it from silence, and hear where words begin.
    #[default]
    Tones,
    /// Silence, as long as the words would take: for users, who would hear a hum. What is timed by the audio stays
    /// timed by it.
    Silence,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sound {
    pub(super) samples: Vec<i16>,
    /// The words, each with the sample at which it begins. Together they are the text.
    pub(super) words: Vec<(usize, String)>,
}

impl Sound {
    pub(super) fn substitute(text: &str, kind: Substitute) -> Self {
        let mut sound = Self::tones(text);
        if kind == Substitute::Silence {
            sound.samples.fill(0);
        }
        sound
    }

    /// A tone for each word, as long as the word would take, and a pause after it.
    fn tones(text: &str) -> Self {
        let mut samples = Vec::new();
        let mut words = Vec::new();
        for word in split(text) {
            words.push((samples.len(), word.to_owned()));
            if samples.len() < MAX_SAMPLES {
                tone(&mut samples, word);
            }
        }
        samples.truncate(MAX_SAMPLES);
        Self { samples, words }
    }

    /// What a voice has made of it. Where each word begins is guessed from how long the words are.
    pub(super) fn spoken(text: &str, mut samples: Vec<i16>) -> Self {
        samples.truncate(MAX_SAMPLES);
        let all = split(text);
        let total: usize = all.iter().map(|word| weight(word)).sum();
        let mut before = 0;
        let words = all.into_iter().map(|word| {
            let begins = samples.len() * before / total.max(1);
            before += weight(word);
            (begins, word.to_owned())
        });
        let words = words.collect();
        Self { samples, words }
    }
}

/// Words with the white space after them.
fn split(text: &str) -> Vec<&str> {
    text.split_inclusive(char::is_whitespace).collect()
}

/// How long a word takes, in pieces of 20 ms: about as fast as speech.
fn weight(word: &str) -> usize {
    let letters = word.chars().filter(|letter| letter.is_alphanumeric()).count();
    let stop = if word.trim_end().ends_with(['.', '!', '?', ':', ';']) { 10 } else { 0 };
    5 + 3 * letters.min(20) + stop
}

fn tone(samples: &mut Vec<i16>, word: &str) {
    let letters = word.chars().filter(|letter| letter.is_alphanumeric()).count().min(20);
    let pause = (weight(word) - 3 * letters) * SAMPLE_RATE / 50;
    let length = 3 * letters * SAMPLE_RATE / 50;
    // Words sound different, and the same word always sounds the same.
    let seed = word.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let pitch = 160.0 + (seed % 120) as f32;
    for nth in 0..length {
        let fade = (nth.min(length - nth) as f32 / FADE_SAMPLES as f32).min(1.0);
        let angle = TAU * pitch * nth as f32 / SAMPLE_RATE as f32;
        let wave = angle.sin() + 0.3 * (2.0 * angle).sin();
        samples.push((AMPLITUDE * fade * wave / 1.3) as i16);
    }
    samples.resize(samples.len() + pause, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_sound_are_its_text() {
        let text = "It is raining, in Oslo.  Take a coat!";
        for sound in [Sound::tones(text), Sound::spoken(text, vec![1; 48_000])] {
            let words: String = sound.words.iter().map(|(_, word)| word.as_str()).collect();
            assert_eq!(words, text);
            let begins: Vec<_> = sound.words.iter().map(|(begin, _)| *begin).collect();
            assert!(begins.is_sorted() && begins.last().is_some_and(|last| *last < sound.samples.len()));
        }
        assert!(Sound::tones("").samples.is_empty());
    }

    #[test]
    fn tones_are_loud_where_words_are_and_quiet_between_them() {
        let sound = Sound::tones("hello there");
        let loud = |samples: &[i16]| samples.iter().any(|sample| sample.unsigned_abs() > 2_000);
        let second = sound.words[1].0;
        assert!(loud(&sound.samples[..second / 2]));
        assert!(!loud(&sound.samples[second - SAMPLE_RATE / 20..second]));
        assert!(loud(&sound.samples[second..]));
    }

    #[test]
    fn silence_takes_as_long_as_tones_and_makes_no_sound() {
        let text = "It is raining, in Oslo.";
        let (tones, silence) = (Sound::tones(text), Sound::substitute(text, Substitute::Silence));
        assert_eq!((silence.samples.len(), &silence.words), (tones.samples.len(), &tones.words));
        assert!(silence.samples.iter().all(|sample| *sample == 0));
    }

    #[test]
    fn a_book_is_not_read_out_to_the_end() {
        assert_eq!(Sound::tones(&"word ".repeat(100_000)).samples.len(), MAX_SAMPLES);
    }
}
