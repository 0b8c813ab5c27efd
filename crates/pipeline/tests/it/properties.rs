//! Random conversations: whatever comes when, no call stays without its result, and events are well-formed.

use std::time::Duration;

use proptest::prelude::*;
use quarterdeck_contracts::{ChatMessage, LiveInput, SpeechErrorKind};
use serde_json::json;

use super::harness::{Reply, Talk, check_history, says, script};

const ANSWER: &str = "The Fram was built by Colin Archer. She was launched in 1892. Yes.";
const LOOKING: &str = "Let me have a look.";
const CUT_ANSWER: &str = "It was. And then";

#[derive(Debug, Clone)]
enum Action {
    Wait(u64),
    Poll,
    StartSpeaking(u64),
    StopSpeaking,
    MicrophoneOff,
    Text,
    Note(bool),
    Filler,
    Interrupt(Option<u64>),
    InterruptAsPlayed,
    Answer { place: usize, is_silent: bool },
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0_u64..1_500).prop_map(Action::Wait),
        4 => Just(Action::Poll),
        3 => (0_u64..800).prop_map(Action::StartSpeaking),
        3 => Just(Action::StopSpeaking),
        1 => Just(Action::MicrophoneOff),
        2 => Just(Action::Text),
        2 => any::<bool>().prop_map(Action::Note),
        1 => Just(Action::Filler),
        1 => proptest::option::of(0_u64..6_000).prop_map(Action::Interrupt),
        2 => Just(Action::InterruptAsPlayed),
        4 => (0_usize..3, any::<bool>()).prop_map(|(place, is_silent)| Action::Answer { place, is_silent }),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        4 => Just(says(ANSWER)),
        2 => Just(Reply::Calls(LOOKING.into(), vec!["kb_search", "book"])),
        1 => Just(Reply::Calls(String::new(), vec!["kb_search"])),
        1 => Just(Reply::Fails(quarterdeck_contracts::ChatErrorKind::Overloaded)),
        1 => Just(Reply::Fails(quarterdeck_contracts::ChatErrorKind::TooLong)),
        1 => Just(Reply::SaysAndFails(CUT_ANSWER.into())),
        1 => Just(says("")),
    ]
}

async fn perform(talk: &mut Talk, action: Action) {
    match action {
        Action::Wait(milliseconds) => talk.run_for(Duration::from_millis(milliseconds)).await,
        Action::Poll => talk.poll_once(),
        Action::StartSpeaking(milliseconds) => talk.start_speaking(Duration::from_millis(milliseconds)),
        Action::StopSpeaking => talk.send(LiveInput::SpeechEnded),
        Action::MicrophoneOff => talk.send(LiveInput::AudioEnded),
        Action::Text => talk.send(LiveInput::Text("What about it?")),
        Action::Note(asks) => talk.send(LiveInput::Note { text: "[Note: something]", asks }),
        Action::Filler => {
            talk.send(LiveInput::Filler { words: "One moment.", request: "[Note: Say: One moment.]" })
        }
        Action::Interrupt(heard) => {
            talk.send(LiveInput::Interrupt { heard: heard.map(Duration::from_millis) });
        }
        Action::InterruptAsPlayed => talk.interrupt(),
        Action::Answer { place, is_silent } => {
            if place < talk.calls.len() {
                talk.answer(place, json!({"found": true}), is_silent);
            }
        }
    }
}

async fn converse(actions: Vec<Action>, replies: Vec<Reply>, failures: (u8, u8)) {
    let script = script(replies);
    script.voice_fails.lock().unwrap().extend((0..failures.0).map(|_| SpeechErrorKind::Malformed));
    script.heard.lock().unwrap().extend((0..failures.1).map(|_| Err(SpeechErrorKind::Unavailable)));
    let mut talk = Talk::open(script).await;
    for action in actions {
        perform(&mut talk, action).await;
    }
    // Whatever happened, the conversation can be gone on with and comes to rest.
    talk.send(LiveInput::SpeechEnded);
    talk.run_for(Duration::from_secs(60)).await;
    // A result may lead to another call.
    while !talk.calls.is_empty() {
        talk.answer(0, json!({"found": true}), true);
        talk.run_for(Duration::from_secs(60)).await;
    }
    check_events(&talk.lines);
    talk.script.replies.lock().unwrap().clear();
    talk.script.voice_fails.lock().unwrap().clear();
    talk.take_lines();
    talk.send(LiveInput::Text("Are you there?"));
    talk.run_until("turn complete, more follows: false").await;
    let lines = talk.take_lines();
    assert!(lines.contains("model Segment Yes.\naudio\n"), "{lines}");
    for request in talk.script.requests.lock().unwrap().iter() {
        check_history(&request.messages);
        check_words(&request.messages);
    }
}

/// What the history has of an answer is its beginning, up to a word.
fn check_words(messages: &[ChatMessage]) {
    let answers = [ANSWER, LOOKING, CUT_ANSWER, "Yes."];
    for message in messages {
        let ChatMessage::Model(message) = message else { continue };
        let text = message.text();
        let is_beginning = |answer: &&str| {
            answer
                .strip_prefix(&text)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' ') || text.is_empty())
        };
        assert!(answers.iter().any(is_beginning), "{text:?}");
    }
}

/// A turn that was begun ends: with its completion, or with an interruption.
fn check_events(lines: &[String]) {
    let mut is_open = false;
    for (place, line) in lines.iter().enumerate() {
        let is_begin =
            line == "SpeechStarted" || line.starts_with("model Segment") || line.starts_with("calls");
        match line.as_str() {
            _ if is_begin => is_open = true,
            "turn complete, more follows: false" | "interrupted" => is_open = false,
            "audio" => assert!(lines[place - 1].starts_with("model Segment") || is_open, "{lines:#?}"),
            "GenerationComplete" => {
                assert_eq!(lines[place - 1], "model Final ", "{lines:#?}");
            }
            "ResponseFailed" => assert!(lines[place - 1].starts_with("warning"), "{lines:#?}"),
            _ => {}
        }
    }
    assert!(!is_open, "{lines:#?}");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_conversation_survives_any_order_of_inputs(
        actions in proptest::collection::vec(action(), 1..40),
        replies in proptest::collection::vec(reply(), 0..12),
        failures in (0_u8..3, 0_u8..3),
    ) {
        runtime().block_on(converse(actions, replies, failures));
    }
}

/// Cuts a turn with a call after each of its polls.
#[test]
fn a_turn_can_be_cut_after_every_poll() {
    for polls in 0..200 {
        runtime().block_on(async move {
            let calls = Reply::Calls("Let me look.".into(), vec!["kb_search"]);
            let mut talk =
                Talk::open(script([calls, says("It was Colin Archer. He lived in Larvik.")])).await;
            talk.speak(Duration::from_millis(600));
            for _ in 0..polls {
                talk.poll_once();
                tokio::time::advance(Duration::from_millis(25)).await;
                if !talk.calls.is_empty() {
                    talk.answer(0, json!({"found": true}), false);
                }
            }
            talk.interrupt();
            talk.speak(Duration::from_millis(600));
            talk.script.replies.lock().unwrap().clear();
            talk.run_for(Duration::from_secs(30)).await;
            while !talk.calls.is_empty() {
                talk.answer(0, json!({}), true);
            }
            talk.run_for(Duration::from_secs(60)).await;
            check_events(&talk.lines);
        });
    }
}
