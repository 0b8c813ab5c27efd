//! The whole path with the engines of this machine, which `scripts/speech` installs: a person or espeak-ng speaks, Moonshine
//! hears, records answer, a voice speaks, and Whisper, which is not ours, judges what was said.

mod confirmation;
mod headset;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use quarterdeck_testkit::real_speech::{BECKETT, RealSpeech, TWO_CITIES, espeak, words_right};
use quarterdeck_testkit::{Tree, tree};
use serde_json::json;

use self::headset::Headset;
use super::page::Page;
use super::pipeline::cookie;
use crate::serve::{ANYWHERE, Server, command};

/// How long a user waits for an answer here: the engines share the machine with other tests.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
const MAX_GREETINGS: usize = 4;
/// How much of what is said must be understood. Of what espeak-ng says, Whisper does not understand foreign names.
const MIN_WORDS_RIGHT: f64 = 0.8;
const MIN_ESPEAK_WORDS_RIGHT: f64 = 0.7;

/// A server that hears and speaks with these engines.
fn serve(speech: &RealSpeech, data: &Path, voice: &str) -> Command {
    let mut command = command(data, ANYWHERE);
    command
        .env("XDG_CACHE_HOME", speech.cache())
        .env("QUARTERDECK_VOICE__PROVIDER", "pipeline")
        .env("QUARTERDECK_SPEECH__TTS__VOICE", voice)
        // Words are judged here, not speed.
        .env("QUARTERDECK_SPEECH__STT__TIMEOUT_SECONDS", "30");
    command
}

fn begin(command: &mut Command) -> Server {
    let mut server = Server::begin(command);
    drop(server.collect_log());
    server
}

async fn dial(server: &Server) -> Headset {
    let page = Page::dial(server.address, cookie(server), json!({ "locale": "en" })).await;
    assert_eq!(page.ready["provider"], "pipeline/rehearsal/built-in", "{:?}", server.printed);
    Headset::new(page)
}

/// What was said to the user: the words, and how they sounded.
struct Spoken {
    words: String,
    sound: Vec<i16>,
}

impl Spoken {
    fn take(user: &mut Headset) -> Self {
        let spoken = Self { words: user.answer(), sound: user.heard.clone() };
        user.forget();
        spoken
    }
}

/// Calls, and greets until a voice answers: on a busy machine Piper takes longer to start than a user waits.
async fn dial_and_greet(server: &Server) -> (Headset, Spoken) {
    for _ in 0..MAX_GREETINGS {
        let mut user = dial(server).await;
        user.page.send_text("Hello").await;
        let is_over = |user: &Headset| {
            let is_complete = !user.since_interruption("turn_complete").is_empty();
            is_complete && !user.is_playing()
        };
        user.wait_until("the greeting", ANSWER_TIMEOUT, is_over).await;
        if !user.heard.is_empty() {
            let greeting = Spoken::take(&mut user);
            return (user, greeting);
        }
    }
    panic!("the voice does not start");
}

/// Waits for an answer with these words, until it was played.
async fn hear_answer(user: &mut Headset, words: &str) {
    let is_over = |user: &Headset| {
        let is_complete = user.since_interruption("turn_complete").len();
        user.answer().contains(words) && is_complete > 0 && !user.is_playing()
    };
    user.wait_until(words, ANSWER_TIMEOUT, is_over).await;
}

/// Whisper must understand that part of what was said.
fn judge(speech: &RealSpeech, spoken: &[Spoken], min_right: f64) {
    let words = spoken.iter().map(|spoken| spoken.words.as_str()).collect::<Vec<_>>().join(" ");
    let understood: Vec<String> = spoken.iter().map(|spoken| speech.whisper(&spoken.sound)).collect();
    let right = words_right(&words, &understood.join(" "));
    figure(&format!("{:.0} % of {words:?}", 100. * right));
    assert!(right >= min_right, "{right}: {words:?} was understood as {understood:?}");
}

fn has_called(user: &Headset, tool: &str) -> bool {
    let results = user.page.results();
    assert!(results.iter().any(|result| result == "ok"), "{results:?}");
    user.page.messages.iter().any(|it| it["type"] == "tool_call" && it["name"] == tool)
}

#[tokio::test(flavor = "multi_thread")]
async fn espeak_asks_moonshine_hears_and_the_records_answer_aloud() {
    let Some(speech) = RealSpeech::find() else { return };
    for (voice, min_right) in [("piper", MIN_WORDS_RIGHT), ("espeak-ng", MIN_ESPEAK_WORDS_RIGHT)] {
        let data = tempfile::tempdir().unwrap();
        let server = begin(&mut serve(&speech, data.path(), voice));
        let (mut user, greeting) = dial_and_greet(&server).await;
        user.wait(Duration::from_millis(500)).await;
        user.say(&espeak("Who designed the Fram?", "en-us"));
        hear_answer(&mut user, "Colin Archer").await;
        let understood = user.understood().to_lowercase();
        assert!(understood.contains("who designed") && understood.contains("fram"), "{understood}");
        assert!(has_called(&user, "kb_search"), "{:?}", user.page.messages);
        judge(&speech, &[greeting, Spoken::take(&mut user)], min_right);
    }
}

/// Two records about what is recorded, and one about something else.
fn records() -> Tree {
    tree(
        r#"
        //- studio/doc/two-cities-opening.md
        ---
        tags: [novels, openings]
        last_updated: 2024-05-02
        source_type: note
        sources: ["Our own note"]
        ---
        # The opening of A Tale of Two Cities

        Charles Dickens opens his novel about London and Paris with a chain of opposites. The best and the worst of times,
        wisdom and foolishness, belief and incredulity, light and darkness, hope and despair stand side by side. The sentence
        ends with the noisiest authorities of the period and a superlative degree of comparison.

        //- studio/doc/beckett-on-failing.md
        ---
        tags: [prose, failing]
        last_updated: 2024-05-02
        source_type: note
        sources: ["Our own note"]
        ---
        # Beckett on failing

        Samuel Beckett wrote the lines about those who have tried and failed late in his life. The speaker expects to fail
        again, and hopes for nothing more than to fail better. The lines are often quoted as advice, which they were not.

        //- studio/doc/lighthouse-keeping.md
        ---
        tags: [harbours]
        last_updated: 2024-05-02
        source_type: note
        sources: ["Our own note"]
        ---
        # Keeping a lighthouse

        The keeper trims the lamp at dusk and writes down every ship.
        "#,
    )
}

/// What is done about the pauses of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pauses {
    Kept,
    Short,
}

/// A person recites, the record about it is found and named, and its text is spoken when the user asks for more.
async fn recite(recording: &str, pauses: Pauses, said: &str, title: &str, quote: &str) {
    let Some(speech) = RealSpeech::find() else { return };
    let (data, records) = (tempfile::tempdir().unwrap(), records());
    let mut command = serve(&speech, data.path(), "piper");
    // The longer one is a single utterance of 44 s, for which the better model takes half a minute of a busy processor.
    command.env("QUARTERDECK_SPEECH__STT__MODEL", "moonshine-tiny");
    let server = begin(command.arg("--kb").arg(records.path()));
    let (mut user, _) = dial_and_greet(&server).await;
    user.wait(Duration::from_millis(500)).await;
    let sound = speech.recording(recording);
    user.say(&if pauses == Pauses::Short { with_short_pauses(&sound) } else { sound });
    hear_answer(&mut user, title).await;
    let right = words_right(said, &user.understood());
    figure(&format!("{recording}: {:.0} % of the words of the recording were heard", 100. * right));
    assert!(right >= MIN_WORDS_RIGHT, "{right}: {:?}", user.understood());
    assert!(has_called(&user, "kb_search"), "{:?}", user.page.messages);
    let answer = Spoken::take(&mut user);
    user.say(&espeak("Tell me more.", "en-us"));
    hear_answer(&mut user, quote).await;
    assert!(has_called(&user, "kb_get"), "{:?}", user.page.messages);
    judge(&speech, &[answer], MIN_WORDS_RIGHT);
    judge(&speech, &[Spoken::take(&mut user)], MIN_WORDS_RIGHT);
}

/// Who recites pauses for a second after each sentence, which ends an utterance for every ear; who asks does not. Of each pause
/// a third of a second is left, at its two ends, where soft sounds belong to words.
fn with_short_pauses(sound: &[i16]) -> Vec<i16> {
    const FRAME: usize = 320;
    const KEPT_FRAMES: usize = 8;
    let loudness = |frame: &[i16]| frame.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>().sqrt();
    let frames: Vec<&[i16]> = sound.chunks(FRAME).collect();
    let loudest = frames.iter().map(|frame| loudness(frame)).fold(0.0, f64::max);
    let is_quiet = |frame: &&[i16]| loudness(frame) < loudest / 4.0;
    let mut spoken = Vec::new();
    for run in frames.chunk_by(|one, next| is_quiet(one) == is_quiet(next)) {
        let is_long = is_quiet(&run[0]) && run.len() > 2 * KEPT_FRAMES;
        let kept = if is_long {
            [&run[..KEPT_FRAMES], &run[run.len() - KEPT_FRAMES..]].concat()
        } else {
            run.to_vec()
        };
        spoken.extend(kept.concat());
    }
    spoken
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_passage_of_dickens_is_heard_and_answered_from_its_record() {
    let title = "The opening of A Tale of Two Cities";
    recite("two_cities.wav", Pauses::Kept, TWO_CITIES, title, "a chain of opposites").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_passage_of_beckett_is_heard_and_answered_from_its_record() {
    let quote = "hopes for nothing more than to fail better";
    recite("beckett.wav", Pauses::Short, BECKETT, "Beckett on failing", quote).await;
}

#[expect(clippy::print_stderr, reason = "figures for a run by hand")]
fn figure(text: &str) {
    eprintln!("figure: {text}");
}
