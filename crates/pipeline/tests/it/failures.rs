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
async fn a_model_that_fails_before_a_word_is_asked_again_and_then_apologised_for() {
    let fails = || Reply::Fails(ChatErrorKind::Overloaded);
    let mut talk = Talk::open(script([fails(), says("Yes."), fails(), fails(), says("Yes.")])).await;
    talk.send(LiveInput::Text("Is it?"));
    talk.run_until("turn complete").await;
    assert!(talk.take_lines().contains("model Segment Yes.\naudio\n"));
    talk.send(LiveInput::Text("Really?"));
    talk.run_until("turn complete").await;
    expect![[r#"
        warning fake/chat: told to
        warning fake/chat: told to
        ResponseFailed
        model Segment Sorry, something went wrong. Please ask me again.
        audio
        model Final 
        GenerationComplete
        turn complete, more follows: false
    "#]]
    .assert_eq(&talk.take_lines());
    talk.send(LiveInput::Text("Is it now?"));
    talk.run_until("turn complete").await;
    assert_eq!(talk.last_request(), "user: Is it?\nmodel: Yes.\nuser: Really?⏎Is it now?\n");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_has_fallen_silent_is_not_asked_again() {
    let mut talk = Talk::open(script([Reply::Fails(ChatErrorKind::Silent)])).await;
    talk.send(LiveInput::Text("Is it?"));
    talk.run_until("turn complete").await;
    assert!(talk.take_lines().contains("ResponseFailed\nmodel Segment Sorry"));
    assert_eq!(talk.requests(), 1);
}

const LOST_NOTE: &str = "[Note: The connection was lost while you were answering. The user has heard it as far as it \
    stands here; go on from there.]";

#[tokio::test(start_paused = true)]
async fn a_reply_that_breaks_off_is_gone_on_with_after_its_last_sentence() {
    let breaks = |text: &str| Reply::SaysAndFails(text.into());
    let mut talk = Talk::open(script([breaks("It is. And so"), says("And so are they.")])).await;
    talk.send(LiveInput::Text("Is it?"));
    talk.run_until("turn complete").await;
    let lines = talk.take_lines();
    assert!(lines.contains("model Segment It is.\naudio\n"), "{lines}");
    assert!(lines.contains("model Segment  And so are they.\naudio\n"), "{lines}");
    assert!(!lines.contains("ResponseFailed") && !lines.contains("Sorry"), "{lines}");
    assert_eq!(talk.last_request(), format!("user: Is it?\nmodel: It is.\nuser: {LOST_NOTE}\n"));
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_breaks_off_twice_is_apologised_for_and_what_was_said_stands() {
    let breaks = |text: &str| Reply::SaysAndFails(text.into());
    let mut talk = Talk::open(script([breaks("It is. And so"), breaks("They are. So"), says("Yes.")])).await;
    talk.send(LiveInput::Text("Is it?"));
    talk.run_until("turn complete").await;
    let lines = talk.take_lines();
    assert!(lines.contains("model Segment  Sorry, something went wrong."), "{lines}");
    assert!(!lines.contains("ResponseFailed") && !lines.contains("And so"), "{lines}");
    talk.send(LiveInput::Text("Go on"));
    talk.run_for(SECOND).await;
    let expected = format!("user: Is it?\nmodel: It is.\nuser: {LOST_NOTE}\nmodel: They are.\nuser: Go on\n");
    assert_eq!(talk.last_request(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_reply_without_words_or_calls_is_a_failure_and_no_loop() {
    let mut talk = Talk::open(script([says("")])).await;
    talk.send(LiveInput::Text("Is it?"));
    talk.run_until("turn complete").await;
    let lines = talk.take_lines();
    assert!(lines.contains("ResponseFailed\nmodel Segment Sorry, something went wrong."), "{lines}");
    assert_eq!(talk.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_says_nothing_about_a_result_is_not_spoken_for() {
    let calls = Reply::Calls(String::new(), vec!["end_call"]);
    let mut talk = Talk::open(script([calls, says("")])).await;
    talk.send(LiveInput::Text("Bye"));
    talk.run_until("calls").await;
    talk.answer(0, serde_json::json!({}), false);
    talk.run_until("turn complete, more follows: false").await;
    let lines = talk.take_lines();
    assert!(lines.contains("ResponseFailed\n") && !lines.contains("Sorry"), "{lines}");
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
async fn a_sentence_whose_voice_breaks_off_is_gone_on_with_at_the_word() {
    let script = script([says("One two three four five six seven eight nine.")]);
    // The voice of the tests makes a third of a sentence first.
    script.voice_breaks.lock().unwrap().push_back(SpeechErrorKind::Unavailable);
    let mut talk = Talk::open(script).await;
    talk.send(LiveInput::Text("Count"));
    talk.run_until("turn complete").await;
    let lines = talk.take_lines();
    assert_eq!(lines.matches("model Segment").count(), 1, "it is shown once: {lines}");
    let spoken = talk.script.sentences.lock().unwrap().clone();
    assert_eq!(spoken[1], "three four five six seven eight nine.", "{spoken:?}");
    talk.send(LiveInput::Text("Thanks"));
    talk.run_for(SECOND).await;
    assert!(talk.last_request().contains("model: One two three four five six seven eight nine.\n"));
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
