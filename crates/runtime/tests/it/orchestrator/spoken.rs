//! Spoken decisions: which count, which never do, and what the audit log has of them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quarterdeck_contracts::{
    ConfirmBy, ConfirmationAnswer, ConfirmationRequest, ErrorType, Mode, Outcome, ToolResponse,
};
use quarterdeck_runtime::{
    Call, Client, ClientEvent, Clock, ConfirmationDecision, Connection, DecisionSource, Session,
    SpokenRefusal, SpokenWords,
};
use serde_json::{Value, json};

use super::fixture::{Fixture, error_kind, receive, submit_one};

const APPROVE: ConfirmationAnswer = ConfirmationAnswer::Approve;
const DENY: ConfirmationAnswer = ConfirmationAnswer::Deny;

/// A yes that was said a second after now, by an engine that is sure of it.
fn said(fixture: &Fixture, transcript: &str) -> SpokenWords {
    fixture.clock.advance(Duration::from_secs(1));
    let heard_at = fixture.clock.now();
    SpokenWords { transcript: transcript.into(), confidence: Some(0.9), heard_at, code: None }
}

async fn decide(
    session: &Session,
    token: &str,
    answer: ConfirmationAnswer,
    words: SpokenWords,
) -> Arc<ToolResponse> {
    let decision = ConfirmationDecision::new(answer, DecisionSource::Spoken(words));
    receive(session.resolve_confirmation(token, decision).await)
}

fn refusal(response: &ToolResponse) -> Option<SpokenRefusal> {
    match &response.outcome {
        Outcome::Success(_) => None,
        Outcome::Failure(error) => SpokenRefusal::of(error),
    }
}

/// Makes a call that has to be confirmed. What the model gets, and what the user is asked.
async fn ask(connection: &Connection, tool: &str) -> (Arc<ToolResponse>, ConfirmationRequest) {
    let response =
        submit_one(connection, Call::new(tool, json!({ "what": "rent", "secret": "hunter22" }))).await;
    assert_eq!(error_kind(&response), Some(ErrorType::ConfirmationRequired));
    loop {
        match connection.try_next_event() {
            Some(ClientEvent::Confirmation { request, .. }) => return (response, request),
            Some(_) => {}
            None => panic!("no confirmation was requested"),
        }
    }
}

fn token(request: &ConfirmationRequest) -> &str {
    request.token.as_ref().unwrap().expose()
}

/// The lines of the audit log about confirmations, without what is the same in all of them.
fn audited(fixture: &Fixture) -> Vec<Value> {
    let events = fixture.audit.0.lock().unwrap();
    let lines = events.iter().filter(|event| &*event.event == "confirmation").map(|event| {
        let keep = ["step", "source", "transcript", "confidence", "heardAtMs", "reason"];
        let fields = event.fields.iter().filter(|(name, _)| keep.contains(&name.as_str()));
        fields.map(|(name, value)| (name.clone(), value.clone())).collect()
    });
    lines.collect()
}

fn epoch_ms(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64
}

#[tokio::test(start_paused = true)]
async fn a_spoken_yes_runs_the_call_once_and_is_audited_with_its_words() {
    let fixture = Fixture::spoken();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let (_, request) = ask(&connection, "pay").await;
    assert_eq!((request.confirm_by, request.code.is_none()), (ConfirmBy::Any, true));
    let words = said(&fixture, "Yes, pay with hunter22.");
    let heard_ms = epoch_ms(words.heard_at);
    assert!(decide(&session, token(&request), APPROVE, words.clone()).await.is_ok());
    let again = decide(&session, token(&request), APPROVE, words).await;
    assert_eq!(error_kind(&again), Some(ErrorType::ConfirmationInvalid));
    assert_eq!(fixture.effects.times("rent"), 1);
    let spoken = |step: &str| {
        json!({
            "step": step, "source": "spoken", "transcript": "Yes, pay with [hidden].",
            "confidence": 0.9_f32, "heardAtMs": heard_ms,
        })
    };
    assert_eq!(audited(&fixture), [json!({ "step": "requested" }), spoken("approved"), spoken("used")]);
}

#[tokio::test(start_paused = true)]
async fn a_spoken_no_denies_the_call() {
    let fixture = Fixture::spoken();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    for tool in ["pay", "pay_by_code"] {
        let (_, request) = ask(&connection, tool).await;
        let response = decide(&session, token(&request), DENY, said(&fixture, "No.")).await;
        assert_eq!(error_kind(&response), Some(ErrorType::ConfirmationDenied), "{tool}");
    }
    assert_eq!(fixture.effects.times("rent"), 0);
}

#[tokio::test(start_paused = true)]
async fn no_spoken_decision_counts_unless_the_operator_allows_it() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    for tool in ["pay", "pay_by_code"] {
        let (_, request) = ask(&connection, tool).await;
        assert_eq!(request.code, None, "there is nothing to be said");
        for answer in [APPROVE, DENY] {
            let response = decide(&session, token(&request), answer, said(&fixture, "yes")).await;
            assert_eq!(refusal(&response), Some(SpokenRefusal::Off), "{tool}");
        }
    }
    assert_eq!(fixture.effects.times("rent"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_demands_the_page_takes_no_spoken_decision() {
    let fixture = Fixture::spoken();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let (response, request) = ask(&connection, "pay_on_page").await;
    assert_eq!((request.confirm_by, &request.code), (ConfirmBy::Page, &None));
    assert!(json!(*response).to_string().contains(r#""confirmBy":"page""#), "the model can say so");
    for (answer, word) in [(APPROVE, "yes"), (DENY, "no")] {
        let response = decide(&session, token(&request), answer, said(&fixture, word)).await;
        assert_eq!(error_kind(&response), Some(ErrorType::ConfirmationRequired));
        assert_eq!(refusal(&response), Some(SpokenRefusal::PageRequired));
        let line = audited(&fixture).pop().unwrap();
        assert_eq!((&line["step"], &line["reason"]), (&json!("spoken_refused"), &json!("page_required")));
        assert_eq!((&line["source"], &line["transcript"]), (&json!("spoken"), &json!(word)));
    }
    assert_eq!(fixture.effects.times("rent"), 0);
    // The question is still open, for who can read it.
    assert!(receive(session.resolve_confirmation(token(&request), APPROVE).await).is_ok());
    assert_eq!(audited(&fixture).pop().unwrap(), json!({ "step": "approved", "source": "page" }));
    assert_eq!(fixture.effects.times("rent"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_demands_a_code_takes_the_one_that_was_made_for_the_question() {
    let fixture = Fixture::spoken();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let (response, request) = ask(&connection, "pay_by_code").await;
    let code = request.code.as_ref().unwrap().expose();
    // The model gets the question without the field, so that it cannot say the digits to the user.
    let Outcome::Failure(error) = &response.outcome else { panic!("it must be asked about") };
    assert_eq!(
        error.confirmation_request.as_ref().map(|copy| (&copy.token, &copy.code)),
        Some((&None, &None))
    );
    let yes = decide(&session, token(&request), APPROVE, said(&fixture, "yes")).await;
    assert_eq!(refusal(&yes), Some(SpokenRefusal::WrongCode));
    let words = SpokenWords { code: Some(code.to_owned()), ..said(&fixture, "yes, the digits") };
    assert!(decide(&session, token(&request), APPROVE, words).await.is_ok());
    assert_eq!(fixture.effects.times("rent"), 1);
    let lines = audited(&fixture);
    assert_eq!((&lines[1]["reason"], &lines[1]["transcript"]), (&json!("wrong_code"), &json!("[hidden]")));
    assert_eq!((&lines[2]["step"], &lines[2]["transcript"]), (&json!("approved"), &json!("yes, the digits")));
}

#[tokio::test(start_paused = true)]
async fn after_three_wrong_codes_only_the_page_is_left() {
    let fixture = Fixture::spoken();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let (_, request) = ask(&connection, "pay_by_code").await;
    let code = request.code.as_ref().unwrap().expose().to_owned();
    let wrong = if code == "0000" { "0001" } else { "0000" };
    let with = |code: &str| SpokenWords { code: Some(code.into()), ..said(&fixture, code) };
    // What is not taken for an answer at all is no attempt.
    let unsure = SpokenWords { confidence: Some(0.1), ..with(wrong) };
    for _ in 0..5 {
        let response = decide(&session, token(&request), APPROVE, unsure.clone()).await;
        assert_eq!(refusal(&response), Some(SpokenRefusal::Uncertain));
    }
    for _ in 0..3 {
        let response = decide(&session, token(&request), APPROVE, with(wrong)).await;
        assert_eq!(refusal(&response), Some(SpokenRefusal::WrongCode));
    }
    // The same call made again is the same question, with the same code and the same attempts.
    let (_, same) = ask(&connection, "pay_by_code").await;
    assert_eq!((token(&same), &same.code), (token(&request), &request.code));
    let response = decide(&session, token(&request), APPROVE, with(&code)).await;
    assert_eq!(refusal(&response), Some(SpokenRefusal::TooManyWrongCodes));
    assert_eq!(fixture.effects.times("rent"), 0);
    assert!(receive(session.resolve_confirmation(token(&request), APPROVE).await).is_ok());
    assert_eq!(fixture.effects.times("rent"), 1);
}

#[tokio::test(start_paused = true)]
async fn words_from_before_the_question_or_of_doubtful_hearing_are_no_answer() {
    let fixture = Fixture::spoken();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let before = said(&fixture, "yes");
    fixture.clock.advance(Duration::from_secs(1));
    let (_, request) = ask(&connection, "pay").await;
    let now = said(&fixture, "yes");
    let future = SpokenWords { heard_at: now.heard_at + Duration::from_secs(60), ..now.clone() };
    let with = |confidence| SpokenWords { confidence: Some(confidence), ..now.clone() };
    for (words, expected) in [
        (before, SpokenRefusal::NotHeardInTime),
        (future, SpokenRefusal::NotHeardInTime),
        (with(0.3), SpokenRefusal::Uncertain),
        (with(f32::NAN), SpokenRefusal::Uncertain),
    ] {
        let response = decide(&session, token(&request), APPROVE, words).await;
        assert_eq!(refusal(&response), Some(expected));
    }
    assert_eq!(fixture.effects.times("rent"), 0);
    // Some engines do not say how sure they are.
    let words = SpokenWords { confidence: None, ..now };
    assert!(decide(&session, token(&request), APPROVE, words).await.is_ok());
    assert_eq!(fixture.effects.times("rent"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_yes_answers_one_question_and_no_other() {
    let fixture = Fixture::spoken();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let (_, first) = ask(&connection, "pay").await;
    let words = said(&fixture, "yes");
    fixture.clock.advance(Duration::from_secs(1));
    let (_, second) = ask(&connection, "pay_twice").await;
    let late = decide(&session, token(&second), APPROVE, words.clone()).await;
    assert_eq!(refusal(&late), Some(SpokenRefusal::NotHeardInTime));
    assert!(decide(&session, token(&first), APPROVE, words).await.is_ok());
    assert_eq!(fixture.effects.times("rent"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_in_text_or_from_before_a_restart_is_not_answered_by_voice() {
    let fixture = Fixture::spoken();
    let (session, _first) = fixture.open("ann", Mode::Text).await;
    let connection = session.connect_with(quarterdeck_runtime::ConfirmationMode::AnswerFirst);
    let (_, request) = ask(&connection, "pay").await;
    let response = decide(&session, token(&request), APPROVE, said(&fixture, "yes")).await;
    assert_eq!(refusal(&response), Some(SpokenRefusal::NotInCall));

    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let (_, request) = ask(&connection, "pay_by_code").await;
    let id = session.id().to_owned();
    drop((session, connection));
    let restarted = fixture.restarted().with_spoken_confirmation();
    let session = restarted
        .orchestrator
        .resume(&id, Client::anonymous("ann"), restarted.snapshot.clone())
        .await
        .unwrap();
    let code = request.code.as_ref().map(|code| code.expose().to_owned());
    let words = SpokenWords { code, ..said(&restarted, "yes") };
    let response = decide(&session, token(&request), APPROVE, words).await;
    assert_eq!(refusal(&response), Some(SpokenRefusal::NotAsked));
    assert_eq!(fixture.effects.times("rent"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_spoken_yeses_execute_once() {
    let fixture = Fixture::spoken();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let (_, request) = ask(&connection, "pay").await;
    let (token, words) = (token(&request).to_owned(), said(&fixture, "yes"));
    let tasks = (0..100).map(|_| {
        let (session, token, words) = (session.clone(), token.clone(), words.clone());
        tokio::spawn(async move { decide(&session, &token, APPROVE, words).await.is_ok() })
    });
    let mut approved = 0;
    for task in tasks.collect::<Vec<_>>() {
        approved += u32::from(task.await.unwrap());
    }
    assert_eq!((approved, fixture.effects.times("rent")), (1, 1));
}
