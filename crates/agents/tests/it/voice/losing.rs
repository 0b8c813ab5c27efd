//! Lines and models that are lost and come back.

use std::time::Duration;

use quarterdeck_agents::voice::CallRequest;
use quarterdeck_contracts::{LiveErrorKind, LiveEvent, Speaker};
use serde_json::json;

use super::stage::{Says, Studio, asks, audio, heard, over, said, settle};

#[tokio::test(start_paused = true)]
async fn a_lost_model_is_found_within_a_second_and_told_what_it_missed() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("One."), said("First."), over(), LiveEvent::ResumptionHandle(Some("h1".into()))])
        .await;
    studio.model.sends([heard("Two?"), said("Sec")]).await;
    page.told();
    studio.model.breaks().await;
    let opening = studio.model.openings().pop().unwrap();
    assert_eq!(opening.resume.as_deref(), Some("h1"));
    let told: Vec<_> = opening.history.iter().map(|turn| (turn.by, turn.text.as_str())).collect();
    assert_eq!(told[..2], [(Speaker::User, "Two?"), (Speaker::Model, "Sec")]);
    assert!(opening.asks);
    assert_eq!(page.told(), "\n", "the person notices nothing");
    studio.model.sends([said("ond."), over()]).await;
    assert_eq!(page.told(), "model: ond.\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn a_result_goes_only_to_the_connection_that_asked() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("Book."), asks(&[("call-0000001", "slow_book", json!({ "what": "x" }))])])
        .await;
    studio.model.breaks().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let got = studio.model.got();
    assert_eq!(got, "", "in the middle of a turn nobody is told anything");
    studio.model.sends([said("I am on it."), over()]).await;
    let got = studio.model.got();
    assert!(got.contains("2 note") && got.contains("An earlier call of slow_book has come to this"), "{got}");
    assert_eq!(studio.runs("slow_book"), 1);
    assert!(page.told().contains("result function-call-0000001 {\"did\":\"x\"}"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_asked_again_after_a_reconnect_runs_once() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("Book."), asks(&[("call-0000001", "slow_book", json!({ "what": "x" }))])])
        .await;
    studio.model.breaks().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    studio.model.says(asks(&[("call-0000099", "slow_book", json!({ "what": "x" }))])).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(studio.runs("slow_book"), 1);
    let got = studio.model.got();
    assert_eq!(got.matches("2 result function-call-0000099 {\"did\":\"x\"}").count(), 1, "{got}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_model_has_forgotten_is_not_done_again_in_a_later_turn() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("Hello."), said("Hello."), over(), LiveEvent::ResumptionHandle(Some("h1".into()))])
        .await;
    let book = |id: &'static str| asks(&[(id, "book", json!({ "what": "x" }))]);
    studio.model.sends([heard("Book it."), book("call-0000001")]).await;
    studio.model.sends([LiveEvent::Interrupted { end_follows: true }, over()]).await;
    assert!(studio.model.got().contains("result function-call-0000001 {\"did\":\"x\"}"));
    studio.model.breaks().await;
    studio.model.sends([heard("Well?"), book("call-0000002")]).await;
    assert_eq!(studio.runs("book"), 1);
    assert!(studio.model.got().contains("result function-call-0000002 {\"did\":\"x\"}"));
    // From here on the model knows, and who asks again means it.
    studio.model.sends([said("Done."), over(), heard("Again!"), book("call-0000003")]).await;
    assert_eq!(studio.runs("book"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refused_handle_is_given_up_and_everything_is_told_again() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("One."), said("First."), over(), LiveEvent::ResumptionHandle(Some("h1".into()))])
        .await;
    studio.model.fails.lock().unwrap().push_back(LiveErrorKind::Refused);
    studio.model.breaks().await;
    let openings = studio.model.openings();
    assert_eq!(openings.len(), 3);
    assert_eq!((openings[2].resume.as_deref(), openings[2].history.len()), (None, 2));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_stays_away_is_given_up_in_plain_words() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.fails.lock().unwrap().extend([LiveErrorKind::Lost; 20]);
    studio.model.breaks().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(
        page.told(),
        "error UNAVAILABLE: The voice service cannot be reached. You can call again in a moment, or write.\nhung up: Failed\n"
    );
    assert_eq!(studio.agent.active_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_key_is_not_tried_again() {
    let studio = Studio::new();
    studio.model.fails.lock().unwrap().push_back(LiveErrorKind::Auth);
    let page = studio.calls(CallRequest::default()).await;
    assert!(page.told().starts_with("error UNAVAILABLE"));
    assert_eq!(studio.model.openings().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_goes_away_is_replaced_between_two_turns() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("One."), said("Fir"), LiveEvent::GoingAway { left: Some(Duration::from_secs(50)) }])
        .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(studio.model.openings().len(), 1, "not while it speaks");
    studio.model.sends([said("st."), over(), LiveEvent::ResumptionHandle(Some("h1".into()))]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(studio.model.openings().len(), 2);
    assert_eq!(studio.model.openings()[1].resume.as_deref(), Some("h1"));
    assert_eq!(studio.model.got(), "1 closed\n");
    page.writes("Two?").await;
    assert_eq!(studio.model.got(), "2 text Two?\n");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_goes_away_in_mid_turn_is_replaced_before_it_is_gone() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("One?"), said("Fir"), LiveEvent::GoingAway { left: Some(Duration::from_secs(10)) }])
        .await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let openings = studio.model.openings();
    assert_eq!(openings.len(), 2);
    assert!(openings[1].asks);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_while_the_model_is_away_is_heard_when_it_is_back() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.fails.lock().unwrap().extend([LiveErrorKind::Lost; 2]);
    studio.model.breaks().await;
    for _ in 0..10 {
        page.says(Says::Audio(vec![1; 640])).await;
    }
    studio.model.got();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(studio.model.got(), "2 audio 640\n".repeat(10) + "2 audio ended\n");
}

#[tokio::test(start_paused = true)]
async fn a_lost_line_finds_its_call_again() {
    let studio = Studio::new();
    let mut page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("Book."), asks(&[("call-0000001", "slow_book", json!({ "what": "x" }))])])
        .await;
    page.vanishes().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    studio.model.sends([said("Booked."), over()]).await;
    let page = studio.calls(studio.session().await).await;
    assert_eq!(
        page.told(),
        "ready actor/1 resumed=true\nresult function-call-0000001 {\"did\":\"x\"}\nmodel: Booked.\n"
    );
    let got = studio.model.got();
    assert_eq!(
        got, "1 result function-call-0000001 {\"did\":\"x\"} last\n",
        "the model is the same, and has its answer"
    );
    assert_eq!(studio.model.openings().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_stays_away_ends_the_call_and_not_the_session() {
    let studio = Studio::new();
    let mut page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("One."), said("First."), over(), LiveEvent::ResumptionHandle(Some("h1".into()))])
        .await;
    page.vanishes().await;
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(studio.agent.active_calls(), 0);
    assert!(studio.model.got().ends_with("1 closed\n"));
    let page = studio.calls(studio.session().await).await;
    assert_eq!(page.told(), "ready actor/1 resumed=true\n");
    assert_eq!(studio.model.openings()[1].resume.as_deref(), Some("h1"));
}

#[tokio::test(start_paused = true)]
async fn a_second_page_takes_over() {
    let studio = Studio::new();
    let first = studio.on_the_line().await;
    let opening = studio.session().await;
    let second = studio.calls(opening.clone()).await;
    assert_eq!(first.told(), "hung up: TakenOver\n");
    assert_eq!(second.told(), "ready actor/1 resumed=true\n");
    let forged = CallRequest { may_resume: false, ..opening };
    let third = studio.calls(forged).await;
    assert!(third.told().contains("You are in a call already"));
}

#[tokio::test(start_paused = true)]
async fn a_question_is_shown_again_to_the_page_that_comes_back() {
    let studio = Studio::new();
    let mut page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("Pay."), asks(&[("call-0000001", "pay", json!({ "what": "rent" }))]), over()])
        .await;
    let token = page.token();
    page.vanishes().await;
    let page = studio.calls(studio.session().await).await;
    assert!(page.told().contains("asked function-call-0000001"));
    assert_eq!(page.token(), token);
    page.says(Says::Confirm(token, true)).await;
    assert_eq!(studio.runs("pay"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_dead_is_found_out() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(page.told(), "ping\n");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(studio.agent.active_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_new_call_ends_one_that_was_left() {
    let studio = Studio::new();
    let mut page = studio.on_the_line().await;
    page.vanishes().await;
    let page = studio.on_the_line().await;
    settle().await;
    assert_eq!(studio.agent.active_calls(), 1);
    studio.model.sends([heard("Hello."), audio(960)]).await;
    assert_eq!(page.told(), "person: Hello.\naudio 960\n");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_opens_and_closes_at_once_is_given_up() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    for _ in 0..20 {
        if studio.agent.active_calls() == 0 {
            break;
        }
        studio.model.breaks().await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(studio.agent.active_calls(), 0);
    assert!(studio.model.openings().len() <= 7, "{}", studio.model.openings().len());
    assert!(page.told().contains("error UNAVAILABLE"));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_nobody_has_spoken_about_is_asked_for_again() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    let look = asks(&[("call-0000001", "slow_look", json!({ "what": "x" }))]);
    studio.model.sends([heard("Is it there?"), said("Let me look."), look, over()]).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(studio.model.got(), "1 result function-call-0000001 {\"results\":[\"x\"]} last\n");
    studio.model.breaks().await;
    let opening = studio.model.openings().pop().unwrap();
    assert!(opening.asks, "{opening:?}");
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_was_never_told_waits_for_the_next_call() {
    let studio = Studio::new();
    let mut page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("Book."), asks(&[("call-0000001", "slow_book", json!({ "what": "x" }))])])
        .await;
    studio.model.fails.lock().unwrap().extend([LiveErrorKind::Lost; 20]);
    studio.model.breaks().await;
    page.vanishes().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!((studio.agent.active_calls(), studio.runs("slow_book")), (0, 1));
    studio.model.fails.lock().unwrap().clear();
    let page = studio.calls(studio.session().await).await;
    settle().await;
    let told = page.told();
    assert!(told.contains("result function-call-0000001 {\"did\":\"x\"}"), "{told}");
    studio.model.sends([said("One moment."), over()]).await;
    let got = studio.model.got();
    assert!(got.contains("An earlier call of slow_book has come to this"), "{got}");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_goes_away_in_a_thousand_years_is_taken_at_its_word_for_an_hour() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.says(LiveEvent::GoingAway { left: Some(Duration::from_secs(u64::MAX / 2)) }).await;
    page.writes("Still there?").await;
    assert_eq!(page.told(), "person: Still there?\n");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_told_what_is_no_longer_so_is_given_up() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio
        .model
        .sends([heard("One."), said("First."), over(), LiveEvent::ResumptionHandle(Some("h1".into()))])
        .await;
    *studio.model.delay.lock().unwrap() = Duration::from_millis(600);
    studio.model.says(LiveEvent::GoingAway { left: Some(Duration::from_secs(50)) }).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(studio.model.openings().len(), 2, "another connection is on its way");
    page.writes("Two?").await;
    assert_eq!(studio.model.got(), "1 text Two?\n", "the one that stands is asked");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(studio.model.got(), "2 closed\n", "and the new one, which does not know of it, is not");
    studio.model.says_on(0, [said("Second."), over()]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let openings = studio.model.openings();
    assert_eq!(openings.len(), 3, "in the next pause there is another one");
    assert!(!openings[2].asks, "{:?}", openings[2]);
    assert_eq!(studio.model.got(), "1 closed\n");
}
