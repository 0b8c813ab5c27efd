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

use super::stage::{Page, Says, Studio};

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
fn said(told: &str) -> String {
    told.lines().filter_map(|line| line.strip_prefix("model: ")).collect()
}

/// Fails with everything that is known.
fn assert_clean(report: &Report, told: &str, what: &str) {
    assert!(report.faults.is_empty(), "{what}: {:?}\n{told}\n{report:#?}", report.faults);
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

/// Plays the conversation and gives what the page was told.
async fn converse(studio: &Studio, page: &Page) -> String {
    for text in ["Good day", "Book the room", "Many thanks"] {
        page.writes(text).await;
        pass(Duration::from_secs(8)).await;
        page.says(Says::Drained).await;
    }
    assert_eq!(studio.agent.active_calls(), 1, "the call is on");
    page.told()
}

#[tokio::test(start_paused = true)]
async fn a_connection_cut_at_every_frame_loses_nothing_and_does_nothing_twice() {
    let (whole, simulator) = model(two_tools());
    let studio = Studio::spoken_with(whole);
    let page = studio.calls(CallRequest::default()).await;
    converse(&studio, &page).await;
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
    let studio = Studio::spoken_with(model);
    let page = studio.calls(CallRequest::default()).await;
    let told = converse(&studio, &page).await;
    let report = simulator.report();
    let what = format!("cut {after:?}");
    assert_clean(&report, &told, &what);
    assert_eq!((studio.runs("book"), studio.runs("look")), (1, 1), "{what}\n{told}\n{report:#?}");
    assert!(said(&told).contains("You are welcome."), "{what}: the call goes on\n{told}\n{report:#?}");
    assert!(said(&told).contains("booked."), "{what}: the booking is answered\n{told}\n{report:#?}");
    report.connections > 1
}

#[tokio::test(start_paused = true)]
async fn half_an_hour_with_three_departures_and_two_losses_loses_no_turn() {
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
    let studio = Studio::spoken_with(model);
    let page = studio.calls(CallRequest::default()).await;
    let began = tokio::time::Instant::now();
    let mut told = String::new();
    for number in 1..=TURNS {
        page.writes(&format!("Question {number}?")).await;
        // A microphone that hears nothing but the room.
        for _ in 0..60 {
            page.says(Says::Audio(vec![0; 640])).await;
            pass(Duration::from_millis(995)).await;
        }
        page.says(Says::Drained).await;
        let now = page.told();
        assert!(
            said(&now).contains(&format!("Answer number {number}.")),
            "turn {number}: {now}\n{:#?}",
            simulator.report()
        );
        told.push_str(&now);
    }
    assert!(began.elapsed() >= Duration::from_secs(1_800));
    let report = simulator.report();
    assert_clean(&report, &told, "half an hour");
    assert_eq!((report.turns, report.connections), (TURNS, 6), "{report:#?}");
    assert_eq!(studio.runs("look") as usize, TURNS, "nothing is looked up twice");
    assert!(!told.contains("error"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_mid_conversation_loses_no_turn() {
    let (model, simulator) = model(two_tools());
    let studio = Studio::spoken_with(model.clone());
    let page = studio.calls(CallRequest::default()).await;
    page.writes("Good day").await;
    pass(Duration::from_secs(20)).await;
    studio.agent.drain(Duration::from_secs(1)).await;
    pass(Duration::from_secs(2)).await;
    let opening = studio.session().await;
    let next = studio.restarted_with(model);
    drop(studio);
    let page = next.calls(opening).await;
    assert!(page.told().starts_with("ready gemini/gemini-3.8-live resumed=true\n"));
    for text in ["Book the room", "Many thanks"] {
        page.writes(text).await;
        pass(Duration::from_secs(20)).await;
    }
    let (report, told) = (simulator.report(), page.told());
    assert_clean(&report, &told, "restart");
    assert_eq!((report.turns, report.resumptions, next.runs("book")), (3, 1, 1), "{told}");
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
fn realtime(simulator: RealtimeSimulator) -> Studio {
    let config = OpenAiRealtimeConfig {
        base_url: "wss://simulator".into(),
        ..OpenAiRealtimeConfig::new("no key is needed")
    };
    let model = OpenAiRealtime::new(config).unwrap().with_dialer(Arc::new(RealtimePipe(simulator)));
    Studio::spoken_with(Arc::new(model))
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
    let studio = realtime(simulator.clone());
    let page = studio.calls(CallRequest::default()).await;
    let told = converse(&studio, &page).await;
    let report = simulator.report();
    assert!(told.starts_with("ready openai/gpt-realtime-2.1 resumed=false\n"), "{told}");
    assert_eq!(studio.runs("book"), 1, "{told}\n{report:#?}");
    assert!(said(&told).contains("Hello.") && said(&told).contains("It is booked."), "{told}\n{report:#?}");
    assert_eq!(told.matches("turn complete").count(), 3, "{told}");
    assert!(report.faults.is_empty(), "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn another_provider_cut_at_every_event_goes_on_and_does_nothing_twice() {
    let mut cuts = 0;
    for count in 0.. {
        let mut is_cut = false;
        for after in [DisconnectAfter::Sent(count), DisconnectAfter::Received(count)] {
            let simulator = realtime_answers().with_disconnect(Disconnect { connection: 1, after });
            let studio = realtime(simulator.clone());
            let page = studio.calls(CallRequest::default()).await;
            let told = converse(&studio, &page).await;
            let report = simulator.report();
            let all = format!("cut {after:?}\n{told}\n{report:#?}");
            assert!(report.faults.is_empty(), "{all}");
            assert_eq!(studio.runs("book"), 1, "{all}");
            assert!(said(&told).contains("booked"), "the booking is answered: {all}");
            assert_eq!(told.matches("turn complete").count(), 3, "the call goes on: {all}");
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

async fn speak(page: &Page, millis: usize, loudness: i16) {
    for piece in sound(millis, loudness) {
        page.says(Says::Audio(piece)).await;
        pass(Duration::from_millis(15)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_speaks_is_answered_and_barges_in() {
    let long = "This is a rather long answer that somebody may well want to cut short before it ends.";
    let (model, simulator) = model(scenario(&json!([
        { "begins": "speech", "heard": "Tell me.", "steps": [{ "say": long }] },
        { "begins": "speech", "heard": "Stop.", "steps": [{ "say": "Gladly." }] },
    ])));
    let studio = Studio::spoken_with(model);
    let page = studio.calls(CallRequest::default()).await;
    speak(&page, 800, 8_000).await;
    speak(&page, 1_000, 0).await;
    let told = page.told();
    assert!(told.contains("person: Tell me.") && told.contains("audio "), "{told}");
    speak(&page, 800, 8_000).await;
    let told = page.told();
    assert!(told.contains("interrupted"), "{told}");
    speak(&page, 3_000, 0).await;
    pass(Duration::from_secs(3)).await;
    let told = page.told();
    assert!(told.contains("person: Stop.") && said(&told).contains("Gladly."), "{told}");
    let report = simulator.report();
    assert_clean(&report, &told, "speech");
    assert_eq!(report.interruptions, 1);
}

#[tokio::test(start_paused = true)]
async fn another_provider_is_barged_into_while_it_speaks_and_while_it_is_only_heard() {
    let say = |text: &str| Answer::Say(text.into());
    let simulator = RealtimeSimulator::new([
        say(&"word ".repeat(400)),
        say("One two three four five six."),
        say("Gladly."),
    ]);
    let studio = realtime(simulator.clone());
    let page = studio.calls(CallRequest::default()).await;
    let mut told = String::new();
    for interruptions in [0, 1, 2] {
        speak(&page, 300, 8_000).await;
        speak(&page, 600, 0).await;
        told.push_str(&page.told());
        assert_eq!(told.matches("interrupted").count(), interruptions, "{told}");
    }
    pass(Duration::from_secs(3)).await;
    let report = simulator.report();
    assert!(report.faults.is_empty(), "{report:#?}");
    assert_eq!((report.heard, report.cancelled, report.truncated.len()), (3, 1, 2), "{report:#?}");
    page.writes("Are you there?").await;
    pass(Duration::from_secs(3)).await;
    told.push_str(&page.told());
    assert_eq!(told.matches("turn complete").count(), 3, "all but the one that was cut off: {told}");
}
