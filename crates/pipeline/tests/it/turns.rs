//! Turns that go well: heard, answered, spoken.

use std::time::Duration;

use expect_test::expect;
use quarterdeck_contracts::{LiveInput, LiveTurn, Speaker};
use tokio::time::Instant;

use super::harness::{Talk, hears, says, script};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn speech_is_heard_answered_and_spoken_sentence_by_sentence() {
    let script = script([says("Colin Archer built her [project:fram]. She is in **Oslo**.")]);
    hears(&script, ["Who built the Fram?"]);
    let mut talk = Talk::open(script).await;
    talk.speak(SECOND);
    talk.run_until("turn complete").await;
    expect![[r#"
        SpeechStarted
        user Final Who built the Fram?
        model Segment Colin Archer built her [project:fram].
        audio
        usage
        audio
        model Segment  She is in **Oslo**.
        audio
        model Final 
        GenerationComplete
        turn complete, more follows: false
    "#]]
    .assert_eq(&talk.take_lines());
    assert_eq!(*talk.script.sentences.lock().unwrap(), ["Colin Archer built her.", "She is in Oslo."]);
    // 260 ms before the start of speech, and the second.
    assert_eq!(*talk.script.utterances.lock().unwrap(), [16_000 + 13 * 320]);
    expect!["user: Who built the Fram?\n"].assert_eq(&talk.last_request());
}

#[tokio::test(start_paused = true)]
async fn the_first_sentence_is_spoken_while_the_model_still_writes() {
    let script = script([says(&format!("First of all. {}", "And more words follow here. ".repeat(20)))]);
    script.delays.lock().unwrap().1 = 500;
    let mut talk = Talk::open(script).await;
    talk.send(LiveInput::Text("Go"));
    let start = Instant::now();
    talk.run_until("audio").await;
    assert!(start.elapsed() < 3 * SECOND, "{:?}", start.elapsed());
    assert!(!talk.lines.iter().any(|line| line == "usage"));
}

#[tokio::test(start_paused = true)]
async fn audio_is_made_a_few_seconds_ahead_and_no_more() {
    let mut talk =
        Talk::open(script([says(&"This sentence takes about two and a half seconds. ".repeat(20))])).await;
    talk.send(LiveInput::Text("Go"));
    talk.run_until("audio").await;
    for _ in 0..20 {
        talk.run_for(SECOND / 2).await;
        let sentences = talk.script.sentences.lock().unwrap().len() as u32;
        let played = talk.played();
        assert!(SECOND * 5 / 2 * sentences.saturating_sub(3) <= played + SECOND, "{sentences} {played:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_conversation_is_remembered() {
    let script = script([says("Colin Archer."), says("In 1892.")]);
    hears(&script, ["Who built her?", "When?"]);
    let mut talk = Talk::open(script).await;
    for _ in 0..2 {
        talk.speak(SECOND);
        talk.run_until("turn complete").await;
        talk.take_lines();
    }
    expect![[r#"
        user: Who built her?
        model: Colin Archer.
        user: When?
    "#]]
    .assert_eq(&talk.last_request());
}

#[tokio::test(start_paused = true)]
async fn two_utterances_before_any_words_are_one_message() {
    let script = script([says("Never said."), says("Both.")]);
    hears(&script, ["Who built", "the Fram?"]);
    script.delays.lock().unwrap().1 = 2_000;
    let mut talk = Talk::open(script).await;
    talk.speak(SECOND);
    // The first has been transcribed, and the model thinks.
    talk.run_for(SECOND).await;
    assert_eq!(talk.requests(), 1);
    talk.speak(SECOND);
    talk.run_until("turn complete").await;
    expect!["user: Who built the Fram?\n"].assert_eq(&talk.last_request());
    expect![[r#"
        SpeechStarted
        user Final Who built
        SpeechStarted
        user Final  the Fram?
        usage
        model Segment Both.
        audio
        model Final 
        GenerationComplete
        turn complete, more follows: false
    "#]]
    .assert_eq(&talk.take_lines());
}

#[tokio::test(start_paused = true)]
async fn an_utterance_that_goes_on_is_transcribed_as_a_whole() {
    let script = script([]);
    hears(&script, ["Who built the Fram?"]);
    let mut talk = Talk::open(script).await;
    talk.speak(SECOND);
    talk.run_for(SECOND / 10).await;
    talk.speak(SECOND);
    talk.run_until("turn complete").await;
    assert_eq!(*talk.script.utterances.lock().unwrap(), [20_160, 40_320]);
    expect!["user: Who built the Fram?\n"].assert_eq(&talk.last_request());
}

#[tokio::test(start_paused = true)]
async fn nothing_understood_is_no_turn() {
    let script = script([]);
    hears(&script, [" "]);
    let mut talk = Talk::open(script).await;
    talk.speak(SECOND);
    talk.run_for(5 * SECOND).await;
    assert_eq!(talk.take_lines(), "SpeechStarted\nturn complete, more follows: false\n");
    assert_eq!(talk.requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_microphone_that_goes_off_ends_the_utterance() {
    let mut talk = Talk::open(script([])).await;
    talk.start_speaking(SECOND);
    talk.send(LiveInput::AudioEnded);
    talk.run_until("turn complete").await;
    assert_eq!(talk.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_very_long_utterance_is_transcribed_in_parts() {
    let script = script([]);
    hears(&script, ["The first minute.", "And the rest."]);
    let mut talk = Talk::open(script).await;
    talk.start_speaking(65 * SECOND);
    talk.run_for(SECOND).await;
    assert_eq!(talk.requests(), 0, "the user still speaks");
    talk.send(LiveInput::SpeechEnded);
    talk.run_until("turn complete").await;
    expect!["user: The first minute. And the rest.\n"].assert_eq(&talk.last_request());
    assert!(talk.lines.contains(&"user Segment The first minute.".to_owned()), "{:?}", talk.lines);
    let longest = talk.script.utterances.lock().unwrap().iter().copied().max();
    assert!(longest.is_some_and(|samples| samples <= 60 * 16_000 + 640));
}

#[tokio::test(start_paused = true)]
async fn a_history_that_asks_is_answered_at_once() {
    let turn = |by, text: &str| LiveTurn { by, text: text.to_owned() };
    let history = vec![
        turn(Speaker::Model, "Lost beginning."),
        turn(Speaker::User, "Who built her?"),
        turn(Speaker::Model, "Colin Archer."),
        turn(Speaker::User, "[Note: resumed]"),
        turn(Speaker::User, "When?"),
    ];
    let mut talk = Talk::open_with(script([says("In 1892.")]), history, true).await;
    talk.run_until("turn complete").await;
    expect![[r#"
        user: Who built her?
        model: Colin Archer.
        user: [Note: resumed]⏎When?
    "#]]
    .assert_eq(&talk.last_request());
}

#[tokio::test(start_paused = true)]
async fn notes_stand_before_the_users_next_words() {
    let mut talk = Talk::open(script([])).await;
    talk.send(LiveInput::Note { text: "[Note: booked]", asks: false });
    talk.run_for(SECOND).await;
    assert_eq!(talk.requests(), 0);
    talk.send(LiveInput::Text("Thanks"));
    talk.run_until("turn complete").await;
    assert_eq!(talk.last_request(), "user: [Note: booked]⏎⏎Thanks\n");
    talk.take_lines();
    talk.send(LiveInput::Note { text: "[Note: confirmed]", asks: true });
    talk.run_until("turn complete").await;
    assert!(
        talk.last_request().ends_with("model: Yes.\nuser: [Note: confirmed]\n"),
        "{}",
        talk.last_request()
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_conversation_is_trimmed_to_the_window() {
    let mut talk = Talk::open(script([])).await;
    for number in 0..12 {
        talk.send(LiveInput::Text(&format!("{number} {}", "word ".repeat(800))));
        talk.run_until("turn complete").await;
        talk.take_lines();
    }
    let last = talk.last_request();
    assert!(
        last.len() < 26_000 && last.contains("user: 11 ") && !last.contains("user: 0 "),
        "{}",
        last.len()
    );
}
