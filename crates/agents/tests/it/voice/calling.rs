//! Calls of tools: answered once, by the connection that asked, with data or an error.

use std::time::Duration;

use quarterdeck_contracts::LiveEvent;
use serde_json::json;

use super::stage::{Says, Studio, asks, audio, heard, over, said, settle};

#[tokio::test(start_paused = true)]
async fn every_call_of_a_message_is_answered_in_order() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    let what = json!({ "what": "x" });
    let calls = [
        ("call-0000001", "look", what.clone()),
        ("", "book", what.clone()),
        ("call-0000003", "nonsense", what),
    ];
    studio.model.sends([heard("Do it."), asks(&calls)]).await;
    assert_eq!(
        studio.model.got(),
        "1 result function-call-0000001 {\"results\":[\"x\"]}\n1 result - {\"did\":\"x\"}\n\
         1 result function-call-0000003 NOT_FOUND last\n"
    );
    assert_eq!(
        page.told(),
        "person: Do it.\ncall function-call-0000001 look {\"what\":\"x\"}\ncall book-1 book {\"what\":\"x\"}\n\
         call function-call-0000003 nonsense {\"what\":\"x\"}\nresult function-call-0000001 {\"results\":[\"x\"]}\n\
         result book-1 {\"did\":\"x\"}\nresult function-call-0000003 NOT_FOUND\n"
    );
}

#[tokio::test(start_paused = true)]
async fn audio_flows_while_a_tool_runs_and_the_page_is_told() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.says(asks(&[("call-0000001", "slow_look", json!({ "what": "x" }))])).await;
    page.told();
    studio.model.says(audio(960)).await;
    page.says(Says::Audio(vec![0; 640])).await;
    assert_eq!(page.told(), "audio 960\n");
    assert_eq!(studio.model.got(), "1 audio 640\n");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(page.told(), "progress function-call-0000001 slow_look is taking a moment.\n");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(page.told(), "result function-call-0000001 {\"results\":[\"x\"]}\n");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_provider_takes_back_gets_no_answer() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    let what = json!({ "what": "x" });
    let calls = [("call-0000001", "slow_look", what.clone()), ("call-0000002", "slow_book", what)];
    studio.model.says(asks(&calls)).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    page.told();
    let ids = vec!["function-call-0000001".to_owned(), "function-call-0000002".into(), "unknown".into()];
    studio.model.says(LiveEvent::CallsCancelled(ids)).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(studio.model.got(), "", "nobody is answered");
    assert_eq!(studio.runs("slow_book"), 0, "what had not begun does not begin");
    let told = page.told();
    assert!(told.contains("result function-call-0000001 CANCELLED"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn barging_in_stops_a_search_and_still_answers_it() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("Search."), asks(&[("call-0000001", "slow_look", json!({ "what": "x" }))])])
        .await;
    studio.model.says(LiveEvent::Interrupted { end_follows: true }).await;
    settle().await;
    // The provider has not taken it back, so it waits for an answer; a model that waits for ever goes silent.
    assert_eq!(studio.model.got(), "1 result function-call-0000001 CANCELLED silent last\n");
    assert!(page.told().contains("interrupted"));
}

#[tokio::test(start_paused = true)]
async fn barging_in_lets_a_booking_finish_once() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("Book."), asks(&[("call-0000001", "slow_book", json!({ "what": "x" }))])])
        .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    studio.model.sends([LiveEvent::Interrupted { end_follows: true }, over()]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(studio.runs("slow_book"), 1);
    let got = studio.model.got();
    assert_eq!(got.matches("result function-call-0000001").count(), 1, "{got}");
    let told = page.told();
    assert!(told.contains("result function-call-0000001 {\"did\":\"x\"}"), "the person is told: {told}");
}

#[tokio::test(start_paused = true)]
async fn the_person_confirms_on_the_page_and_nowhere_else() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    let pay = asks(&[("call-0000001", "pay", json!({ "what": "rent" }))]);
    studio.model.sends([heard("Pay the rent."), pay]).await;
    assert_eq!(studio.model.got(), "1 result function-call-0000001 CONFIRMATION_REQUIRED last\n");
    let told = page.told();
    assert!(told.contains("asked function-call-0000001"), "{told}");
    // The model says that the person said yes. That is worth nothing.
    studio.model.sends([heard("Yes."), asks(&[("call-0000002", "pay", json!({ "what": "rent" }))])]).await;
    assert_eq!(studio.runs("pay"), 0);
    studio.model.sends([said("Please confirm."), over()]).await;
    studio.model.got();
    page.told();
    page.says(Says::Confirm(page.token(), true)).await;
    assert_eq!(studio.runs("pay"), 1);
    assert_eq!(page.told(), "result function-call-0000001 {\"did\":\"rent\"}\n");
    let got = studio.model.got();
    assert!(
        got.starts_with("1 note asks=true [Note: pay (function-call-0000001) was approved by the person"),
        "{got}"
    );
    page.says(Says::Confirm(page.token(), true)).await;
    assert_eq!(studio.runs("pay"), 1, "a token is used once");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_is_an_error_and_does_nothing() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    page.says(Says::Confirm("nonsense".into(), true)).await;
    assert_eq!(
        page.told(),
        "error CONFIRMATION_INVALID: This question has been answered already, or does not exist.\n"
    );
}

#[tokio::test(start_paused = true)]
async fn tools_that_hide_take_effect_on_the_next_frame() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Shh."), asks(&[("call-0000001", "hide", json!({ "what": "x" }))])]).await;
    page.told();
    studio.model.sends([audio(960), said("secret"), heard("secret")]).await;
    assert_eq!(page.told(), "\n");
}

#[tokio::test(start_paused = true)]
async fn the_budget_of_a_turn_is_hard_and_the_next_turn_is_free() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    let look = |id: &'static str, what: &str| asks(&[(id, "look", json!({ "what": what }))]);
    studio
        .model
        .sends([
            heard("Search."),
            look("call-0000001", "a"),
            look("call-0000002", "b"),
            look("call-0000003", "c"),
        ])
        .await;
    assert!(studio.model.got().contains("function-call-0000003 BUDGET_EXCEEDED"));
    studio.model.sends([said("Here."), over(), heard("Again."), look("call-0000004", "c")]).await;
    assert_eq!(studio.model.got(), "1 result function-call-0000004 {\"results\":[\"c\"]} last\n");
}
