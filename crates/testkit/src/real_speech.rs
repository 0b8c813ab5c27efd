//! Real speech, which `scripts/speech` installs: engines, recordings of people, and Whisper to judge voices by.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use quarterdeck_audio::{WavReader, wav_file};
use quarterdeck_contracts::{HEARD_RATE, SPOKEN_RATE};

/// What is said in `beckett.wav`.
pub const BECKETT: &str = "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better.";
/// What is said in `two_cities.wav`.
pub const TWO_CITIES: &str = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of \
    foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of light, it was the season of \
    darkness, it was the spring of hope, it was the winter of despair, we had everything before us, we had nothing before us, \
    we were all going direct to heaven, we were all going direct the other way. In short, the period was so far like the \
    present period, that some of its noisiest authorities insisted on its being received, for good or for evil, in the \
    superlative degree of comparison only.";

/// The folder of what is installed.
#[derive(Debug)]
pub struct RealSpeech {
    folder: PathBuf,
}

/// A word that Whisper has understood, and when it was said, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedWord {
    pub begin: f32,
    pub end: f32,
    pub text: String,
}

impl RealSpeech {
    /// Finds it, or says that nothing was tried.
    ///
    /// # Panics
    ///
    /// Where `QUARTERDECK_REQUIRE_CLIENTS` is 1 and it is not there.
    #[expect(clippy::disallowed_methods, reason = "a switch of the test scripts")]
    #[expect(clippy::print_stderr, reason = "the reader of the result must know that nothing was tried")]
    pub fn find() -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/speech");
        if folder.join(".holds").exists() {
            return folder.canonicalize().ok().map(|folder| Self { folder });
        }
        let required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
        assert!(!required, "speech engines are required here; `scripts/speech` installs them");
        eprintln!("SKIPPED: there are no speech engines; `scripts/speech` installs them");
        None
    }

    /// What `XDG_CACHE_HOME` must be, so that Quarterdeck finds the engines.
    pub fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    /// The folder of the engines in the cache.
    pub fn engines(&self) -> PathBuf {
        self.cache().join("quarterdeck/speech")
    }

    /// A recording of a person at 16 kHz.
    pub fn recording(&self, name: &str) -> Vec<i16> {
        let file = fs::read(self.folder.join("recordings").join(name)).expect("the recording was installed");
        read_wav(&file)
    }

    /// What Whisper understands of speech at 24 kHz.
    pub fn whisper(&self, samples: &[i16]) -> String {
        self.run_whisper(samples, &[]).trim().to_owned()
    }

    /// The same, word by word.
    pub fn whisper_words(&self, samples: &[i16]) -> Vec<TimedWord> {
        let printed = self.run_whisper(samples, &["--words"]);
        let word = |line: &str| {
            let mut parts = line.splitn(3, ' ');
            let (begin, end) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some(TimedWord { begin, end, text: parts.next()?.to_owned() })
        };
        printed.lines().filter_map(word).collect()
    }

    fn run_whisper(&self, samples: &[i16], options: &[&str]) -> String {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let path = folder.path().join("speech.wav");
        fs::write(&path, wav_file(samples, SPOKEN_RATE)).expect("it can be written to");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/speech/whisper.py");
        let mut command = Command::new(self.folder.join("whisper/bin/python"));
        command.arg(script).arg(self.folder.join("whisper-tiny.en")).arg(path).args(options);
        String::from_utf8(run(&mut command).stdout).expect("Python prints UTF-8")
    }
}

/// What espeak-ng makes of a text, at 16 kHz. `voice` is one of its own, such as `en-us` or `en+f3`.
pub fn espeak(text: &str, voice: &str) -> Vec<i16> {
    let output = run(Command::new("espeak-ng").args(["-v", voice, "-s", "150", "--stdout", text]));
    read_wav(&output.stdout)
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the program was installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The samples of a WAV file at 16 kHz.
fn read_wav(file: &[u8]) -> Vec<i16> {
    let mut reader = WavReader::new(HEARD_RATE);
    let read = reader.feed(file).and_then(|samples| Ok([samples, reader.finish()?].concat()));
    read.expect("what is installed writes WAV files")
}

/// The part of the words of `said` that are right in `understood`, each wrong, missing or invented word counting against it.
pub fn words_right(said: &str, understood: &str) -> f64 {
    let (said, understood) = (words(said), words(understood));
    let mut row: Vec<usize> = (0..=understood.len()).collect();
    for (index, word) in said.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in understood.iter().enumerate() {
            let changed = diagonal + usize::from(word != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    1. - row[understood.len()] as f64 / said.len() as f64
}

/// Words in lower case. Numbers are written in one way: a recogniser puts commas into them, and a range is spoken with “to”.
fn words(text: &str) -> Vec<String> {
    let mut plain = text.to_lowercase().replace('–', " to ");
    while let Some(comma) = digit_comma(&plain) {
        plain.remove(comma);
    }
    let plain = plain.replace(|c: char| !c.is_alphanumeric() && c != '\'', " ");
    plain.split_whitespace().map(str::to_owned).collect()
}

/// Where a comma stands between two digits.
fn digit_comma(text: &str) -> Option<usize> {
    text.as_bytes()
        .windows(3)
        .position(|window| window[0].is_ascii_digit() && window[1] == b',' && window[2].is_ascii_digit())
        .map(|place| place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_the_same_however_they_are_written() {
        assert_eq!(words_right("Built 1891–1892.", "built 1,891 to 1,892"), 1.);
    }

    #[test]
    fn wrong_missing_and_invented_words_count() {
        assert_eq!(words_right("Fail better.", "fail better"), 1.);
        assert_eq!(words_right("one two three four", "one too three four"), 0.75);
        assert_eq!(words_right("one two three four", "one three four"), 0.75);
        assert_eq!(words_right("one two three four", "one two and three four"), 0.75);
        assert_eq!(words_right("one two", ""), 0.);
    }
}
