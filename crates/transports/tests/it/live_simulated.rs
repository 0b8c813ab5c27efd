//! Our clients and the simulated providers, which know nothing of each other, in whole conversations.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{LiveEvent, LiveInput};
use quarterdeck_simulator::live::{LiveSimulator, Scenario};
use quarterdeck_simulator::realtime::{Answer, RealtimeSimulator};
use quarterdeck_transports::live::{DialFuture, Dialer, Stream};
use quarterdeck_transports::{GeminiLive, GeminiLiveConfig, OpenAiRealtime, OpenAiRealtimeConfig};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::io::DuplexStream;

use crate::live_caller::Caller;

/// Starts a simulator at the other end of every stream.
struct Simulated<F>(F);

impl<F: Fn(DuplexStream) + Send + Sync> Dialer for Simulated<F> {
    fn dial(&self, _: &Url) -> DialFuture {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        (self.0)(theirs);
        Box::pin(async move { Ok(Box::new(ours) as Box<dyn Stream>) })
    }
}

fn openai(simulator: &RealtimeSimulator) -> OpenAiRealtime {
    let simulator = simulator.clone();
    let dialer = Simulated(move |stream| {
        let simulator = simulator.clone();
        tokio::spawn(async move { simulator.serve(stream).await });
    });
    OpenAiRealtime::new(OpenAiRealtimeConfig::new("k")).unwrap().with_dialer(Arc::new(dialer))
}

fn gemini(simulator: &LiveSimulator, model: &str) -> GeminiLive {
    let simulator = simulator.clone();
    let dialer = Simulated(move |stream| {
        let simulator = simulator.clone();
        tokio::spawn(async move { simulator.serve(stream).await });
    });
    let config = GeminiLiveConfig { model: model.to_owned(), ..GeminiLiveConfig::new("k") };
    GeminiLive::new(config).unwrap().with_dialer(Arc::new(dialer))
}

fn call(then: &str) -> Answer {
    Answer::Call { name: "tide".to_owned(), arguments: json!({"at": "Oslo"}), then: then.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn openai_is_spoken_with_and_calls_a_tool() {
    let simulator = RealtimeSimulator::new([call("Two metres."), Answer::Say("Good bye.".to_owned())]);
    let mut user = Caller::calls(&openai(&simulator), None).await;
    user.speak(500, 8_000).await;
    user.speak(500, 0).await;
    user.turns(1).await;
    user.connection.send(LiveInput::Text("Thank you"));
    user.turns(2).await;
    assert_eq!(
        user.hang_up().await,
        [
            "heard (something was said)",
            "calls tide",
            "over",
            "said Two metres.",
            "audio",
            "over",
            "said Good bye.",
            "audio",
            "over",
        ]
    );
    let report = simulator.report();
    assert_eq!((report.connections, report.heard, report.read), (1, 1, vec!["Thank you".to_owned()]));
    assert_eq!(report.calls[0].outputs, [r#"{"metres":2}"#]);
    assert_eq!(report.faults, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn openai_is_interrupted_by_speech_and_truncates_the_answer() {
    let long =
        "This goes on and on and on and on and on and on until the caller has heard enough of it".to_owned();
    let simulator = RealtimeSimulator::new([Answer::Say(long), Answer::Say("Sorry.".to_owned())]);
    let mut user = Caller::calls(&openai(&simulator), None).await;
    user.connection.send(LiveInput::Text("Tell me everything"));
    user.speak(60, 0).await;
    user.speak(200, 8_000).await;
    user.speak(500, 0).await;
    user.turns(2).await;
    let story = user.hang_up().await;
    assert!(story.contains(&"interrupted".to_owned()), "{story:?}");
    assert_eq!(story[story.len() - 3..], ["said Sorry.", "audio", "over"], "{story:?}");
    let report = simulator.report();
    assert_eq!((report.cancelled, report.truncated.len(), report.faults), (1, 1, Vec::<String>::new()));
    assert!(report.truncated[0] < 300, "{:?}", report.truncated);
}

#[tokio::test(start_paused = true)]
async fn openai_is_interrupted_by_the_client() {
    let simulator = RealtimeSimulator::new([Answer::Say("One two three four five six".to_owned())]);
    let mut user = Caller::calls(&openai(&simulator), None).await;
    user.connection.send(LiveInput::Text("Count"));
    user.listen(Duration::from_secs(5), |event| matches!(event, LiveEvent::Audio(_))).await;
    user.connection.send(LiveInput::Interrupt { heard: Some(Duration::from_millis(100)) });
    user.turns(1).await;
    let story = user.hang_up().await;
    assert_eq!(story.last().map(String::as_str), Some("over"), "{story:?}");
    let report = simulator.report();
    assert_eq!((report.cancelled, report.truncated, report.faults), (1, vec![100], Vec::new()));
}

fn example(name: &str) -> LiveSimulator {
    let path = format!("{}/../../scenarios/{name}.json", env!("CARGO_MANIFEST_DIR"));
    LiveSimulator::from_scenario(Scenario::parse(&std::fs::read_to_string(path).unwrap()).unwrap())
}

/// Plays an example of so many turns, each begun by speech, and gives what there was to complain about.
async fn played(name: &str, model: &str, turns: usize) -> (Vec<String>, Vec<Value>, Vec<String>) {
    let simulator = example(name);
    let mut user = Caller::calls(&gemini(&simulator, model), None).await;
    for turn in 0..turns {
        user.speak(600, 8_000).await;
        user.speak(1_000, 0).await;
        user.turns(turn + 1).await;
    }
    let story = user.hang_up().await;
    let report = simulator.report();
    let answers = report.calls.into_iter().flat_map(|call| call.answers).collect();
    (story, answers, report.faults)
}

#[tokio::test(start_paused = true)]
async fn gemini_is_spoken_with_and_calls_a_tool() {
    for model in ["gemini-3.8-live", "gemini-3.1-flash-live-preview", "gemini-2.5-flash-native-audio"] {
        let (story, answers, faults) = played("tool-call", model, 1).await;
        assert_eq!(faults, Vec::<String>::new(), "{model}");
        assert_eq!(answers, [json!({"output": {"metres": 2}})], "{model}");
        assert!(story.contains(&"calls kb_search".to_owned()), "{model}: {story:?}");
        assert!(story.contains(&"audio".to_owned()), "{model}: {story:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn gemini_is_interrupted_by_speech() {
    let simulator = example("barge-in");
    let mut user = Caller::calls(&gemini(&simulator, "gemini-3.8-live"), None).await;
    user.speak(600, 8_000).await;
    user.speak(1_500, 0).await;
    user.speak(600, 8_000).await;
    user.speak(1_000, 0).await;
    user.turns(2).await;
    let story = user.hang_up().await;
    let report = simulator.report();
    assert_eq!((report.interruptions, report.faults), (1, Vec::<String>::new()), "{story:?}");
    assert!(story.contains(&"interrupted".to_owned()), "{story:?}");
    assert!(story.contains(&"said In 1892.".to_owned()), "{story:?}");
}

#[tokio::test(start_paused = true)]
async fn gemini_resumes_with_a_handle() {
    let simulator = example("going-away");
    let model = gemini(&simulator, "gemini-3.8-live");
    let mut user = Caller::calls(&model, None).await;
    user.speak(600, 8_000).await;
    user.speak(600, 0).await;
    user.turns(1).await;
    user.listen(Duration::from_millis(200), |_| false).await;
    let handle = user.handle.clone();
    assert!(handle.is_some(), "{:?}", user.story.0);
    user.hang_up().await;
    let mut user = Caller::calls(&model, handle).await;
    user.speak(600, 8_000).await;
    user.speak(1_000, 0).await;
    user.turns(1).await;
    let story = user.hang_up().await;
    assert!(story.contains(&"said I am.".to_owned()), "{story:?}");
    let report = simulator.report();
    assert_eq!((report.resumptions, report.faults), (1, Vec::<String>::new()));
}

#[tokio::test(start_paused = true)]
async fn gemini_is_interrupted_by_the_client() {
    let simulator = example("hello");
    let mut user = Caller::calls(&gemini(&simulator, "gemini-3.8-live"), None).await;
    user.listen(Duration::from_secs(5), |event| matches!(event, LiveEvent::Audio(_))).await;
    user.connection.send(LiveInput::Interrupt { heard: None });
    user.turns(1).await;
    // The next answer is heard again.
    user.connection.send(LiveInput::Text("Are you there?"));
    user.turns(2).await;
    let story = user.hang_up().await;
    let report = simulator.report();
    assert_eq!((report.interruptions, report.faults), (1, Vec::<String>::new()), "{story:?}");
    assert_eq!(story[story.len() - 3..], ["audio", "said All right. I am here.", "over"], "{story:?}");
}
