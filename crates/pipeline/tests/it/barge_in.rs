//! Interruptions: what is cancelled, and what the history keeps.

use std::time::Duration;

use expect_test::expect;
use quarterdeck_contracts::LiveInput;
use serde_json::json;

use super::harness::{Reply, Talk, hears, says, script};

const SECOND: Duration = Duration::from_secs(1);
const NOTE: &str =
    "[Note: You were interrupted. The user has heard your last answer only as far as it stands here.]";

/// 45 and 37 characters: 2.25 s and 1.85 s.
const ANSWER: &str = "The Fram was built by Colin Archer in Larvik. She was launched in October of 1892.";

#[tokio::test(start_paused = true)]
async fn what_was_not_heard_is_not_in_the_history() {
    let mut talk = Talk::open(script([says(ANSWER)])).await;
    talk.send(LiveInput::Text("Who built her?"));
    talk.run_until("audio").await;
    talk.run_for(SECOND - Duration::from_millis(200)).await;
    talk.take_lines();
    talk.interrupt();
    talk.speak(SECOND);
    talk.run_until("turn complete").await;
    let request = talk.last_request();
    let expected = format!("user: Who built her?\nmodel: The Fram was\nuser: {NOTE}⏎⏎Hello there\n");
    assert_eq!(request, expected);
    let lines = talk.take_lines();
    let expected = "interrupted\nheard The Fram was\nSpeechStarted\nuser Final Hello there\n";
    assert!(lines.starts_with(expected), "{lines}");
}

#[tokio::test(start_paused = true)]
async fn the_second_sentence_is_cut_at_a_word_too() {
    let mut talk = Talk::open(script([says(ANSWER)])).await;
    talk.send(LiveInput::Text("Who built her?"));
    talk.run_until("audio").await;
    talk.run_for(Duration::from_millis(3_150)).await;
    talk.interrupt();
    talk.send(LiveInput::Text("Stop"));
    talk.run_for(SECOND).await;
    let request = talk.last_request();
    assert!(
        request.contains("model: The Fram was built by Colin Archer in Larvik. She was launched\n"),
        "{request}"
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_report_the_clock_says_what_was_heard() {
    let mut talk = Talk::open(script([says(ANSWER)])).await;
    talk.send(LiveInput::Text("Who built her?"));
    talk.run_until("audio").await;
    talk.run_for(SECOND - Duration::from_millis(200)).await;
    talk.send(LiveInput::Interrupt { heard: None });
    talk.send(LiveInput::Text("Stop"));
    talk.run_for(SECOND).await;
    assert!(talk.last_request().contains("model: The Fram was\n"), "{}", talk.last_request());
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_which_nothing_was_heard_leaves_no_message() {
    let mut talk = Talk::open(script([says(ANSWER)])).await;
    talk.send(LiveInput::Text("Who built her?"));
    talk.run_until("audio").await;
    talk.send(LiveInput::Interrupt { heard: Some(Duration::ZERO) });
    talk.send(LiveInput::Text("Stop"));
    talk.run_for(SECOND).await;
    assert_eq!(talk.last_request(), "user: Who built her?⏎Stop\n");
}

#[tokio::test(start_paused = true)]
async fn silence_that_the_user_asks_for_is_confirmed_and_kept() {
    let mut talk = Talk::open(script([says(ANSWER)])).await;
    talk.send(LiveInput::Text("Who built her?"));
    talk.run_for(SECOND / 10).await;
    talk.send(LiveInput::Interrupt { heard: None });
    talk.run_for(10 * SECOND).await;
    assert_eq!(talk.take_lines(), "interrupted\n");
    // Nothing is under way, so there is nothing to confirm.
    talk.send(LiveInput::Interrupt { heard: None });
    talk.run_for(10 * SECOND).await;
    assert_eq!(talk.take_lines(), "");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_lags_is_believed_and_an_older_count_is_not() {
    let mut talk = Talk::open(script([says(ANSWER), says("Yes."), says("Yes.")])).await;
    talk.send(LiveInput::Text("Who built her?"));
    talk.run_until("turn complete").await;
    talk.send(LiveInput::Interrupt { heard: Some(3 * SECOND) });
    talk.send(LiveInput::Text("Stop"));
    talk.run_for(SECOND).await;
    assert!(
        talk.last_request().contains("model: The Fram was built by Colin Archer in Larvik. She was\n"),
        "{}",
        talk.last_request()
    );
}

#[tokio::test(start_paused = true)]
async fn speech_into_an_answer_interrupts_it_by_itself() {
    let mut talk = Talk::open(script([says(ANSWER)])).await;
    talk.send(LiveInput::Text("Who built her?"));
    talk.run_until("audio").await;
    talk.run_for(SECOND - Duration::from_millis(200)).await;
    talk.take_lines();
    talk.speak(SECOND);
    talk.run_until("turn complete").await;
    let lines = talk.take_lines();
    assert!(lines.starts_with("interrupted\nheard The Fram was\nSpeechStarted\n"), "{lines}");
    assert!(talk.last_request().contains("model: The Fram was\n"), "{}", talk.last_request());
}

#[tokio::test(start_paused = true)]
async fn calls_of_an_interrupted_answer_keep_their_results() {
    let calls = Reply::Calls("Let me have a look at that for you.".into(), vec!["kb_search", "book"]);
    let mut talk = Talk::open(script([calls, says("Yes.")])).await;
    talk.send(LiveInput::Text("Book it"));
    talk.run_until("calls").await;
    talk.run_until("audio").await;
    let calls = talk.calls.clone();
    talk.send(LiveInput::Interrupt { heard: Some(Duration::from_millis(500)) });
    // One is cancelled and the other finishes, both without a word.
    talk.answer_as(&calls[1].0, "book", json!({"booked": true}), true, false);
    talk.send(LiveInput::Text("Never mind"));
    talk.run_for(SECOND).await;
    let expected = format!(
        "user: Book it\nmodel: Let me +kb_search +book\ntools: CANCELLED {{\"booked\":true}}\nuser: {NOTE}⏎⏎Never mind\n"
    );
    assert_eq!(talk.last_request(), expected);
    // A result that comes late takes the place of the missing one, and is not spoken about.
    talk.answer_as(&calls[0].0, "kb_search", json!({"hits": 1}), true, true);
    talk.run_until("turn complete").await;
    let requests = talk.requests();
    talk.send(LiveInput::Text("And now?"));
    talk.run_for(SECOND).await;
    assert_eq!(talk.requests(), requests + 1);
    assert!(
        talk.last_request().contains("tools: {\"hits\":1} {\"booked\":true}\n"),
        "{}",
        talk.last_request()
    );
}

#[tokio::test(start_paused = true)]
async fn twenty_turns_with_interruptions_leave_what_was_heard() {
    let script = script((0..20).map(|_| says(ANSWER)));
    let mut talk = Talk::open(script).await;
    let mut heard_seconds = Vec::new();
    for turn in 0..20_u64 {
        let question = format!("Question {turn}");
        hears(&talk.script, [&question]);
        talk.speak(SECOND);
        if turn % 4 == 3 {
            talk.run_until("turn complete").await;
            heard_seconds.push(None);
        } else {
            talk.run_until("audio").await;
            talk.run_for(Duration::from_millis(300 + turn * 170)).await;
            heard_seconds.push(Some(talk.played().as_secs_f64()));
            talk.interrupt();
        }
        talk.take_lines();
    }
    talk.send(LiveInput::Text("The end"));
    talk.run_for(SECOND).await;
    let request = talk.last_request();
    let answers: Vec<&str> = request.lines().filter_map(|line| line.strip_prefix("model: ")).collect();
    assert_eq!(answers.len(), 20, "{request}");
    for (answer, heard) in answers.iter().zip(heard_seconds) {
        let Some(heard) = heard else {
            assert_eq!(*answer, ANSWER);
            continue;
        };
        assert!(ANSWER.starts_with(answer), "{answer}");
        // A word that was not heard to its end is not there, and the last one that was is.
        let next_word = ANSWER[answer.len()..].trim_start().split(' ').next().unwrap_or_default();
        let (end, next_end) =
            (answer.len() as f64 / 20.0, (answer.len() + 1 + next_word.len()) as f64 / 20.0);
        assert!(end <= heard + 0.15 && heard <= next_end + 0.15, "{answer:?} in {heard} s");
    }
    expect!["20"].assert_eq(&request.matches("Question").count().to_string());
}

#[tokio::test(start_paused = true)]
async fn silence_before_an_answer_leaves_the_answer_before_it() {
    let mut talk = Talk::open(script([says(ANSWER)])).await;
    talk.send(LiveInput::Text("Who built her?"));
    talk.run_until("turn complete").await;
    talk.send(LiveInput::Text("When?"));
    talk.send(LiveInput::Interrupt { heard: Some(Duration::ZERO) });
    talk.send(LiveInput::Text("Where?"));
    talk.run_for(SECOND).await;
    assert_eq!(talk.last_request(), format!("user: Who built her?\nmodel: {ANSWER}\nuser: When?⏎Where?\n"));
}
