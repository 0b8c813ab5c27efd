//! The voice agent, the client of Gemini Live and the simulator of it, in one process and on a clock that jumps.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use quarterdeck_contracts::LiveModel;
use quarterdeck_simulator::live::{Disconnect, DisconnectAfter, LiveSimulator, Report, Scenario};
use quarterdeck_simulator::realtime::{Answer, RealtimeSimulator};
use quarterdeck_transports::live::{DialFuture, Dialer};
use quarterdeck_transports::{GeminiLive, GeminiLiveConfig, OpenAiRealtime, OpenAiRealtimeConfig};
use serde_json::{Value, json};
use url::Url;

use super::harness::{ClientAction, FakeClient, VoiceHarness};

struct Pipe(LiveSimulator);

impl Dialer for Pipe {
    fn dial(&self, _: &Url) -> DialFuture {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let simulator = self.0.clone();
        tokio::spawn(async move { simulator.serve(theirs).await });
        Box::pin(std::future::ready(Ok(Box::new(ours) as _)))
    }
}

/// A model that plays a scenario, and what can be asked about it.
pub(crate) fn model(scenario: Scenario) -> (Arc<dyn LiveModel>, LiveSimulator) {
    let simulator = LiveSimulator::from_scenario(scenario);
    let config =
        GeminiLiveConfig { base_url: "wss://simulator".into(), ..GeminiLiveConfig::new("no key is needed") };
    let model = GeminiLive::new(config).unwrap().with_dialer(Arc::new(Pipe(simulator.clone())));
    (Arc::new(model), simulator)
}

pub(crate) fn scenario(turns: &Value) -> Scenario {
    Scenario::parse(&json!({ "turns": turns }).to_string()).unwrap()
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Everything that the model said.
fn said(received: &str) -> String {
    received.lines().filter_map(|line| line.strip_prefix("model: ")).collect()
}

/// Fails with everything that is known.
fn assert_clean(report: &Report, received: &str, what: &str) {
    assert!(report.faults.is_empty(), "{what}: {:?}\n{received}\n{report:#?}", report.faults);
}

/// A turn with two tools, one of which writes, and a turn after it.
fn two_tools() -> Scenario {
    scenario(&json!([
        { "begins": "text", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "containing": "room", "steps": [
            { "call": { "name": "look", "args": { "what": "room" } } },
            { "call": { "name": "book", "args": { "what": "room" } } },
            { "say": "It is booked." },
        ] },
        { "begins": "text", "containing": "thank", "steps": [{ "say": "You are welcome." }] },
    ]))
}

/// Plays the conversation and gives what the client was told.
async fn converse(harness: &VoiceHarness, client: &FakeClient) -> String {
    for text in ["Good day", "Book the room", "Many thanks"] {
        client.send_text(text).await;
        pass(Duration::from_secs(8)).await;
        client.send(ClientAction::Drained).await;
    }
    assert_eq!(harness.agent.active_calls(), 1, "the call is on");
    client.received()
}

#[tokio::test(start_paused = true)]
async fn a_connection_cut_at_every_frame_loses_nothing_and_does_nothing_twice() {
    let (whole, simulator) = model(two_tools());
    let harness = VoiceHarness::with_model(whole);
    let client = harness.call(CallRequest::default()).await;
    converse(&harness, &client).await;
    assert_eq!(simulator.report().turns, 3);
    let mut cuts = 0;
    for count in 0.. {
        let sent = cut(DisconnectAfter::Sent(count)).await;
        let received = cut(DisconnectAfter::Received(count)).await;
        cuts += usize::from(sent) + usize::from(received);
        // The conversation does not have so many frames.
        if count > 0 && !sent && !received {
            break;
        }
    }
    assert!(cuts > 20, "only {cuts} cuts");
}

/// The same conversation with a cut. Whether it came to that.
async fn cut(after: DisconnectAfter) -> bool {
    let (model, simulator) = model(two_tools().with_disconnect(Disconnect { connection: 1, after }));
    let harness = VoiceHarness::with_model(model);
    let client = harness.call(CallRequest::default()).await;
    let received = converse(&harness, &client).await;
    let report = simulator.report();
    let what = format!("cut {after:?}");
    assert_clean(&report, &received, &what);
    assert_eq!((harness.runs("book"), harness.runs("look")), (1, 1), "{what}\n{received}\n{report:#?}");
    assert!(
        said(&received).contains("You are welcome."),
        "{what}: the call goes on\n{received}\n{report:#?}"
    );
    assert!(said(&received).contains("booked."), "{what}: the booking is answered\n{received}\n{report:#?}");
    report.connections > 1
}

#[tokio::test(start_paused = true)]
async fn half_an_hour_with_three_handovers_and_two_reconnects_loses_no_turn() {
    const TURNS: usize = 30;
    let turn = |number: usize| {
        let mut steps = vec![json!({ "call": { "name": "look", "args": { "what": format!("{number}") } } })];
        let say = json!({ "say": format!("Answer number {number}.") });
        match number {
            10 => steps.extend([json!({ "drop": true, "on": 2 }), say]),
            20 => steps.extend([json!({ "say": "Answer" }), json!({ "drop": true, "on": 4 }), say]),
            5 | 15 | 25 => {
                let on = if number == 5 {
                    1
                } else if number == 15 {
                    3
                } else {
                    5
                };
                steps.extend([json!({ "goAway": { "leftMs": 50_000 }, "on": on }), say]);
            }
            _ => steps.push(say),
        }
        json!({ "begins": "text", "containing": format!("Question {number}?"), "steps": steps })
    };
    let (model, simulator) = model(scenario(&(1..=TURNS).map(turn).collect()));
    let harness = VoiceHarness::with_model(model);
    let client = harness.call(CallRequest::default()).await;
    let began = tokio::time::Instant::now();
    let mut received = String::new();
    for number in 1..=TURNS {
        client.send_text(&format!("Question {number}?")).await;
        // A microphone that hears nothing but the room.
        for _ in 0..60 {
            client.send(ClientAction::Audio(vec![0; 640])).await;
            pass(Duration::from_millis(995)).await;
        }
        client.send(ClientAction::Drained).await;
        let now = client.received();
        assert!(
            said(&now).contains(&format!("Answer number {number}.")),
            "turn {number}: {now}\n{:#?}",
            simulator.report()
        );
        received.push_str(&now);
    }
    assert!(began.elapsed() >= Duration::from_secs(1_800));
    let report = simulator.report();
    assert_clean(&report, &received, "half an hour");
    assert_eq!((report.turns, report.connections), (TURNS, 6), "{report:#?}");
    assert_eq!(harness.runs("look") as usize, TURNS, "nothing is looked up twice");
    assert!(!received.contains("error"), "{received}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_mid_conversation_loses_no_turn() {
    let (model, simulator) = model(two_tools());
    let harness = VoiceHarness::with_model(model.clone());
    let client = harness.call(CallRequest::default()).await;
    client.send_text("Good day").await;
    pass(Duration::from_secs(20)).await;
    harness.agent.drain(Duration::from_secs(1)).await;
    pass(Duration::from_secs(2)).await;
    let request = harness.session().await;
    let next = harness.restarted_with(model);
    drop(harness);
    let client = next.call(request).await;
    assert!(client.received().starts_with("ready gemini/gemini-3.8-live resumed=true\n"));
    for text in ["Book the room", "Many thanks"] {
        client.send_text(text).await;
        pass(Duration::from_secs(20)).await;
    }
    let (report, received) = (simulator.report(), client.received());
    assert_clean(&report, &received, "restart");
    assert_eq!((report.turns, report.resumptions, next.runs("book")), (3, 1, 1), "{received}");
}

struct RealtimePipe(RealtimeSimulator);

impl Dialer for RealtimePipe {
    fn dial(&self, _: &Url) -> DialFuture {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let simulator = self.0.clone();
        tokio::spawn(async move { simulator.serve(theirs).await });
        Box::pin(std::future::ready(Ok(Box::new(ours) as _)))
    }
}

/// The other provider, which forgets everything when its connection is lost.
fn realtime(simulator: RealtimeSimulator) -> VoiceHarness {
    let config = OpenAiRealtimeConfig {
        base_url: "wss://simulator".into(),
        ..OpenAiRealtimeConfig::new("no key is needed")
    };
    let model = OpenAiRealtime::new(config).unwrap().with_dialer(Arc::new(RealtimePipe(simulator)));
    VoiceHarness::with_model(Arc::new(model))
}

/// Greets, books and thanks.
fn realtime_answers() -> RealtimeSimulator {
    let book = Answer::Call {
        name: "book".into(),
        arguments: json!({ "what": "room" }),
        then: "It is booked.".into(),
    };
    let say = |text: &str| Answer::Say(text.into());
    RealtimeSimulator::by_keyword([
        ("Good day", say("Hello.")),
        ("thanks", say("You are welcome.")),
        ("room", book),
        ("go on from there", say("Where was I?")),
    ])
}

#[tokio::test(start_paused = true)]
async fn another_provider_behind_the_same_trait_calls_the_same_tools() {
    let simulator = realtime_answers();
    let harness = realtime(simulator.clone());
    let client = harness.call(CallRequest::default()).await;
    let received = converse(&harness, &client).await;
    let report = simulator.report();
    assert!(received.starts_with("ready openai/gpt-realtime-2.1 resumed=false\n"), "{received}");
    assert_eq!(harness.runs("book"), 1, "{received}\n{report:#?}");
    assert!(
        said(&received).contains("Hello.") && said(&received).contains("It is booked."),
        "{received}\n{report:#?}"
    );
    assert_eq!(received.matches("turn complete").count(), 3, "{received}");
    assert!(report.faults.is_empty(), "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn another_provider_cut_at_every_event_goes_on_and_does_nothing_twice() {
    let mut cuts = 0;
    for count in 0.. {
        let mut is_cut = false;
        for after in [DisconnectAfter::Sent(count), DisconnectAfter::Received(count)] {
            let simulator = realtime_answers().with_disconnect(Disconnect { connection: 1, after });
            let harness = realtime(simulator.clone());
            let client = harness.call(CallRequest::default()).await;
            let received = converse(&harness, &client).await;
            let report = simulator.report();
            let all = format!("cut {after:?}\n{received}\n{report:#?}");
            assert!(report.faults.is_empty(), "{all}");
            assert_eq!(harness.runs("book"), 1, "{all}");
            assert!(said(&received).contains("booked"), "the booking is answered: {all}");
            assert_eq!(received.matches("turn complete").count(), 3, "the call goes on: {all}");
            assert!(report.calls.iter().all(|call| call.outputs.len() <= 1), "{all}");
            is_cut |= report.connections > 1;
            cuts += usize::from(report.connections > 1);
        }
        if count > 0 && !is_cut {
            break;
        }
    }
    assert!(cuts > 40, "only {cuts} cuts");
}

/// A tone as loud as a voice, or silence, in pieces of 20 ms.
fn sound(millis: usize, loudness: i16) -> Vec<Vec<u8>> {
    let piece: Vec<u8> = (0..320_i16)
        .flat_map(|place| (if place % 40 < 20 { loudness } else { -loudness }).to_le_bytes())
        .collect();
    vec![piece; millis / 20]
}

async fn speak(client: &FakeClient, millis: usize, loudness: i16) {
    for piece in sound(millis, loudness) {
        client.send(ClientAction::Audio(piece)).await;
        pass(Duration::from_millis(15)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_who_speaks_is_answered_and_can_barge_in() {
    let long = "This is a rather long answer that a user may well want to cut short before it ends.";
    let (model, simulator) = model(scenario(&json!([
        { "begins": "speech", "heard": "Tell me.", "steps": [{ "say": long }] },
        { "begins": "speech", "heard": "Stop.", "steps": [{ "say": "Gladly." }] },
    ])));
    let harness = VoiceHarness::with_model(model);
    let client = harness.call(CallRequest::default()).await;
    speak(&client, 800, 8_000).await;
    speak(&client, 1_000, 0).await;
    let received = client.received();
    assert!(received.contains("user: Tell me.") && received.contains("audio "), "{received}");
    speak(&client, 800, 8_000).await;
    let received = client.received();
    assert!(received.contains("interrupted"), "{received}");
    speak(&client, 3_000, 0).await;
    pass(Duration::from_secs(3)).await;
    let received = client.received();
    assert!(received.contains("user: Stop.") && said(&received).contains("Gladly."), "{received}");
    let report = simulator.report();
    assert_clean(&report, &received, "speech");
    assert_eq!(report.interruptions, 1);
}

#[tokio::test(start_paused = true)]
async fn another_provider_can_be_interrupted_while_it_speaks_and_during_playback() {
    let say = |text: &str| Answer::Say(text.into());
    let simulator = RealtimeSimulator::new([
        say(&"word ".repeat(400)),
        say("One two three four five six."),
        say("Gladly."),
    ]);
    let harness = realtime(simulator.clone());
    let client = harness.call(CallRequest::default()).await;
    let mut received = String::new();
    for interruptions in [0, 1, 2] {
        speak(&client, 300, 8_000).await;
        speak(&client, 600, 0).await;
        received.push_str(&client.received());
        assert_eq!(received.matches("interrupted").count(), interruptions, "{received}");
    }
    pass(Duration::from_secs(3)).await;
    let report = simulator.report();
    assert!(report.faults.is_empty(), "{report:#?}");
    assert_eq!((report.heard, report.cancelled, report.truncated.len()), (3, 1, 2), "{report:#?}");
    client.send_text("Are you there?").await;
    pass(Duration::from_secs(3)).await;
    received.push_str(&client.received());
    assert_eq!(received.matches("turn complete").count(), 3, "all but the one that was cut off: {received}");
}

const FAREWELL: &str = "Let us take a break.";

/// Plays a user who is blocked. Gives what the client got before it had played everything, and after.
async fn be_blocked(harness: &VoiceHarness) -> (String, String) {
    let client = harness.call(CallRequest::default()).await;
    client.send_text("You fool!").await;
    let mut before = String::new();
    let is_said = |received: &str| {
        // The model may begin to speak before the handler, on its own thread, has answered.
        received.contains("\nresult ")
            && said(received).contains(FAREWELL)
            && received.trim_end().ends_with("turn complete")
    };
    for _ in 0..60 {
        pass(Duration::from_millis(250)).await;
        before.push_str(client.received().trim_start_matches('\n'));
        if is_said(&before) {
            break;
        }
    }
    assert_eq!(harness.agent.active_calls(), 1, "the farewell has not been played: {before}");
    client.send(ClientAction::Drained).await;
    pass(Duration::from_millis(100)).await;
    (before, client.received())
}

fn assert_heard(before: &str, after: &str) {
    assert!(said(before).contains(FAREWELL), "a transcript: {before}");
    let (_, since) = before.split_once("result ").unwrap_or_else(|| panic!("no result: {before}"));
    assert!(since.contains("\naudio "), "a sound after the block: {before}");
    assert_eq!(after, format!("end blocked closing={FAREWELL} text=-\nclosed: Ended\n"));
}

#[tokio::test(start_paused = true)]
async fn a_blocked_user_hears_the_farewell_from_gemini_whether_it_speaks_by_itself_or_not() {
    let call = json!({ "call": { "name": "shut_out", "args": { "what": "x" } } });
    let asked = json!({ "begins": "text", "containing": "farewell", "steps": [{ "say": FAREWELL }] });
    for turns in [
        json!([{ "begins": "text", "steps": [call, { "say": FAREWELL }] }]),
        json!([{ "begins": "text", "steps": [call, { "await": "answers" }] }, asked]),
        json!([{ "begins": "text", "steps": [call, { "say": "Right." }] }, asked]),
    ] {
        let (model, simulator) = model(scenario(&turns));
        let harness = VoiceHarness::with_model(model);
        let (before, after) = be_blocked(&harness).await;
        assert_heard(&before, &after);
        assert_clean(&simulator.report(), &before, "a block");
    }
}

#[tokio::test(start_paused = true)]
async fn a_blocked_user_hears_the_farewell_from_another_provider_too() {
    for (then, more) in [(FAREWELL, vec![]), ("", vec![Answer::Say(FAREWELL.into())])] {
        let call =
            Answer::Call { name: "shut_out".into(), arguments: json!({ "what": "x" }), then: then.into() };
        let simulator = RealtimeSimulator::new([call].into_iter().chain(more).collect::<Vec<_>>());
        let harness = realtime(simulator.clone());
        let (before, after) = be_blocked(&harness).await;
        assert_heard(&before, &after);
        let report = simulator.report();
        assert!(report.faults.is_empty(), "{before}\n{report:#?}");
    }
}
