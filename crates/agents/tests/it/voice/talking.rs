//! Speech and writing, turns, barging in.

use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use quarterdeck_contracts::{LiveEvent, Speaker, Usage};
use serde_json::json;

use super::stage::{Says, Studio, asks, audio, heard, over, said, settle};

#[tokio::test(start_paused = true)]
async fn what_is_said_goes_through_both_ways() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    page.says(Says::Audio(vec![0; 640])).await;
    assert_eq!(studio.model.got(), "1 audio 640\n");
    studio.model.sends([heard("Hello."), audio(960), said("Good day."), over()]).await;
    assert_eq!(page.told(), "person: Hello.\naudio 960\nmodel: Good day.\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn what_is_written_is_shown_and_answered() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    page.writes("Who built the Fram?").await;
    assert_eq!(studio.model.got(), "1 text Who built the Fram?\n");
    assert_eq!(page.told(), "person: Who built the Fram?\n");
}

#[tokio::test(start_paused = true)]
async fn a_pending_request_is_answered_without_being_repeated() {
    let studio = Studio::new();
    let opening =
        CallRequest { pending_request: Some("When did she sail?".into()), ..CallRequest::default() };
    let page = studio.calls(opening).await;
    assert_eq!(page.told(), "ready actor/1 resumed=false\n");
    let opening = &studio.model.openings()[0];
    assert!(opening.asks);
    let told: Vec<_> = opening.history.iter().map(|turn| (turn.by, turn.text.as_str())).collect();
    assert_eq!(told, [(Speaker::User, "When did she sail?")]);
    assert!(opening.system.contains("The conversation is spoken."), "{}", opening.system);
    assert_eq!(opening.tools.len(), 9, "tools of both modes are declared");
}

#[tokio::test(start_paused = true)]
async fn barging_in_silences_at_once_and_begins_a_turn() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Tell me everything."), said("Well, "), audio(48_000)]).await;
    page.told();
    studio.model.sends([LiveEvent::Interrupted { end_follows: true }, over(), heard("Stop.")]).await;
    assert_eq!(page.told(), "interrupted\nperson: Stop.\n", "the end of what was cut is nobody's turn");
    // The budget of voice is three calls a turn: the second turn has its own.
    let calls =
        [("call-0000001", "book", json!({ "what": "a" })), ("call-0000002", "book", json!({ "what": "b" }))];
    studio.model.says(asks(&calls)).await;
    assert_eq!(studio.runs("book"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_person_who_wants_silence_does_not_hear_the_rest() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Go on."), audio(960)]).await;
    page.told();
    page.says(Says::Interrupt).await;
    assert_eq!(page.told(), "interrupted\n");
    studio.model.sends([audio(960), audio(960)]).await;
    assert_eq!(page.told(), "\n", "the rest of the answer");
    studio.model.sends([over(), heard("And now?"), audio(960)]).await;
    assert_eq!(page.told(), "person: And now?\naudio 960\n");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_does_not_read_loses_audio_and_no_memory() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    page.stops_reading();
    for _ in 0..200 {
        studio.model.says(audio(4_800)).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(page.waiting() < 100_000, "{}", page.waiting());
}

#[tokio::test(start_paused = true)]
async fn a_silent_microphone_is_said_to_be_off() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    page.says(Says::Audio(vec![0; 640])).await;
    studio.model.got();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(studio.model.got(), "1 audio ended\n");
}

#[tokio::test(start_paused = true)]
async fn one_person_has_one_call() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    let second = studio.calls(CallRequest::default()).await;
    assert_eq!(
        second.told(),
        "error UNAVAILABLE: You are in a call already. End it first.\nhung up: Refused\n"
    );
    studio.model.says(heard("Still here.")).await;
    assert_eq!(page.told(), "person: Still here.\n");
    settle().await;
    assert_eq!(studio.agent.active_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn writing_into_an_answer_cuts_it_off_and_is_answered() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Go on."), said("Well, "), audio(960)]).await;
    page.told();
    page.writes("Wait.").await;
    assert_eq!(page.told(), "interrupted\nperson: Wait.\n");
    // The provider's own word about it.
    studio.model.sends([LiveEvent::Interrupted { end_follows: true }, over()]).await;
    assert_eq!(page.told(), "\n");
    studio.model.sends([said("Yes?"), audio(960), over()]).await;
    assert_eq!(page.told(), "model: Yes?\naudio 960\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn words_that_are_understood_late_begin_no_turn() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    let look = |id: &'static str, what: &str| asks(&[(id, "look", json!({ "what": what }))]);
    studio
        .model
        .sends([LiveEvent::SpeechStarted, look("call-0000001", "a"), look("call-0000002", "b")])
        .await;
    studio.model.sends([said("Here."), over(), heard("Search."), look("call-0000003", "c")]).await;
    let got = studio.model.got();
    assert!(got.contains("function-call-0000003 BUDGET_EXCEEDED"), "{got}");
    assert!(page.told().contains("person: Search."));
}

#[tokio::test(start_paused = true)]
async fn when_all_lines_are_busy_a_caller_is_told() {
    let studio = Studio::with_room_for(1);
    let mut page = studio.on_the_line().await;
    let second = studio.is_called_by("ben", CallRequest::default()).await;
    let busy = "error UNAVAILABLE: All lines are busy. Please call again in a moment.\nhung up: AtCapacity\n";
    assert_eq!(second.told(), busy);
    // A call that waits for its line takes room too, but not from its own person.
    page.vanishes().await;
    assert_eq!(studio.is_called_by("ben", CallRequest::default()).await.told(), busy);
    studio.on_the_line().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_says_that_it_was_cut_off_is_heard_again() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Go on."), audio(960)]).await;
    page.says(Says::Interrupt).await;
    page.told();
    tokio::time::sleep(Duration::from_secs(20)).await;
    studio.model.says(audio(960)).await;
    page.says(Says::Drained).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    studio.model.says(audio(480)).await;
    let told = page.told();
    assert!(!told.contains("audio 960") && told.contains("audio 480"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_a_conversation_takes_is_measured() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    let usage = Usage { input_tokens: 90_000, output_tokens: 1_000 };
    studio.model.says(LiveEvent::Usage(usage)).await;
    let metrics = studio.orchestrator.metrics().json();
    assert_eq!(metrics["context"]["peakTokens"], 91_000, "{metrics}");
}
