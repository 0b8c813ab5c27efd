//! The real engines on recordings of people and on each other, where `scripts/speech` has installed them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use quarterdeck_contracts::{
    HEARD_RATE, SPOKEN_RATE, Sentence, SpeechErrorKind, SpeechToText, TextToSpeech, Utterance,
};
use quarterdeck_local_speech::{
    Component, Installed, Moonshine, MoonshineSettings, Synthesiser, SynthesiserSettings, Voice, installed,
    to_heard_rate,
};

use crate::words::words_right;

const BECKETT: &str = "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better.";
const TWO_CITIES: &str = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of \
    foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of light, it was the season of \
    darkness, it was the spring of hope, it was the winter of despair, we had everything before us, we had nothing before us, \
    we were all going direct to heaven, we were all going direct the other way. In short, the period was so far like the \
    present period, that some of its noisiest authorities insisted on its being received, for good or for evil, in the \
    superlative degree of comparison only.";
/// Spelt as Whisper spells.
const SENTENCES: [&str; 5] = [
    "The ship left the harbor on Tuesday morning, and the captain asked for two more days.",
    "Your appointment is on the third of March at half past nine.",
    "I have found four records about the second expedition.",
    "Shall I send the message to your sister now?",
    "The weather in Paris is cold and cloudy today, with a little rain in the evening.",
];

struct Engines {
    folder: PathBuf,
    installed: Installed,
}

#[expect(clippy::print_stderr, reason = "the reader of the result must know that nothing was tried")]
#[expect(clippy::disallowed_methods, reason = "the engines are installed on some machines only")]
fn engines() -> Option<Engines> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/speech");
    if !folder.join(".holds").exists() {
        let required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
        assert!(!required, "speech engines are required here; `scripts/speech` installs them");
        eprintln!("SKIPPED: there are no speech engines; `scripts/speech` installs them");
        return None;
    }
    let installed = installed(&folder.join("cache/quarterdeck/speech"), std::env::var_os("PATH").as_deref());
    Some(Engines { folder, installed })
}

impl Engines {
    fn moonshine(&self, component: Component, settings: MoonshineSettings) -> Moonshine {
        let folder = component.find(&self.folder.join("cache/quarterdeck/speech")).unwrap();
        Moonshine::load(&folder, settings).unwrap()
    }

    /// A recording at 16 kHz. One of the two has three times as many samples.
    fn recording(&self, name: &str) -> Vec<i16> {
        let file = fs::read(self.folder.join("recordings").join(name)).unwrap();
        let rate = u32::from_le_bytes(file[24..28].try_into().unwrap());
        let samples = file[44..].as_chunks::<2>().0.iter().map(|sample| i16::from_le_bytes(*sample));
        let group = (rate / HEARD_RATE) as usize;
        let samples: Vec<_> = samples.map(i32::from).collect();
        samples
            .chunks_exact(group)
            .map(|group| (group.iter().sum::<i32>() / group.len() as i32) as i16)
            .collect()
    }

    /// What Whisper understands.
    fn whisper(&self, samples: &[i16]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("speech.wav");
        let bytes = 2 * samples.len() as u32;
        let mut file =
            [&b"RIFF"[..], &(bytes + 36).to_le_bytes(), b"WAVEfmt \x10\0\0\0\x01\0\x01\0"].concat();
        file.extend([SPOKEN_RATE.to_le_bytes(), (2 * SPOKEN_RATE).to_le_bytes()].concat());
        file.extend([&b"\x02\0\x10\0data"[..], &bytes.to_le_bytes()].concat());
        file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        fs::write(&path, file).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/speech/whisper.py");
        let mut command = Command::new(self.folder.join("whisper/bin/python"));
        let output = command.arg(script).arg(self.folder.join("whisper-tiny.en")).arg(path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn utterance(samples: impl Into<Arc<[i16]>>) -> Utterance {
    Utterance { samples: samples.into(), language: Some("en-GB".into()) }
}

async fn speak(engine: &Synthesiser, text: &str) -> Vec<i16> {
    let mut stream = engine.speak(Sentence { text: text.into(), language: Some("en".into()) });
    let mut samples = Vec::new();
    while let Some(piece) = stream.next().await {
        samples.extend(piece.unwrap());
    }
    samples
}

#[tokio::test]
async fn moonshine_understands_people() {
    let Some(engines) = engines() else { return };
    for (component, name) in [
        (Component::MoonshineBase, "local/moonshine-base"),
        (Component::MoonshineTiny, "local/moonshine-tiny"),
    ] {
        // Words are judged here, not speed: the machine may be busy with other tests.
        let settings =
            MoonshineSettings { timeout: Duration::from_secs(300), ..MoonshineSettings::default() };
        let moonshine = engines.moonshine(component, settings);
        assert_eq!(moonshine.name(), name);
        for (file, text) in [("beckett.wav", BECKETT), ("two_cities.wav", TWO_CITIES)] {
            let samples = engines.recording(file);
            let (seconds, begin) = (samples.len() as f64 / f64::from(HEARD_RATE), Instant::now());
            let heard = moonshine.transcribe(utterance(samples)).await.unwrap();
            let right = words_right(text, &heard.text);
            figure(&format!(
                "{name} {file}: {:.1} % of words, confidence {:.2}, real-time factor {:.2}",
                100. * right,
                heard.confidence.unwrap_or_default(),
                begin.elapsed().as_secs_f64() / seconds
            ));
            assert!(right >= 0.9, "{name} {file}: {right} {}", heard.text);
            assert!(heard.confidence.is_some_and(|confidence| confidence > 0.7), "{heard:?}");
        }
    }
}

#[tokio::test]
async fn moonshine_hears_a_short_word_and_no_words_in_silence() {
    let Some(engines) = engines() else { return };
    let moonshine = engines.moonshine(Component::MoonshineBase, MoonshineSettings::default());
    // The last word of "Fail better.", and a little silence.
    let espeak = engines.installed.speaks.iter().find(|voice| matches!(voice, Voice::Espeak(_))).unwrap();
    let voice = Synthesiser::new(espeak.clone(), SynthesiserSettings::default());
    let spoken = speak(&voice, "Yes.").await;
    let samples = to_heard_rate(&spoken);
    assert!(samples.len() < HEARD_RATE as usize, "shorter than a second");
    let heard = moonshine.transcribe(utterance(samples)).await.unwrap();
    assert!(words_right("yes", &heard.text) == 1., "{heard:?}");
    let silence = moonshine.transcribe(utterance(vec![0; 8_000])).await.unwrap();
    assert!(silence.text.split_whitespace().count() <= 2, "{silence:?}");
    assert!(moonshine.transcribe(utterance(vec![])).await.is_ok());
    let german = Utterance { language: Some("de".into()), ..utterance(to_heard_rate(&spoken)) };
    let heard = moonshine.transcribe(german).await.unwrap();
    assert!(words_right("yes", &heard.text) == 1., "a German browser whose user speaks English: {heard:?}");
}

#[tokio::test]
async fn moonshine_refuses_what_it_cannot_do() {
    let Some(engines) = engines() else { return };
    let settings =
        MoonshineSettings { max_transcriptions: 1, max_waiting: 0, ..MoonshineSettings::default() };
    let moonshine = engines.moonshine(Component::MoonshineTiny, settings);
    let kind = async |utterance| moonshine.transcribe(utterance).await.unwrap_err().kind;
    assert_eq!(kind(utterance(vec![0; 16_000 * 301])).await, SpeechErrorKind::Refused);
    let samples: Arc<[i16]> = engines.recording("beckett.wav").into();
    let (first, second) = tokio::join!(
        moonshine.transcribe(utterance(samples.clone())),
        moonshine.transcribe(utterance(samples.clone()))
    );
    assert!(first.is_ok(), "{first:?}");
    assert_eq!(second.unwrap_err().kind, SpeechErrorKind::Busy);
}

#[tokio::test]
async fn an_utterance_that_is_given_up_or_too_slow_makes_room_for_the_next() {
    let Some(engines) = engines() else { return };
    let settings = MoonshineSettings {
        max_transcriptions: 1,
        timeout: Duration::from_millis(20),
        queue_timeout: Duration::from_secs(60),
        ..MoonshineSettings::default()
    };
    let moonshine = engines.moonshine(Component::MoonshineTiny, settings);
    let long: Arc<[i16]> = engines.recording("two_cities.wav").into();
    let slow = moonshine.transcribe(utterance(long.clone())).await.unwrap_err();
    assert_eq!(slow.kind, SpeechErrorKind::TimedOut);
    let given_up = tokio::time::timeout(Duration::ZERO, moonshine.transcribe(utterance(long))).await;
    assert!(given_up.is_err(), "{given_up:?}");
    // The next one gets the permit once the thread has stopped.
    let next = moonshine.transcribe(utterance(vec![0; 160])).await;
    assert!(!matches!(next, Err(error) if error.kind == SpeechErrorKind::Busy));
}

#[tokio::test]
async fn whisper_understands_every_voice() {
    let Some(engines) = engines() else { return };
    assert!(engines.installed.speaks.iter().any(|voice| matches!(voice, Voice::Piper(_))));
    assert!(engines.installed.speaks.iter().any(|voice| matches!(voice, Voice::Espeak(_))));
    for voice in &engines.installed.speaks {
        let engine = Synthesiser::new(voice.clone(), SynthesiserSettings::default());
        let begin = Instant::now();
        engine.warm_up().await.unwrap();
        let (warm, begin) = (begin.elapsed(), Instant::now());
        let mut stream = engine.speak(Sentence { text: "Just a moment, please.".into(), language: None });
        stream.next().await.unwrap().unwrap();
        let first = begin.elapsed();
        drop(stream);
        let mut understood = Vec::new();
        for sentence in SENTENCES {
            understood.push(engines.whisper(&speak(&engine, sentence).await));
        }
        let understood = understood.join(" ");
        let right = words_right(&SENTENCES.join(" "), &understood);
        figure(&format!(
            "{}: {:.0} % of words, ready after {} ms, first audio after {} ms",
            engine.name(),
            100. * right,
            warm.as_millis(),
            first.as_millis()
        ));
        assert!(right >= 0.8, "{}: {understood}", engine.name());
    }
}

#[expect(clippy::print_stderr, reason = "figures for a run by hand")]
fn figure(text: &str) {
    eprintln!("figure: {text}");
}
