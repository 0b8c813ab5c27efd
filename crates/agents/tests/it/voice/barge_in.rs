//! A user who talks over an answer, heard by our own ear.

use std::time::Duration;

use quarterdeck_contracts::LiveEvent;
use quarterdeck_testkit::sound::speech;

use super::harness::{ClientAction, FakeClient, VoiceHarness, audio, model_said, turn_complete, user_said};

const FRAME: Duration = Duration::from_millis(20);

/// The user speaks for a while. Tells after how many milliseconds the client got what.
async fn speak(client: &FakeClient, time: Duration) -> Vec<(u128, String)> {
    let (mut received, mut now) = (Vec::new(), Duration::ZERO);
    for frame in speech(time, 0.4, 16_000).chunks_exact(320) {
        tokio::time::sleep(FRAME).await;
        now += FRAME;
        let bytes = frame.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        client.send(ClientAction::Audio(bytes)).await;
        let lines = client.received();
        received.extend(
            lines.lines().filter(|line| !line.is_empty()).map(|line| (now.as_millis(), line.to_owned())),
        );
    }
    received
}

#[tokio::test(start_paused = true)]
async fn speech_stops_playback_before_the_provider_has_noticed() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    let answer = [user_said("Tell me."), model_said("Once upon a time there was a ship."), audio(480_000)];
    harness.model.send_all(answer).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    client.received();
    harness.model.take_inputs();

    let received = speak(&client, Duration::from_secs(1)).await;
    let [(paused, pause), (stopped, stop)] = &received[..] else { panic!("{received:?}") };
    assert_eq!((pause.as_str(), stop.as_str()), ("pause", "interrupted"));
    assert!(*paused < 200 && *stopped < 500, "{received:?}");
    assert!(harness.model.take_inputs().contains("interrupt"), "the provider is told");

    harness.model.send_all([audio(960), LiveEvent::Interrupted { end_follows: true }, turn_complete()]).await;
    assert_eq!(
        client.received().trim(),
        "",
        "what still comes of it is not heard, and it is interrupted once"
    );
    harness.model.send_all([user_said("Stop."), model_said("Yes?"), audio(960)]).await;
    assert_eq!(client.received(), "user: Stop.\nmodel: Yes?\naudio 960\n");
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_is_told_what_the_user_has_heard() {
    let harness = VoiceHarness::new();
    let client = harness.connect_client().await;
    let answer = [user_said("Tell me."), model_said("Once upon a time there was a ship."), audio(480_000)];
    harness.model.send_all(answer).await;
    client.send(ClientAction::Played(Duration::from_secs(5))).await;
    client.send(ClientAction::Interrupt).await;
    harness.model.drop_connection().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let setup = harness.model.setups().pop().unwrap();
    assert_eq!(setup.history.last().unwrap().text, "Once upon a time");
}
