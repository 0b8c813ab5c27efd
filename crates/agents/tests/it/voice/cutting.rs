//! Answers that are cut off, and what still comes of them.

use std::time::Duration;

use quarterdeck_contracts::{LiveEvent, TranscriptPiece, TranscriptStage};
use serde_json::json;

use super::stage::{Says, Studio, asks, audio, heard, over, said};

/// The model has paused, for a result or because it was asked something else.
const GOES_ON: LiveEvent<'static> = LiveEvent::TurnComplete { more_follows: true };
const CUT: LiveEvent<'static> = LiveEvent::Interrupted { end_follows: true };

fn guess(text: &str) -> LiveEvent<'static> {
    LiveEvent::InputTranscript(TranscriptPiece {
        text: text.to_owned().into(),
        stage: TranscriptStage::Interim,
    })
}

#[tokio::test(start_paused = true)]
async fn silence_during_a_look_up_does_not_swallow_the_next_answer() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    let look_up = asks(&[("call-0000001", "slow_book", json!({ "what": "x" }))]);
    studio.model.sends([heard("Look."), said("Let me look."), audio(960), look_up, GOES_ON]).await;
    page.says(Says::Interrupt).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    page.told();
    page.writes("And now?").await;
    studio.model.sends([said("Here I am."), audio(960), over()]).await;
    assert_eq!(page.told(), "person: And now?\nmodel: Here I am.\naudio 960\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn whoever_has_written_into_an_answer_can_still_barge_into_the_next() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Tell me."), said("Once"), audio(960)]).await;
    page.writes("Shorter!").await;
    studio.model.sends([GOES_ON, said("Well,"), audio(960)]).await;
    page.told();
    studio.model.sends([CUT, LiveEvent::SpeechStarted]).await;
    assert_eq!(page.told(), "interrupted\n");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_what_was_cut_does_not_close_what_is_asked_next() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Tell me."), said("Once upon"), audio(960)]).await;
    page.told();
    studio.model.sends([CUT, LiveEvent::SpeechStarted, said(" a time"), over(), heard("Stop.")]).await;
    assert_eq!(page.told(), "interrupted\nperson: Stop.\n", "late words are not heard, and no turn is over");
    studio.model.breaks().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let opening = studio.model.openings().pop().unwrap();
    assert!(opening.asks, "the question is asked again where the call goes on");
    assert_eq!(opening.history.last().unwrap().text, "Stop.");
}

#[tokio::test(start_paused = true)]
async fn a_cut_without_an_end_waits_for_none() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Tell me."), said("Once."), audio(96_000), over()]).await;
    page.told();
    studio.model.sends([LiveEvent::Interrupted { end_follows: false }, LiveEvent::SpeechStarted]).await;
    studio.model.sends([heard("Hm."), LiveEvent::ResponseFailed, over()]).await;
    let told = "interrupted\nperson: Hm.\n\
                error UNAVAILABLE: The model could not answer that. Please say it again.\nturn complete\n";
    assert_eq!(page.told(), told);
}

#[tokio::test(start_paused = true)]
async fn calls_of_an_answer_that_was_silenced_do_not_begin() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Go on."), audio(960)]).await;
    page.says(Says::Interrupt).await;
    studio.model.got();
    page.told();
    studio.model.says(asks(&[("call-0000001", "book", json!({ "what": "x" }))])).await;
    assert_eq!(studio.runs("book"), 0);
    assert_eq!(studio.model.got(), "1 result function-call-0000001 CANCELLED silent last\n");
    studio
        .model
        .sends([over(), heard("Book it."), asks(&[("call-0000002", "book", json!({ "what": "x" }))])])
        .await;
    assert_eq!(studio.runs("book"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_written_while_an_answer_is_still_heard_silences_it() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Tell me."), said("A long story."), audio(480_000), over()]).await;
    page.told();
    studio.model.got();
    page.writes("Enough.").await;
    assert_eq!(page.told(), "interrupted\nperson: Enough.\n");
    assert_eq!(studio.model.got(), "1 interrupt\n1 text Enough.\n");
}

#[tokio::test(start_paused = true)]
async fn words_that_are_understood_after_their_turn_begin_none() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([LiveEvent::SpeechStarted, said("In 1892."), over()]).await;
    studio.model.sends([guess("When was"), heard("When was she built?")]).await;
    assert!(page.told().ends_with("turn complete\nperson (guess): When was\nperson: When was she built?\n"));
    studio.model.breaks().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!studio.model.openings().pop().unwrap().asks, "it has been answered");
}

#[tokio::test(start_paused = true)]
async fn the_same_again_in_a_later_turn_is_done_again_also_after_a_loss() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    let book = |id: &'static str| asks(&[(id, "book", json!({ "what": "coffee" }))]);
    studio.model.sends([heard("A coffee."), book("call-0000001")]).await;
    studio.model.sends([said("Done."), LiveEvent::GenerationComplete, over()]).await;
    studio.model.breaks().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    studio.model.sends([heard("Another coffee."), book("call-0000002")]).await;
    assert_eq!(studio.runs("book"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_sentence_that_is_heard_again_comes_to_its_end_again() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    page.says(Says::Audio(vec![0; 640])).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(studio.model.got(), "1 audio 640\n1 audio ended\n");
    studio.model.breaks().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(studio.model.got(), "2 audio 640\n2 audio ended\n");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_complete_when_the_model_goes_away_is_a_whole_turn() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    let left = Some(Duration::from_secs(2));
    let events = [heard("Hi."), said("Good morning."), LiveEvent::GenerationComplete];
    studio.model.sends(events).await;
    studio.model.says(LiveEvent::GoingAway { left }).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(studio.model.openings().len(), 2);
    assert!(page.told().ends_with("model: Good morning.\nturn complete\n"));
}

#[tokio::test(start_paused = true)]
async fn late_words_of_an_answer_that_was_written_into_are_not_the_next_answer() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Tell me."), said("Once"), audio(960)]).await;
    page.writes("Shorter!").await;
    page.told();
    studio.model.sends([said(" upon a time"), over()]).await;
    assert_eq!(page.told(), "\n");
    studio.model.breaks().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let opening = studio.model.openings().pop().unwrap();
    assert!(opening.asks, "what was written has no answer yet");
    assert_eq!(opening.history.last().unwrap().text, "Shorter!");
}

#[tokio::test(start_paused = true)]
async fn a_second_thought_that_cuts_off_an_answer_before_it_begins_is_answered() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    page.writes("One?").await;
    page.writes("No, two?").await;
    studio.model.sends([CUT, over()]).await;
    assert_eq!(page.told().matches("interrupted").count(), 0, "nothing was heard of it");
    studio.model.breaks().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(studio.model.openings().pop().unwrap().asks);
    page.told();
    studio.model.sends([said("Two."), audio(960), over()]).await;
    assert_eq!(page.told(), "model: Two.\naudio 960\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn silence_is_kept_by_an_answer_that_has_not_begun_and_broken_by_a_new_question() {
    for asks_again in [false, true] {
        let studio = Studio::new();
        let page = studio.on_the_line().await;
        page.writes("One?").await;
        page.says(Says::Interrupt).await;
        page.told();
        if asks_again {
            page.writes("Two?").await;
            studio.model.sends([CUT, over()]).await;
        }
        studio.model.sends([said("Well."), audio(960), over()]).await;
        let told = if asks_again { "person: Two?\nmodel: Well.\naudio 960\nturn complete\n" } else { "\n" };
        assert_eq!(page.told(), told);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_spoken_into_an_answer_begins_a_turn_whichever_is_told_first() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    studio.model.sends([LiveEvent::SpeechStarted, heard("Tell me."), said("Once"), audio(960)]).await;
    studio.model.sends([LiveEvent::SpeechStarted, CUT, over(), heard("Stop.")]).await;
    studio.model.breaks().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let opening = studio.model.openings().pop().unwrap();
    assert!(opening.asks);
    assert_eq!(opening.history.last().unwrap().text, "Stop.");
}

#[tokio::test(start_paused = true)]
async fn silence_is_kept_while_the_model_thinks_about_what_was_said() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.says(heard("What is dead water?")).await;
    page.says(Says::Interrupt).await;
    page.told();
    studio.model.sends([said("It is"), audio(960), over()]).await;
    assert_eq!(page.told(), "\n");
    studio.model.sends([LiveEvent::SpeechStarted, heard("And now?"), said("Yes."), audio(960), over()]).await;
    assert_eq!(page.told(), "person: And now?\nmodel: Yes.\naudio 960\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn silence_is_not_used_up_by_the_end_of_an_older_answer() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    page.writes("One?").await;
    page.writes("Two?").await;
    page.says(Says::Interrupt).await;
    page.told();
    studio.model.sends([CUT, over(), said("Two."), audio(960), over()]).await;
    assert_eq!(page.told(), "\n");
}

#[tokio::test(start_paused = true)]
async fn an_older_answer_that_was_on_its_way_does_not_answer_what_was_written_since() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    page.writes("One?").await;
    page.writes("Two?").await;
    page.told();
    studio.model.sends([audio(960), said("One."), CUT, over()]).await;
    assert_eq!(page.told(), "audio 960\nmodel: One.\ninterrupted\n");
    studio.model.breaks().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let opening = studio.model.openings().pop().unwrap();
    assert!(opening.asks);
    assert_eq!(opening.history.last().unwrap().text, "One?\nTwo?");
}

#[tokio::test(start_paused = true)]
async fn what_is_written_while_the_model_is_away_is_told_once_and_answered() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Hello."), said("Hello."), over()]).await;
    page.writes("One?").await;
    *studio.model.delay.lock().unwrap() = Duration::from_secs(1);
    studio.model.breaks().await;
    page.writes("Two?").await;
    studio.model.got();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(studio.model.got(), "2 text Two?\n", "the first is in what it was opened with");
    studio.model.sends([CUT, over()]).await;
    page.told();
    studio.model.sends([said("Both."), audio(960), over()]).await;
    assert_eq!(page.told(), "model: Both.\naudio 960\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn whoever_wants_silence_while_the_model_is_away_has_it_when_it_is_back() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Hello."), said("Hello."), over()]).await;
    page.writes("One?").await;
    *studio.model.delay.lock().unwrap() = Duration::from_secs(1);
    studio.model.breaks().await;
    page.says(Says::Interrupt).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    page.told();
    assert!(studio.model.got().contains("2 interrupt\n"));
    studio.model.sends([said("One."), audio(960), over()]).await;
    assert_eq!(page.told(), "\n");
}

#[tokio::test(start_paused = true)]
async fn what_is_written_right_after_silence_was_asked_for_is_answered() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    for _ in 0..2 {
        studio.model.sends([heard("Tell me."), said("Once"), audio(960)]).await;
        page.says(Says::Interrupt).await;
        page.writes("Only the year.").await;
        page.told();
        studio.model.sends([audio(960), CUT, over(), said("1892."), audio(960), over()]).await;
        assert_eq!(page.told(), "model: 1892.\naudio 960\nturn complete\n");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_know_what_was_said_last_is_not_waited_for() {
    let studio = Studio::new();
    let _page = studio.on_the_line().await;
    studio.model.sends([heard("Hello."), said("Hello."), over(), heard("Count."), said("One ")]).await;
    *studio.model.delay.lock().unwrap() = Duration::from_secs(1);
    studio.model.says(LiveEvent::GoingAway { left: Some(Duration::from_secs(2)) }).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(studio.model.openings().len(), 2);
    studio.model.says_on(0, [said("two ")]).await;
    studio.model.breaks_on(0).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let openings = studio.model.openings();
    assert_eq!(openings.len(), 3);
    assert!(openings[2].history.iter().any(|turn| turn.text == "One two "), "{:?}", openings[2].history);
}

#[tokio::test(start_paused = true)]
async fn silence_of_an_answer_that_never_comes_does_not_last() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    page.writes("One?").await;
    page.says(Says::Interrupt).await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    page.told();
    studio.model.sends([heard("Hello?"), said("Yes?"), audio(960), over()]).await;
    assert_eq!(page.told(), "person: Hello?\nmodel: Yes?\naudio 960\nturn complete\n");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_talks_on_while_it_goes_away_is_not_replaced_again_and_again() {
    let studio = Studio::new();
    let page = studio.on_the_line().await;
    studio.model.sends([heard("Hello."), said("Hello."), over(), heard("Count."), said("One ")]).await;
    *studio.model.delay.lock().unwrap() = Duration::from_millis(100);
    studio.model.says(LiveEvent::GoingAway { left: Some(Duration::from_secs(2)) }).await;
    for _ in 0..40 {
        studio.model.says_on(0, [said("more "), audio(960)]).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        studio.model.openings().len(),
        4,
        "the first, and three that were out of date when they stood"
    );
    studio.model.says_on(0, [over()]).await;
    page.told();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let opening = studio.model.openings().pop().unwrap();
    assert!(!opening.asks && studio.model.openings().len() == 5, "in the pause another one takes over");
}
