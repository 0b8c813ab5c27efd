//! The real engines on recordings of people and on each other, where `scripts/speech` has installed them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use quarterdeck_contracts::{HEARD_RATE, Sentence, SpeechErrorKind, SpeechToText, TextToSpeech, Utterance};
use quarterdeck_local_speech::{
    Component, Installed, Moonshine, MoonshineSettings, Synthesiser, SynthesiserSettings, Voice, installed,
    to_heard_rate,
};
use quarterdeck_testkit::real_speech::{BECKETT, RealSpeech, TWO_CITIES, espeak, words_right};

/// Spelt as Whisper spells.
const SENTENCES: [&str; 5] = [
    "The ship left the harbor on Tuesday morning, and the captain asked for two more days.",
    "Your appointment is on the third of March at half past nine.",
    "I have found four records about the second expedition.",
    "Shall I send the message to your sister now?",
    "The weather in Paris is cold and cloudy today, with a little rain in the evening.",
];

struct Engines {
    speech: RealSpeech,
    installed: Installed,
}

#[expect(clippy::disallowed_methods, reason = "the engines are installed on some machines only")]
fn engines() -> Option<Engines> {
    let speech = RealSpeech::find()?;
    let installed = installed(&speech.engines(), std::env::var_os("PATH").as_deref());
    Some(Engines { speech, installed })
}

impl Engines {
    fn moonshine(&self, component: Component, settings: MoonshineSettings) -> Moonshine {
        let folder = component.find(&self.speech.engines()).unwrap();
        Moonshine::load(&folder, settings).unwrap()
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
            let samples = engines.speech.recording(file);
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
async fn moonshine_hears_what_is_said_after_a_silence() {
    let Some(engines) = engines() else { return };
    let moonshine = engines.moonshine(Component::MoonshineTiny, MoonshineSettings::default());
    let spoken = espeak("Tell me more.", "en-us");
    for silence in [0, 500, 750, 1_000] {
        let before = vec![0; silence * HEARD_RATE as usize / 1_000];
        let after = vec![0; HEARD_RATE as usize * 6 / 10];
        let heard = moonshine.transcribe(utterance([before, spoken.clone(), after].concat())).await.unwrap();
        assert!(words_right("tell me more", &heard.text) == 1., "after {silence} ms: {heard:?}");
    }
}

#[tokio::test]
async fn moonshine_refuses_what_it_cannot_do() {
    let Some(engines) = engines() else { return };
    let settings =
        MoonshineSettings { max_transcriptions: 1, max_waiting: 0, ..MoonshineSettings::default() };
    let moonshine = engines.moonshine(Component::MoonshineTiny, settings);
    let kind = async |utterance| moonshine.transcribe(utterance).await.unwrap_err().kind;
    assert_eq!(kind(utterance(vec![0; 16_000 * 301])).await, SpeechErrorKind::Refused);
    let samples: Arc<[i16]> = engines.speech.recording("beckett.wav").into();
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
    let long: Arc<[i16]> = engines.speech.recording("two_cities.wav").into();
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
            understood.push(engines.speech.whisper(&speak(&engine, sentence).await));
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
