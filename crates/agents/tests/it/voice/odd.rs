//! Things in an order, or in a number, that nobody has thought of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use quarterdeck_contracts::{
    LiveConnecting, LiveEvent, LiveModel, LiveSetup, Provider, TranscriptPiece, TranscriptStage,
};
use serde_json::{Value, json};

use super::simulated::{model, scenario};
use super::stage::{Says, Studio, asks, audio, heard, over, said, settle};

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// How often each id was answered.
fn answered(got: &str) -> BTreeMap<String, usize> {
    let mut answers = BTreeMap::new();
    for line in got.lines() {
        if let Some(id) = line.split_once(" result ").and_then(|(_, rest)| rest.split(' ').next()) {
            *answers.entry(id.to_owned()).or_default() += 1;
        }
    }
    answers
}

fn cancels(ids: &[&str]) -> LiveEvent<'static> {
    LiveEvent::CallsCancelled(ids.iter().map(|id| format!("function-{id}")).collect())
}

#[tokio::test(start_paused = true)]
async fn calls_taken_back_after_their_answer_or_never_made_change_nothing() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    let look = |id: &str| asks(&[(id, "look", json!({ "what": "a" }))]);
    studio.model.sends([heard("Look."), look("0001")]).await;
    studio.model.sends([cancels(&["0001", "0002", ""]), cancels(&["0001"])]).await;
    studio.model.sends([over(), heard("Again."), look("0002"), over()]).await;
    pass(2).await;
    let got = studio.model.got();
    let once = BTreeMap::from([("function-0001".to_owned(), 1), ("function-0002".to_owned(), 1)]);
    assert_eq!(answered(&got), once, "what was taken back before it was made is answered: {got}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_taken_back_and_made_again_is_answered_once() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    for (tool, runs) in [("slow_look", 2), ("slow_book", 1)] {
        let call = || asks(&[(tool, tool, json!({ "what": "a" }))]);
        studio.model.sends([heard("Go."), call(), cancels(&[tool]), call()]).await;
        pass(10).await;
        studio.model.says(over()).await;
        let got = studio.model.got();
        assert_eq!(answered(&got), BTreeMap::from([(format!("function-{tool}"), 1)]), "{got}");
        assert!(studio.runs(tool) <= runs, "{tool} ran {} times", studio.runs(tool));
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_in_one_message_are_each_answered_once() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    let names: Vec<String> = (0..1_000).map(|number| format!("{number:04}")).collect();
    let calls: Vec<(&str, &str, Value)> =
        names.iter().map(|name| (name.as_str(), "book", json!({ "what": name }))).collect();
    studio.model.sends([heard("Everything."), asks(&calls)]).await;
    pass(5).await;
    let got = studio.model.got();
    let answers = answered(&got);
    assert!(answers.len() == 1_000 && answers.values().all(|count| *count == 1), "{}", answers.len());
    assert_eq!(got.lines().filter(|line| line.ends_with(" last")).count(), 1, "the turn is handed back once");
    assert_eq!(studio.runs("book"), 3, "no more than a turn's budget");
    page.writes("And now?").await;
    assert!(studio.model.got().contains("text And now?"), "the call goes on");
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_interruptions_does_nothing_twice_and_the_call_goes_on() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Book it."), asks(&[("0001", "slow_book", json!({ "what": "a" }))])]).await;
    for number in 0..500 {
        studio.model.sends([audio(960), LiveEvent::Interrupted { end_follows: true }, over()]).await;
        page.says(Says::Interrupt).await;
        if number % 50 == 0 {
            page.writes("No, wait.").await;
        }
    }
    pass(5).await;
    let got = studio.model.got();
    assert!(answered(&got).values().all(|count| *count == 1), "{:?}", answered(&got));
    assert_eq!(studio.runs("slow_book"), 1);
    let told = page.told();
    assert_eq!(told.matches(r#"result function-0001 {"did":"a"}"#).count(), 1, "the person is told once");
    studio.model.sends([heard("Hello?"), said("Yes."), over()]).await;
    assert!(page.told().contains("model: Yes."), "the call goes on");
}

#[tokio::test(start_paused = true)]
async fn a_word_that_comes_while_the_model_is_away_is_carried_out_and_told() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Pay."), asks(&[("0001", "pay", json!({ "what": "rent" }))]), over()]).await;
    studio.model.got();
    studio.model.breaks().await;
    page.says(Says::Confirm(page.token(), true)).await;
    page.says(Says::Confirm(page.token(), true)).await;
    pass(10).await;
    // It may have been about to say something when it was lost, and says it first.
    studio.model.sends([said("One moment."), over()]).await;
    assert_eq!(studio.runs("pay"), 1);
    let openings = studio.model.openings();
    let opened = openings.iter().flat_map(|opening| &opening.history).map(|turn| turn.text.as_str());
    let told: String = opened.chain([studio.model.got().as_str()]).collect();
    assert_eq!(told.matches("was approved by the person and was done").count(), 1, "{told}");
}

#[tokio::test(start_paused = true)]
async fn calls_made_by_a_model_that_leaves_are_answered_or_told_and_done_once() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    page.writes("Book it.").await;
    let call = || asks(&[("0001", "slow_book", json!({ "what": "a" }))]);
    let leaves = LiveEvent::GoingAway { left: Some(Duration::from_secs(2)) };
    studio.model.sends([leaves, call()]).await;
    pass(1).await;
    assert_eq!(studio.model.openings().len(), 2, "another connection is opened in time");
    studio.model.says(call()).await;
    pass(10).await;
    studio.model.sends([said("Done."), over()]).await;
    let got = studio.model.got();
    assert_eq!(answered(&got), BTreeMap::from([("function-0001".to_owned(), 1)]), "{got}");
    assert_eq!((studio.runs("slow_book"), studio.agent.active_calls()), (1, 1), "{}", page.told());
}

/// A provider that never answers.
struct Unreachable;

impl LiveModel for Unreachable {
    fn declarations(&self) -> Provider {
        Provider::GeminiJsonSchema
    }

    fn name(&self) -> &str {
        "nobody/1"
    }

    fn connect(&self, _: LiveSetup) -> LiveConnecting {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_hangs_up_before_the_model_is_there_has_hung_up() {
    let studio = Studio::spoken_with(Arc::new(Unreachable));
    let page = studio.calls(CallRequest::default()).await;
    page.says(Says::Audio(vec![0; 640])).await;
    page.writes("Hello?").await;
    page.says(Says::Stop).await;
    assert_eq!(page.told(), "person: Hello?\nend user_hung_up closing=- text=-\nhung up: Ended\n");
    assert_eq!(studio.agent.active_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_comes_while_a_call_ends_is_answered() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    let opening = studio.session().await;
    let (again, _) = tokio::join!(studio.calls(opening.clone()), page.says(Says::Stop));
    let told = again.told();
    assert!(told.contains("hung up") || told.contains("ready"), "{told}");
    pass(5).await;
    let after = studio.calls(opening).await;
    assert!(after.told().starts_with("ready actor/1 resumed="), "whoever calls again gets through");
    assert_eq!(studio.agent.active_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn words_without_end_are_shown_and_not_kept() {
    let studio = Studio::new();
    let mut page = studio.on_the_line().await;
    let long = |stage| TranscriptPiece { text: "ä".repeat(500_000).into(), stage };
    studio
        .model
        .sends([
            LiveEvent::InputTranscript(long(TranscriptStage::Final)),
            LiveEvent::OutputTranscript(long(TranscriptStage::Segment)),
        ])
        .await;
    assert!(page.told().len() > 1_900_000, "the page may have them");
    page.vanishes().await;
    for _ in 0..100 {
        studio.model.says(LiveEvent::OutputTranscript(long(TranscriptStage::Segment))).await;
    }
    studio.model.says(over()).await;
    let page = studio.calls(studio.session().await).await;
    let told = page.told();
    assert!(told.starts_with("ready actor/1 resumed=true\n"), "{}", &told[..100]);
    assert!(told.len() < 2_000_000, "{} bytes were kept for a page that was away", told.len());
    studio.model.breaks().await;
    pass(2).await;
    let openings = studio.model.openings();
    let retold: usize = openings[1].history.iter().map(|turn| turn.text.len()).sum();
    assert!(retold < 64_000, "{retold} bytes are told again");
}

#[tokio::test(start_paused = true)]
async fn an_end_waits_for_what_is_being_done() {
    let (model, simulator) = model(scenario(&json!([
        { "begins": "text", "steps": [
            { "call": [
                { "name": "leave", "args": { "what": "now" } },
                { "name": "slow_book", "args": { "what": "room" } },
            ], "behavior": "nonBlocking" },
            { "wait": 500 },
            { "say": "Goodbye." },
        ] },
    ])));
    let studio = Studio::spoken_with(model);
    let page = studio.calls(CallRequest::default()).await;
    page.writes("Book the room and hang up").await;
    pass(2).await;
    page.says(Says::Drained).await;
    pass(20).await;
    settle().await;
    let (report, told) = (simulator.report(), page.told());
    assert_eq!(report.faults, [""; 0], "{told}\n{report:#?}");
    assert!(told.ends_with("hung up: Ended\n"), "{told}");
    assert!(told.contains(r#"{"did":"room"}"#), "the person sees what was done: {told}");
    assert_eq!(studio.runs("slow_book"), 1);
}
