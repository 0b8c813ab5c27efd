//! How calls end.

use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use quarterdeck_contracts::LiveEvent;
use serde_json::json;

use super::stage::{Says, Studio, asks, audio, heard, over, said};

#[tokio::test(start_paused = true)]
async fn a_call_ends_after_the_turn_and_once_it_was_heard() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("That is all."), asks(&[("call-0000001", "leave", json!({ "what": "x" }))])])
        .await;
    studio.model.sends([said("Bye."), audio(48_000)]).await;
    page.told();
    studio.model.says(over()).await;
    assert_eq!(page.told(), "turn complete\n", "a second of audio is still to be heard");
    studio.model.got();
    page.says(Says::Drained).await;
    assert_eq!(page.told(), "end done closing=Bye. text=We talked.\nhung up: Ended\n");
    assert_eq!(studio.model.got(), "1 closed\n");
    assert_eq!(studio.agent.active_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_never_says_that_it_was_heard_does_not_keep_the_call() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio
        .model
        .sends([
            heard("Bye."),
            asks(&[("call-0000001", "leave", json!({ "what": "x" }))]),
            audio(96_000),
            over(),
        ])
        .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(studio.agent.active_calls(), 1, "two seconds of audio, and five of patience");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(studio.agent.active_calls(), 0);
    assert!(page.told().ends_with("end done closing=Bye. text=We talked.\nhung up: Ended\n"));
}

#[tokio::test(start_paused = true)]
async fn barging_in_voids_an_end() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("Bye."), asks(&[("call-0000001", "leave", json!({ "what": "x" }))]), audio(960)])
        .await;
    studio
        .model
        .sends([
            LiveEvent::Interrupted { end_follows: true },
            over(),
            heard("One more thing."),
            said("Yes?"),
            over(),
        ])
        .await;
    page.says(Says::Drained).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(studio.agent.active_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_farewell_is_heard_before_the_audio_is_cut() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("Go away."), asks(&[("call-0000001", "bid_farewell", json!({ "what": "x" }))])])
        .await;
    page.told();
    studio.model.sends([said("Farewell."), audio(960), over()]).await;
    assert_eq!(page.told(), "model: Farewell.\naudio 960\nturn complete\n");
    page.says(Says::Drained).await;
    assert_eq!(page.told(), "end user_requested closing=- text=-\nhung up: Ended\n");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_says_nothing_more_does_not_keep_the_call() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    studio.model.sends([heard("Bye."), asks(&[("call-0000001", "leave", json!({ "what": "x" }))])]).await;
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(studio.agent.active_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn nobody_talks_for_more_than_two_hours() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    for _ in 0..4 * 119 {
        page.says(Says::Audio(vec![0; 640])).await;
        tokio::time::sleep(Duration::from_secs(15)).await;
    }
    studio.model.sends([heard("Are you still there?"), said("I am."), over()]).await;
    page.told();
    assert_eq!(studio.agent.active_calls(), 1, "a minute before");
    page.says(Says::Audio(vec![0; 640])).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    page.says(Says::Audio(vec![0; 640])).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(studio.agent.active_calls(), 0);
    let end = "error UNAVAILABLE: This call has become too long. Please call again.\n\
               end too_long closing=- text=-\nhung up: Ended\n";
    assert_eq!(page.told().trim_start_matches("ping\n"), end);
    assert_eq!(studio.model.got().lines().last(), Some("1 closed"));
}

#[tokio::test(start_paused = true)]
async fn a_person_hangs_up() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    page.says(Says::Stop).await;
    assert_eq!(page.told(), "end user_hung_up closing=- text=-\nhung up: Ended\n");
    assert_eq!(studio.agent.active_calls(), 0);
    let again = studio.on_the_line().await;
    drop(again);
}

#[tokio::test(start_paused = true)]
async fn a_stopping_server_says_so_and_keeps_the_session() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Hello."), said("Good day."), over()]).await;
    page.told();
    studio.agent.drain(Duration::from_secs(8)).await;
    assert_eq!(page.told(), "going away in 8000\nhung up: Stopping\n");
    assert_eq!(studio.agent.active_calls(), 0);
    let opening = studio.session().await;
    let next = studio.restarted();
    let page = next.calls(opening).await;
    assert_eq!(page.told(), "ready actor/1 resumed=true\n");
    let history = &next.model.openings()[0].history;
    assert_eq!(history.len(), 2, "what was said: {history:?}");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_person_is_told_and_does_not_reach_the_model() {
    let studio = Studio::new();
    studio.block().await;
    let page = studio.calls(CallRequest::default()).await;
    assert_eq!(page.told(), "blocked: Enough for today.\nhung up: Refused\n");
    assert!(studio.model.openings().is_empty());
}
