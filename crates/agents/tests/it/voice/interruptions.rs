//! Answers that are cut off, and what still comes of them.

use std::time::Duration;

use quarterdeck_contracts::{LiveEvent, TranscriptPiece, TranscriptStage};
use serde_json::json;

use super::harness::{ClientAction, VoiceHarness, audio, model_said, tool_calls, turn_complete, user_said};

/// The model has paused, for a result or because it was asked something else.
const GOES_ON: LiveEvent<'static> = LiveEvent::TurnComplete { more_follows: true };
const CUT: LiveEvent<'static> = LiveEvent::Interrupted { end_follows: true };

fn guess(text: &str) -> LiveEvent<'static> {
    LiveEvent::InputTranscript(TranscriptPiece {
        text: text.to_owned().into(),
        stage: TranscriptStage::Interim,
    })
}

#[tokio::test(start_paused = true)]
async fn an_interruption_during_a_tool_call_does_not_suppress_the_next_answer() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    let look_up = tool_calls(&[("call-0000001", "slow_book", json!({ "what": "x" }))]);
    harness
        .model
        .send_all([user_said("Look."), model_said("Let me look."), audio(960), look_up, GOES_ON])
        .await;
    client.send(ClientAction::Interrupt).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    client.received();
    client.send_text("And now?").await;
    harness.model.send_all([model_said("Here I am."), audio(960), turn_complete()]).await;
    assert_eq!(client.received(), "user: And now?\nmodel: Here I am.\naudio 960\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn a_user_who_wrote_into_an_answer_can_interrupt_the_next() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send_all([user_said("Tell me."), model_said("Once"), audio(960)]).await;
    client.send_text("Shorter!").await;
    harness.model.send_all([GOES_ON, model_said("Well,"), audio(960)]).await;
    client.received();
    harness.model.send_all([CUT, LiveEvent::SpeechStarted]).await;
    assert_eq!(client.received(), "interrupted\n");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_interrupted_response_does_not_end_the_next_turn() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send_all([user_said("Tell me."), model_said("Once upon"), audio(960)]).await;
    client.received();
    harness
        .model
        .send_all([CUT, LiveEvent::SpeechStarted, model_said(" a time"), turn_complete(), user_said("Stop.")])
        .await;
    assert_eq!(
        client.received(),
        "interrupted\nuser: Stop.\n",
        "late words are not heard, and no turn is over"
    );
    harness.model.drop_connection().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let setup = harness.model.setups().pop().unwrap();
    assert!(setup.asks, "the question is asked again where the call goes on");
    assert_eq!(setup.history.last().unwrap().text, "Stop.");
}

#[tokio::test(start_paused = true)]
async fn an_interruption_without_a_turn_end_waits_for_none() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([user_said("Tell me."), model_said("Once."), audio(96_000), turn_complete()])
        .await;
    client.received();
    harness.model.send_all([LiveEvent::Interrupted { end_follows: false }, LiveEvent::SpeechStarted]).await;
    harness.model.send_all([user_said("Hm."), LiveEvent::ResponseFailed, turn_complete()]).await;
    let received = "interrupted\nuser: Hm.\n\
                error UNAVAILABLE: The model could not answer that. Please say it again.\nturn complete\n";
    assert_eq!(client.received(), received);
}

#[tokio::test(start_paused = true)]
async fn tool_calls_of_a_suppressed_response_do_not_start() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send_all([user_said("Go on."), audio(960)]).await;
    client.send(ClientAction::Interrupt).await;
    harness.model.take_inputs();
    client.received();
    harness.model.send(tool_calls(&[("call-0000001", "book", json!({ "what": "x" }))])).await;
    assert_eq!(harness.runs("book"), 0);
    assert_eq!(harness.model.take_inputs(), "1 result function-call-0000001 CANCELLED silent last\n");
    harness
        .model
        .send_all([
            turn_complete(),
            user_said("Book it."),
            tool_calls(&[("call-0000002", "book", json!({ "what": "x" }))]),
        ])
        .await;
    assert_eq!(harness.runs("book"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_text_message_during_playback_interrupts_it() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([user_said("Tell me."), model_said("A long story."), audio(480_000), turn_complete()])
        .await;
    client.received();
    harness.model.take_inputs();
    client.send_text("Enough.").await;
    assert_eq!(client.received(), "interrupted\nuser: Enough.\n");
    assert_eq!(harness.model.take_inputs(), "1 interrupt\n1 text Enough.\n");
}

#[tokio::test(start_paused = true)]
async fn a_transcript_after_its_turn_begins_no_turn() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send_all([LiveEvent::SpeechStarted, model_said("In 1892."), turn_complete()]).await;
    harness.model.send_all([guess("When was"), user_said("When was she built?")]).await;
    assert!(
        client.received().ends_with("turn complete\nuser (interim): When was\nuser: When was she built?\n")
    );
    harness.model.drop_connection().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!harness.model.setups().pop().unwrap().asks, "it has been answered");
}

#[tokio::test(start_paused = true)]
async fn the_same_write_in_a_later_turn_runs_again_also_after_a_reconnect() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    let book = |id: &'static str| tool_calls(&[(id, "book", json!({ "what": "coffee" }))]);
    harness.model.send_all([user_said("A coffee."), book("call-0000001")]).await;
    harness.model.send_all([model_said("Done."), LiveEvent::GenerationComplete, turn_complete()]).await;
    harness.model.drop_connection().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    harness.model.send_all([user_said("Another coffee."), book("call-0000002")]).await;
    assert_eq!(harness.runs("book"), 2);
}

#[tokio::test(start_paused = true)]
async fn replayed_input_audio_is_followed_by_its_end() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.send(ClientAction::Audio(vec![0; 640])).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(harness.model.take_inputs(), "1 audio 640\n1 audio ended\n");
    harness.model.drop_connection().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(harness.model.take_inputs(), "2 audio 640\n2 audio ended\n");
}

#[tokio::test(start_paused = true)]
async fn a_complete_answer_ends_its_turn_when_the_connection_is_replaced() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    let left = Some(Duration::from_secs(2));
    let events = [user_said("Hi."), model_said("Good morning."), LiveEvent::GenerationComplete];
    harness.model.send_all(events).await;
    harness.model.send(LiveEvent::GoingAway { left }).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(harness.model.setups().len(), 2);
    assert!(client.received().ends_with("model: Good morning.\nturn complete\n"));
}

#[tokio::test(start_paused = true)]
async fn a_late_transcript_of_an_interrupted_response_is_not_the_next_answer() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send_all([user_said("Tell me."), model_said("Once"), audio(960)]).await;
    client.send_text("Shorter!").await;
    client.received();
    harness.model.send_all([model_said(" upon a time"), turn_complete()]).await;
    assert_eq!(client.received(), "\n");
    harness.model.drop_connection().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let setup = harness.model.setups().pop().unwrap();
    assert!(setup.asks, "what was written has no answer yet");
    assert_eq!(setup.history.last().unwrap().text, "Shorter!");
}

#[tokio::test(start_paused = true)]
async fn a_second_message_that_interrupts_an_unstarted_answer_is_answered() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.send_text("One?").await;
    client.send_text("No, two?").await;
    harness.model.send_all([CUT, turn_complete()]).await;
    assert_eq!(client.received().matches("interrupted").count(), 0, "nothing was heard of it");
    harness.model.drop_connection().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(harness.model.setups().pop().unwrap().asks);
    client.received();
    harness.model.send_all([model_said("Two."), audio(960), turn_complete()]).await;
    assert_eq!(client.received(), "model: Two.\naudio 960\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn suppression_is_kept_by_an_answer_that_has_not_begun_and_broken_by_a_new_question() {
    for asks_again in [false, true] {
        let harness = VoiceHarness::new();
        let client = harness.connect_client().await;
        client.send_text("One?").await;
        client.send(ClientAction::Interrupt).await;
        client.received();
        if asks_again {
            client.send_text("Two?").await;
            harness.model.send_all([CUT, turn_complete()]).await;
        }
        harness.model.send_all([model_said("Well."), audio(960), turn_complete()]).await;
        let received = if asks_again { "user: Two?\nmodel: Well.\naudio 960\nturn complete\n" } else { "\n" };
        assert_eq!(client.received(), received);
    }
}

#[tokio::test(start_paused = true)]
async fn speech_into_an_answer_begins_a_turn_in_either_order_of_events() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    harness
        .model
        .send_all([LiveEvent::SpeechStarted, user_said("Tell me."), model_said("Once"), audio(960)])
        .await;
    harness.model.send_all([LiveEvent::SpeechStarted, CUT, turn_complete(), user_said("Stop.")]).await;
    harness.model.drop_connection().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let setup = harness.model.setups().pop().unwrap();
    assert!(setup.asks);
    assert_eq!(setup.history.last().unwrap().text, "Stop.");
}

#[tokio::test(start_paused = true)]
async fn suppression_is_kept_while_the_model_thinks_about_what_was_said() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send(user_said("What is dead water?")).await;
    client.send(ClientAction::Interrupt).await;
    client.received();
    harness.model.send_all([model_said("It is"), audio(960), turn_complete()]).await;
    assert_eq!(client.received(), "\n");
    harness
        .model
        .send_all([
            LiveEvent::SpeechStarted,
            user_said("And now?"),
            model_said("Yes."),
            audio(960),
            turn_complete(),
        ])
        .await;
    assert_eq!(client.received(), "user: And now?\nmodel: Yes.\naudio 960\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn suppression_is_not_used_up_by_the_end_of_an_older_answer() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.send_text("One?").await;
    client.send_text("Two?").await;
    client.send(ClientAction::Interrupt).await;
    client.received();
    harness.model.send_all([CUT, turn_complete(), model_said("Two."), audio(960), turn_complete()]).await;
    assert_eq!(client.received(), "\n");
}

#[tokio::test(start_paused = true)]
async fn an_older_response_does_not_answer_a_later_message() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.send_text("One?").await;
    client.send_text("Two?").await;
    client.received();
    harness.model.send_all([audio(960), model_said("One."), CUT, turn_complete()]).await;
    assert_eq!(client.received(), "audio 960\nmodel: One.\ninterrupted\n");
    harness.model.drop_connection().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let setup = harness.model.setups().pop().unwrap();
    assert!(setup.asks);
    assert_eq!(setup.history.last().unwrap().text, "One?\nTwo?");
}

#[tokio::test(start_paused = true)]
async fn a_text_message_while_the_provider_is_away_is_replayed_once_and_answered() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send_all([user_said("Hello."), model_said("Hello."), turn_complete()]).await;
    client.send_text("One?").await;
    *harness.model.delay.lock().unwrap() = Duration::from_secs(1);
    harness.model.drop_connection().await;
    client.send_text("Two?").await;
    harness.model.take_inputs();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(harness.model.take_inputs(), "2 text Two?\n", "the first is in what it was opened with");
    harness.model.send_all([CUT, turn_complete()]).await;
    client.received();
    harness.model.send_all([model_said("Both."), audio(960), turn_complete()]).await;
    assert_eq!(client.received(), "model: Both.\naudio 960\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn an_interruption_while_the_provider_is_away_holds_after_the_reconnect() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send_all([user_said("Hello."), model_said("Hello."), turn_complete()]).await;
    client.send_text("One?").await;
    *harness.model.delay.lock().unwrap() = Duration::from_secs(1);
    harness.model.drop_connection().await;
    client.send(ClientAction::Interrupt).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    client.received();
    assert!(harness.model.take_inputs().contains("2 interrupt\n"));
    harness.model.send_all([model_said("One."), audio(960), turn_complete()]).await;
    assert_eq!(client.received(), "\n");
}

#[tokio::test(start_paused = true)]
async fn a_text_message_right_after_an_interruption_is_answered() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    for _ in 0..2 {
        harness.model.send_all([user_said("Tell me."), model_said("Once"), audio(960)]).await;
        client.send(ClientAction::Interrupt).await;
        client.send_text("Only the year.").await;
        client.received();
        harness
            .model
            .send_all([audio(960), CUT, turn_complete(), model_said("1892."), audio(960), turn_complete()])
            .await;
        assert_eq!(client.received(), "model: 1892.\naudio 960\nturn complete\n");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_outdated_context_is_not_waited_for() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("Hello."),
            model_said("Hello."),
            turn_complete(),
            user_said("Count."),
            model_said("One "),
        ])
        .await;
    *harness.model.delay.lock().unwrap() = Duration::from_secs(1);
    harness.model.send(LiveEvent::GoingAway { left: Some(Duration::from_secs(2)) }).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(harness.model.setups().len(), 2);
    harness.model.send_on(0, [model_said("two ")]).await;
    harness.model.drop_connection_of(0).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let setups = harness.model.setups();
    assert_eq!(setups.len(), 3);
    assert!(setups[2].history.iter().any(|turn| turn.text == "One two "), "{:?}", setups[2].history);
}

#[tokio::test(start_paused = true)]
async fn suppression_of_an_answer_that_never_comes_expires() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    client.send_text("One?").await;
    client.send(ClientAction::Interrupt).await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    client.received();
    harness.model.send_all([user_said("Hello?"), model_said("Yes?"), audio(960), turn_complete()]).await;
    assert_eq!(client.received(), "user: Hello?\nmodel: Yes?\naudio 960\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn a_closing_connection_that_keeps_talking_is_not_replaced_again_and_again() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("Hello."),
            model_said("Hello."),
            turn_complete(),
            user_said("Count."),
            model_said("One "),
        ])
        .await;
    *harness.model.delay.lock().unwrap() = Duration::from_millis(100);
    harness.model.send(LiveEvent::GoingAway { left: Some(Duration::from_secs(2)) }).await;
    for _ in 0..40 {
        harness.model.send_on(0, [model_said("more "), audio(960)]).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(harness.model.setups().len(), 4, "the first, and three that were out of date when they stood");
    harness.model.send_on(0, [turn_complete()]).await;
    client.received();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let setup = harness.model.setups().pop().unwrap();
    assert!(!setup.asks && harness.model.setups().len() == 5, "in the pause another one takes over");
}
