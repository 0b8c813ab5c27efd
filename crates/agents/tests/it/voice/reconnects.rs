//! Lines and models that are lost and come back.

use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use quarterdeck_contracts::{LiveErrorKind, LiveEvent, Speaker};
use serde_json::json;

use super::harness::{
    ClientAction, VoiceHarness, audio, model_said, run_until_idle, tool_calls, turn_complete, user_said,
};

#[tokio::test(start_paused = true)]
async fn a_lost_provider_is_reconnected_within_a_second_and_gets_the_context() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("One."),
            model_said("First."),
            turn_complete(),
            LiveEvent::ResumptionHandle(Some("h1".into())),
        ])
        .await;
    harness.model.send_all([user_said("Two?"), model_said("Sec")]).await;
    client.received();
    harness.model.drop_connection().await;
    let setup = harness.model.setups().pop().unwrap();
    assert_eq!(setup.resume.as_deref(), Some("h1"));
    let received: Vec<_> = setup.history.iter().map(|turn| (turn.by, turn.text.as_str())).collect();
    assert_eq!(received[..2], [(Speaker::User, "Two?"), (Speaker::Model, "Sec")]);
    assert!(setup.asks);
    assert_eq!(client.received(), "\n", "the user notices nothing");
    harness.model.send_all([model_said("ond."), turn_complete()]).await;
    assert_eq!(client.received(), "model: ond.\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn a_result_goes_only_to_the_connection_that_asked() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([user_said("Book."), tool_calls(&[("call-0000001", "slow_book", json!({ "what": "x" }))])])
        .await;
    harness.model.drop_connection().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let inputs = harness.model.take_inputs();
    assert_eq!(inputs, "", "no note is sent in the middle of a turn");
    harness.model.send_all([model_said("I am on it."), turn_complete()]).await;
    let inputs = harness.model.take_inputs();
    assert!(
        inputs.contains("2 note") && inputs.contains("An earlier call of slow_book has come to this"),
        "{inputs}"
    );
    assert_eq!(harness.runs("slow_book"), 1);
    assert!(client.received().contains("result function-call-0000001 {\"did\":\"x\"}"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_that_is_repeated_after_a_reconnect_runs_once() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    harness
        .model
        .send_all([user_said("Book."), tool_calls(&[("call-0000001", "slow_book", json!({ "what": "x" }))])])
        .await;
    harness.model.drop_connection().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    harness.model.send(tool_calls(&[("call-0000099", "slow_book", json!({ "what": "x" }))])).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(harness.runs("slow_book"), 1);
    let inputs = harness.model.take_inputs();
    assert_eq!(inputs.matches("2 result function-call-0000099 {\"did\":\"x\"}").count(), 1, "{inputs}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_resumed_model_does_not_know_is_not_repeated() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("Hello."),
            model_said("Hello."),
            turn_complete(),
            LiveEvent::ResumptionHandle(Some("h1".into())),
        ])
        .await;
    let book = |id: &'static str| tool_calls(&[(id, "book", json!({ "what": "x" }))]);
    harness.model.send_all([user_said("Book it."), book("call-0000001")]).await;
    harness.model.send_all([LiveEvent::Interrupted { end_follows: true }, turn_complete()]).await;
    assert!(harness.model.take_inputs().contains("result function-call-0000001 {\"did\":\"x\"}"));
    harness.model.drop_connection().await;
    harness.model.send_all([user_said("Well?"), book("call-0000002")]).await;
    assert_eq!(harness.runs("book"), 1);
    assert!(harness.model.take_inputs().contains("result function-call-0000002 {\"did\":\"x\"}"));
    // From here on the model knows, and who asks again means it.
    harness
        .model
        .send_all([model_said("Done."), turn_complete(), user_said("Again!"), book("call-0000003")])
        .await;
    assert_eq!(harness.runs("book"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refused_handle_is_dropped_and_everything_is_replayed() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("One."),
            model_said("First."),
            turn_complete(),
            LiveEvent::ResumptionHandle(Some("h1".into())),
        ])
        .await;
    harness.model.fails.lock().unwrap().push_back(LiveErrorKind::Refused);
    harness.model.drop_connection().await;
    let setups = harness.model.setups();
    assert_eq!(setups.len(), 3);
    assert_eq!((setups[2].resume.as_deref(), setups[2].history.len()), (None, 2));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_stays_away_is_given_up_in_plain_words() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.fails.lock().unwrap().extend([LiveErrorKind::Lost; 20]);
    harness.model.drop_connection().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(
        client.received(),
        "error UNAVAILABLE: The voice service cannot be reached. You can call again in a moment, or write.\nclosed: Failed\n"
    );
    assert_eq!(harness.agent.active_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_key_ends_the_call_without_a_retry() {
    let harness = VoiceHarness::new();
    harness.model.fails.lock().unwrap().push_back(LiveErrorKind::Auth);
    let client = harness.call(CallRequest::default()).await;
    assert!(client.received().starts_with("error UNAVAILABLE"));
    assert_eq!(harness.model.setups().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_provider_connection_that_closes_later_is_replaced_between_two_turns() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("One."),
            model_said("Fir"),
            LiveEvent::GoingAway { left: Some(Duration::from_secs(50)) },
        ])
        .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(harness.model.setups().len(), 1, "not while it speaks");
    harness
        .model
        .send_all([model_said("st."), turn_complete(), LiveEvent::ResumptionHandle(Some("h1".into()))])
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(harness.model.setups().len(), 2);
    assert_eq!(harness.model.setups()[1].resume.as_deref(), Some("h1"));
    assert_eq!(harness.model.take_inputs(), "1 closed\n");
    client.send_text("Two?").await;
    assert_eq!(harness.model.take_inputs(), "2 text Two?\n");
}

#[tokio::test(start_paused = true)]
async fn a_provider_connection_that_closes_soon_is_replaced_in_mid_turn() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("One?"),
            model_said("Fir"),
            LiveEvent::GoingAway { left: Some(Duration::from_secs(10)) },
        ])
        .await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let setups = harness.model.setups();
    assert_eq!(setups.len(), 2);
    assert!(setups[1].asks);
}

#[tokio::test(start_paused = true)]
async fn input_audio_while_the_provider_is_away_is_replayed() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.fails.lock().unwrap().extend([LiveErrorKind::Lost; 2]);
    harness.model.drop_connection().await;
    for _ in 0..10 {
        client.send(ClientAction::Audio(vec![1; 640])).await;
    }
    harness.model.take_inputs();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(harness.model.take_inputs(), "2 audio 640\n".repeat(10) + "2 audio ended\n");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reconnects_finds_its_call_again() {
    let harness = VoiceHarness::new();
    let mut client = harness.connect_client().await;
    harness
        .model
        .send_all([user_said("Book."), tool_calls(&[("call-0000001", "slow_book", json!({ "what": "x" }))])])
        .await;
    client.disconnect().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    harness.model.send_all([model_said("Booked."), turn_complete()]).await;
    let client = harness.call(harness.session().await).await;
    assert_eq!(
        client.received(),
        "ready fake/1 resumed=true\nresult function-call-0000001 {\"did\":\"x\"}\nmodel: Booked.\n"
    );
    let inputs = harness.model.take_inputs();
    assert_eq!(
        inputs, "1 result function-call-0000001 {\"did\":\"x\"} last\n",
        "the model is the same, and has its answer"
    );
    assert_eq!(harness.model.setups().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stays_away_ends_the_call_and_not_the_session() {
    let harness = VoiceHarness::new();
    let mut client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("One."),
            model_said("First."),
            turn_complete(),
            LiveEvent::ResumptionHandle(Some("h1".into())),
        ])
        .await;
    client.disconnect().await;
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(harness.agent.active_calls(), 0);
    assert!(harness.model.take_inputs().ends_with("1 closed\n"));
    let client = harness.call(harness.session().await).await;
    assert_eq!(client.received(), "ready fake/1 resumed=true\n");
    assert_eq!(harness.model.setups()[1].resume.as_deref(), Some("h1"));
}

#[tokio::test(start_paused = true)]
async fn a_second_link_takes_over() {
    let harness = VoiceHarness::new();
    let first = harness.connect_client().await;
    let request = harness.session().await;
    let second = harness.call(request.clone()).await;
    assert_eq!(first.received(), "closed: TakenOver\n");
    assert_eq!(second.received(), "ready fake/1 resumed=true\n");
    let forged = CallRequest { may_resume: false, ..request };
    let third = harness.call(forged).await;
    assert!(third.received().contains("You are in a call already"));
}

#[tokio::test(start_paused = true)]
async fn an_open_confirmation_is_shown_again_to_a_client_that_comes_back() {
    let harness = VoiceHarness::new();
    let mut client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("Pay."),
            tool_calls(&[("call-0000001", "pay", json!({ "what": "rent" }))]),
            turn_complete(),
        ])
        .await;
    let token = client.token();
    client.disconnect().await;
    let client = harness.call(harness.session().await).await;
    assert!(client.received().contains("asked function-call-0000001"));
    assert_eq!(client.token(), token);
    client.send(ClientAction::Confirm(token, true)).await;
    assert_eq!(harness.runs("pay"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_pinged_and_dropped() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(client.received(), "ping\n");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(harness.agent.active_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_new_call_ends_one_whose_client_is_away() {
    let harness = VoiceHarness::new();
    let mut client = harness.connect_client().await;
    client.disconnect().await;
    let client = harness.connect_client().await;
    run_until_idle().await;
    assert_eq!(harness.agent.active_calls(), 1);
    harness.model.send_all([user_said("Hello."), audio(960)]).await;
    assert_eq!(client.received(), "user: Hello.\naudio 960\n");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_opens_and_closes_at_once_is_given_up() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    for _ in 0..20 {
        if harness.agent.active_calls() == 0 {
            break;
        }
        harness.model.drop_connection().await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(harness.agent.active_calls(), 0);
    assert!(harness.model.setups().len() <= 7, "{}", harness.model.setups().len());
    assert!(client.received().contains("error UNAVAILABLE"));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_the_model_has_not_mentioned_is_asked_for_again() {
    let harness = VoiceHarness::new();
    let _page = harness.connect_client().await;
    let look = tool_calls(&[("call-0000001", "slow_look", json!({ "what": "x" }))]);
    harness
        .model
        .send_all([user_said("Is it there?"), model_said("Let me look."), look, turn_complete()])
        .await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(harness.model.take_inputs(), "1 result function-call-0000001 {\"results\":[\"x\"]} last\n");
    harness.model.drop_connection().await;
    let setup = harness.model.setups().pop().unwrap();
    assert!(setup.asks, "{setup:?}");
}

#[tokio::test(start_paused = true)]
async fn an_undelivered_result_waits_for_the_next_call() {
    let harness = VoiceHarness::new();
    let mut client = harness.connect_client().await;
    harness
        .model
        .send_all([user_said("Book."), tool_calls(&[("call-0000001", "slow_book", json!({ "what": "x" }))])])
        .await;
    harness.model.fails.lock().unwrap().extend([LiveErrorKind::Lost; 20]);
    harness.model.drop_connection().await;
    client.disconnect().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!((harness.agent.active_calls(), harness.runs("slow_book")), (0, 1));
    harness.model.fails.lock().unwrap().clear();
    let client = harness.call(harness.session().await).await;
    run_until_idle().await;
    let received = client.received();
    assert!(received.contains("result function-call-0000001 {\"did\":\"x\"}"), "{received}");
    harness.model.send_all([model_said("One moment."), turn_complete()]).await;
    let inputs = harness.model.take_inputs();
    assert!(inputs.contains("An earlier call of slow_book has come to this"), "{inputs}");
}

#[tokio::test(start_paused = true)]
async fn the_time_left_of_a_provider_connection_is_at_most_an_hour() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness.model.send(LiveEvent::GoingAway { left: Some(Duration::from_secs(u64::MAX / 2)) }).await;
    client.send_text("Still there?").await;
    assert_eq!(client.received(), "user: Still there?\n");
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_outdated_context_is_rejected() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    harness
        .model
        .send_all([
            user_said("One."),
            model_said("First."),
            turn_complete(),
            LiveEvent::ResumptionHandle(Some("h1".into())),
        ])
        .await;
    *harness.model.delay.lock().unwrap() = Duration::from_millis(600);
    harness.model.send(LiveEvent::GoingAway { left: Some(Duration::from_secs(50)) }).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(harness.model.setups().len(), 2, "another connection is on its way");
    client.send_text("Two?").await;
    assert_eq!(harness.model.take_inputs(), "1 text Two?\n", "the one that stands is asked");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        harness.model.take_inputs(),
        "2 closed\n",
        "and the new one, which does not know of it, is not"
    );
    harness.model.send_on(0, [model_said("Second."), turn_complete()]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let setups = harness.model.setups();
    assert_eq!(setups.len(), 3, "in the next pause there is another one");
    assert!(!setups[2].asks, "{:?}", setups[2]);
    assert_eq!(harness.model.take_inputs(), "1 closed\n");
}
