//! Engines that fail: the user notices, and the conversation goes on.

use std::time::Duration;

use expect_test::expect;
use quarterdeck_contracts::{ChatErrorKind, LiveInput, SpeechErrorKind};

use super::harness::{Reply, Talk, says, script};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn an_utterance_that_is_not_transcribed_is_said_to_be_not_heard_once() {
    let script = script([]);
    script.heard.lock().unwrap().extend([Err(SpeechErrorKind::Refused), Err(SpeechErrorKind::Auth)]);
    let mut talk = Talk::open(script).await;
    talk.speak(SECOND);
    talk.run_until("turn complete").await;
    expect![[r#"
        SpeechStarted
        warning fake: told to
        model Segment Sorry, I did not catch that.
        audio
        model Final 
        GenerationComplete
        turn complete, more follows: false
    "#]]
    .assert_eq(&talk.take_lines());
    talk.speak(SECOND);
    talk.run_until("turn complete").await;
    expect![[r#"
        SpeechStarted
        warning fake: told to
        ResponseFailed
        turn complete, more follows: false
    "#]]
    .assert_eq(&talk.take_lines());
    talk.speak(SECOND);
    talk.run_until("turn complete").await;
    assert_eq!(talk.last_request(), "user: Hello there\n");
}

#[tokio::test(start_paused = true)]
async fn a_recogniser_that_is_busy_is_tried_again() {
    let script = script([]);
    script.heard.lock().unwrap().extend([Err(SpeechErrorKind::Busy), Err(SpeechErrorKind::Busy)]);
    let mut talk = Talk::open(script).await;
    talk.speak(SECOND);
    talk.run_until("turn complete").await;
    assert_eq!(talk.last_request(), "user: Hello there\n");
    assert_eq!(talk.script.utterances.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_before_a_word_has_not_answered() {
    let mut talk = Talk::open(script([Reply::Fails(ChatErrorKind::Overloaded), says("Yes.")])).await;
    talk.send(LiveInput::Text("Is it?"));
    talk.run_until("turn complete").await;
    expect![[r#"
        warning fake/chat: told to
        ResponseFailed
        turn complete, more follows: false
    "#]]
    .assert_eq(&talk.take_lines());
    talk.send(LiveInput::Text("Is it now?"));
    talk.run_until("turn complete").await;
    assert_eq!(talk.last_request(), "user: Is it?⏎Is it now?\n");
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_a_failure_stands() {
    let mut talk = Talk::open(script([Reply::SaysAndFails("It is. And so".into()), says("Yes.")])).await;
    talk.send(LiveInput::Text("Is it?"));
    talk.run_until("turn complete").await;
    expect![[r#"
        warning fake/chat: told to
        model Segment It is.
        audio
        model Segment  And so
        audio
        model Final 
        GenerationComplete
        turn complete, more follows: false
    "#]]
    .assert_eq(&talk.take_lines());
    talk.send(LiveInput::Text("Go on"));
    talk.run_for(SECOND).await;
    assert_eq!(talk.last_request(), "user: Is it?\nmodel: It is. And so\nuser: Go on\n");
}

#[tokio::test(start_paused = true)]
async fn a_reply_without_words_or_calls_is_a_failure_and_no_loop() {
    let mut talk = Talk::open(script([says("")])).await;
    talk.send(LiveInput::Text("Is it?"));
    talk.run_until("turn complete").await;
    assert!(talk.take_lines().ends_with("ResponseFailed\nturn complete, more follows: false\n"));
    assert_eq!(talk.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_too_long_is_asked_again_without_its_older_half() {
    let mut talk =
        Talk::open(script([says("A."), says("B."), Reply::Fails(ChatErrorKind::TooLong), says("C.")])).await;
    for text in ["One", "Two", "Three"] {
        talk.send(LiveInput::Text(text));
        talk.run_until("turn complete").await;
        talk.take_lines();
    }
    assert_eq!(talk.requests(), 4);
    assert!(
        !talk.last_request().contains("One") && talk.last_request().ends_with("user: Three\n"),
        "{}",
        talk.last_request()
    );
}

#[tokio::test(start_paused = true)]
async fn a_sentence_that_is_not_spoken_is_shown_and_the_next_is_tried() {
    let script = script([says("First one. Second one.")]);
    script.voice_fails.lock().unwrap().push_back(SpeechErrorKind::Refused);
    let mut talk = Talk::open(script).await;
    talk.send(LiveInput::Text("Go"));
    talk.run_until("turn complete").await;
    expect![[r#"
        warning fake: told to
        model Segment First one.
        usage
        model Segment  Second one.
        audio
        model Final 
        GenerationComplete
        turn complete, more follows: false
    "#]]
    .assert_eq(&talk.take_lines());
}

#[tokio::test(start_paused = true)]
async fn a_voice_that_is_busy_is_tried_again() {
    let script = script([says("First one.")]);
    script.voice_fails.lock().unwrap().extend([SpeechErrorKind::Busy; 4]);
    let mut talk = Talk::open(script).await;
    talk.send(LiveInput::Text("Go"));
    talk.run_until("turn complete").await;
    let lines = talk.take_lines();
    assert!(lines.contains("audio") && !lines.contains("warning"), "{lines}");
}

#[tokio::test(start_paused = true)]
async fn a_voice_that_stays_busy_is_given_up() {
    let script = script([says("First one.")]);
    script.voice_fails.lock().unwrap().extend([SpeechErrorKind::Busy; 5]);
    let mut talk = Talk::open(script).await;
    talk.send(LiveInput::Text("Go"));
    talk.run_until("turn complete").await;
    let lines = talk.take_lines();
    assert!(lines.contains("model Segment First one.") && lines.contains("warning"), "{lines}");
}
