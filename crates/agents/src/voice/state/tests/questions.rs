//! Questions that are asked by voice: the honest yes counts once, and nothing else does.

use std::sync::LazyLock;
use std::time::Duration;

use quarterdeck_contracts::{
    ConfirmBy, ConfirmationAnswer, ConfirmationCode, ConfirmationRequest, ConfirmationToken, ErrorType,
    LiveErrorKind, LiveEvent, ToolError, Transcript, TranscriptPiece, TranscriptStage,
};
use quarterdeck_runtime::{Listen, PendingEnd};
use quarterdeck_testkit::sound::{Noise, speech};
use serde_json::json;

use super::harness::{Step, TestCall, heard, pcm, said};
use crate::voice::link::ClientMessage;
use crate::voice::state::{Input, ProviderOutput, SpokenQuestions};

/// The user, whose voice is not the one that the questions and the model have.
static USER: LazyLock<Vec<i16>> = LazyLock::new(|| speech(ms(12_000), 0.4, 12_800));
/// The voice of the questions, as it is sent and as a microphone has it.
static VOICE: LazyLock<Vec<i16>> = LazyLock::new(|| speech(ms(20_000), 0.3, 24_000));
static RECORDED: LazyLock<Vec<i16>> = LazyLock::new(|| speech(ms(20_000), 0.3, 16_000));

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn spoken(language: &str, listen: Listen) -> SpokenQuestions {
    SpokenQuestions { language: language.into(), listen, lifetime: Duration::from_secs(300) }
}

fn request(token: &str, confirm_by: ConfirmBy) -> ConfirmationRequest {
    ConfirmationRequest {
        token: Some(ConfirmationToken::new(token)),
        expires: 0,
        tool: "pay".into(),
        args: json!({ "to": "Ann" }),
        preview: "Pay 20 euros to Ann".into(),
        reason: None,
        confirm_by,
        code: (confirm_by == ConfirmBy::Code).then(|| ConfirmationCode::new(4_071)),
    }
}

impl TestCall {
    fn request_confirmation(&mut self, token: &str, confirm_by: ConfirmBy) {
        let call_id = format!("call-{token}").into();
        self.feed(Input::ConfirmationRequested { call_id, request: request(token, confirm_by) });
        self.play(Step::Wait(ms(300)));
    }

    /// Two seconds of speech come for the question that was to be spoken last.
    fn speak_question(&mut self) {
        let (number, _) = self.questions.spoken.last().expect("a question").clone();
        for piece in VOICE[..48_000].chunks(4_800) {
            let now = self.now;
            assert!(self.state.admit_question_audio(number, &pcm(piece), now));
        }
        self.feed(Input::QuestionSpoken { number });
    }

    /// The client plays the question to its end and reports it.
    fn play_question(&mut self) {
        self.speak_question();
        self.play(Step::UserIsSilent(ms(2_200)));
        self.play(Step::Client(ClientMessage::Drained));
    }

    fn say(&mut self, sound: &[i16], time: u64) {
        self.hear_frames(sound, ms(time));
        self.play(Step::UserIsSilent(ms(800)));
    }

    /// The user says something, which is understood as `words`.
    fn answer(&mut self, words: &str, confidence: Option<f32>) {
        self.play(Step::UserIsSilent(ms(400)));
        self.say(&USER, 600);
        self.transcribe(words, confidence);
    }

    fn transcribe(&mut self, words: &str, confidence: Option<f32>) {
        let (number, _) = *self.questions.transcribing.last().expect("an answer is transcribed");
        let transcript = Some(Transcript { text: words.into(), confidence });
        self.feed(Input::AnswerTranscribed { number, transcript });
    }

    fn decisions(&self) -> Vec<(&str, ConfirmationAnswer)> {
        self.questions.resolved.iter().map(|(token, answer, _)| (token.as_str(), *answer)).collect()
    }
}

/// A call whose question was asked, and heard to its end.
fn asked_by(confirm_by: ConfirmBy) -> TestCall {
    let mut call = TestCall::asking(spoken("en", Listen::Own), false);
    call.request_confirmation("t1", confirm_by);
    call.play_question();
    call
}

fn asked() -> TestCall {
    asked_by(ConfirmBy::Any)
}

const APPROVED: [(&str, ConfirmationAnswer); 1] = [("t1", ConfirmationAnswer::Approve)];

#[test]
fn an_honest_yes_confirms_once() {
    let mut call = asked();
    assert_eq!(
        call.questions.spoken[0].1,
        "Please confirm: Pay 20 euros to Ann. Please say yes please, or no thank you."
    );
    let before = call.now;
    call.answer("Yes, please.", Some(0.9));
    assert_eq!(call.decisions(), APPROVED);
    let words = call.questions.resolved[0].2.clone().expect("it was spoken");
    assert_eq!((words.transcript.as_str(), words.confidence), ("Yes, please.", Some(0.9)));
    let began = words.began_at - before;
    assert!((ms(350)..ms(550)).contains(&began), "{began:?}");
    let (_, samples) = call.questions.transcribing[0];
    assert!((16 * 600..16 * 2_000).contains(&samples), "with what was before and after it: {samples}");
    call.transcribe("Yes.", Some(0.9));
    call.say(&USER, 600);
    call.play(Step::Wait(ms(40_000)));
    assert_eq!((call.decisions(), call.questions.spoken.len()), (APPROVED.to_vec(), 1));
}

#[test]
fn a_no_denies() {
    let mut call = asked();
    call.answer("No, thanks.", None);
    assert_eq!(call.decisions(), [("t1", ConfirmationAnswer::Deny)]);
}

#[test]
fn a_question_waits_until_the_client_has_reported_that_all_was_played() {
    let mut call = TestCall::asking(spoken("en", Listen::Own), false);
    call.play(Step::Provider(heard("Pay Ann.")));
    call.play(Step::Provider(said("Please confirm it.")));
    call.play(Step::ModelSpeaks(ms(1_000)));
    call.request_confirmation("t1", ConfirmBy::Any);
    call.play(Step::Provider(LiveEvent::TurnComplete { more_follows: false }));
    call.play(Step::Wait(ms(5_000)));
    assert_eq!(call.questions.spoken, [], "by the clock it is over, but the client has not said so");
    call.play(Step::Client(ClientMessage::Drained));
    assert_eq!(call.questions.spoken.len(), 1);
}

#[test]
fn what_the_model_says_and_does_confirms_nothing() {
    let mut call = asked();
    call.play(Step::Provider(said("Yes.")));
    call.play(Step::ModelSpeaks(ms(600)));
    call.play(Step::Provider(LiveEvent::TurnComplete { more_follows: false }));
    call.play(Step::Provider(heard("yes")));
    call.play(Step::Client(ClientMessage::Text("yes")));
    call.play(Step::Wait(ms(20_000)));
    assert_eq!((call.decisions(), call.questions.transcribing.len()), (vec![], 0));
}

#[test]
fn the_echo_of_the_model_is_no_answer() {
    let mut call = asked();
    call.play(Step::UserIsSilent(ms(400)));
    call.play(Step::ModelSpeaks(ms(2_000)));
    call.say(&USER, 600);
    assert_eq!(call.questions.transcribing, [], "the model speaks, so the question was withdrawn");
    assert_eq!(call.decisions(), []);
}

#[test]
fn only_what_was_said_before_the_model_spoke_is_understood() {
    let mut call = asked();
    call.play(Step::UserIsSilent(ms(400)));
    call.hear_frames(&USER, ms(600));
    call.play(Step::ModelSpeaks(ms(2_000)));
    let (_, samples) = call.questions.transcribing[0];
    call.hear_frames(&RECORDED, ms(1_000));
    assert!(samples <= 16 * 900, "{samples}");
    assert_eq!(call.questions.transcribing.len(), 1);
    call.transcribe("Yes.", None);
    assert_eq!(call.decisions(), APPROVED);
}

#[test]
fn a_recording_of_our_own_voice_is_no_answer() {
    let mut call = asked();
    call.play(Step::UserIsSilent(ms(400)));
    let mut noise = Noise(5);
    let played: Vec<i16> = RECORDED[16 * 507..16 * 1_207]
        .iter()
        .map(|sample| (f32::from(*sample) * 0.5 + noise.sample() * 50.0) as i16)
        .collect();
    call.say(&played, 700);
    assert_eq!((call.questions.transcribing.len(), call.decisions()), (0, vec![]));
}

#[test]
fn a_yes_that_began_while_we_were_speaking_is_no_answer() {
    let mut call = TestCall::asking(spoken("en", Listen::Own), false);
    call.request_confirmation("t1", ConfirmBy::Any);
    call.speak_question();
    call.play(Step::UserIsSilent(ms(1_000)));
    call.hear_frames(&USER, ms(1_300));
    call.play(Step::Client(ClientMessage::Drained));
    call.play(Step::UserIsSilent(ms(800)));
    assert_eq!((call.questions.transcribing.len(), call.decisions()), (0, vec![]));
}

#[test]
fn a_yes_that_began_within_300_ms_of_the_end_is_no_answer() {
    let mut call = asked();
    call.play(Step::UserIsSilent(ms(100)));
    call.say(&USER, 600);
    assert_eq!(call.questions.transcribing, []);
    call.say(&USER, 600);
    call.transcribe("Yes.", None);
    assert_eq!(call.decisions(), APPROVED, "the next one is");
}

#[test]
fn a_report_from_before_the_question_was_played_opens_no_window() {
    let mut call = TestCall::asking(spoken("en", Listen::Own), false);
    call.request_confirmation("t1", ConfirmBy::Any);
    call.speak_question();
    call.play(Step::Client(ClientMessage::Drained));
    call.play(Step::Client(ClientMessage::Played(ms(90_000))));
    call.play(Step::UserIsSilent(ms(500)));
    call.say(&USER, 600);
    assert_eq!(call.questions.transcribing, []);
}

#[test]
fn a_yes_to_an_older_question_does_not_answer_the_next_one() {
    let mut call = asked();
    call.play(Step::UserIsSilent(ms(400)));
    call.say(&USER, 600);
    call.play(Step::Client(ClientMessage::Confirm { token: "t1", is_approved: false }));
    call.request_confirmation("t2", ConfirmBy::Any);
    call.transcribe("Yes.", Some(0.99));
    call.play_question();
    call.transcribe("Yes.", Some(0.99));
    assert_eq!(call.decisions(), [("t1", ConfirmationAnswer::Deny)], "the page has denied it");
}

#[test]
fn with_two_questions_open_neither_is_answered_by_voice() {
    let mut call = asked();
    call.play(Step::UserIsSilent(ms(400)));
    call.say(&USER, 600);
    call.request_confirmation("t2", ConfirmBy::Any);
    call.transcribe("Yes.", Some(0.99));
    call.say(&USER, 600);
    call.play(Step::Wait(ms(30_000)));
    assert_eq!(
        (call.decisions(), call.questions.spoken.len(), call.questions.transcribing.len()),
        (vec![], 1, 1)
    );
    call.play(Step::Client(ClientMessage::Confirm { token: "t2", is_approved: false }));
    call.play(Step::Wait(ms(300)));
    assert_eq!(call.questions.spoken.len(), 2, "the one that is left is asked anew");
}

#[test]
fn no_answer_and_noise_confirm_nothing() {
    let mut call = asked();
    let mut noise = Noise(11);
    let hiss: Vec<i16> = (0..16 * 5_000).map(|_| (noise.sample() * 3_000.0) as i16).collect();
    call.hear_frames(&hiss, ms(5_000));
    call.play(Step::UserIsSilent(ms(12_000)));
    assert_eq!((call.questions.transcribing.len(), call.decisions()), (0, vec![]));
    call.say(&USER, 600);
    call.play(Step::Wait(ms(30_000)));
    assert_eq!(
        (call.questions.transcribing.len(), call.questions.spoken.len()),
        (0, 1),
        "after 15 s only the page is left"
    );
}

#[test]
fn an_unclear_answer_is_asked_about_once_more() {
    for (words, confidence) in [
        ("Yes, but tomorrow.", Some(0.9)),
        ("", None),
        ("Ja.", Some(0.9)),
        ("Yes.", Some(0.59)),
        ("Yes.", Some(f32::NAN)),
    ] {
        let mut call = asked();
        call.answer(words, confidence);
        assert_eq!(call.decisions(), [], "{words} {confidence:?}");
        call.play(Step::Wait(ms(3_000)));
        assert_eq!(call.questions.spoken.len(), 2);
        assert!(
            call.questions.spoken[1].1.starts_with("That was not an answer. Please confirm: Pay 20"),
            "{:?}",
            call.questions.spoken
        );
        call.play_question();
        call.answer(words, confidence);
        call.play(Step::Wait(ms(30_000)));
        assert_eq!(
            (call.decisions(), call.questions.spoken.len()),
            (vec![], 2),
            "then only the page is left"
        );
    }
}

#[test]
fn a_clear_answer_to_the_second_question_counts() {
    let mut call = asked();
    call.answer("Hm.", None);
    call.play(Step::Wait(ms(3_000)));
    call.play_question();
    call.answer("Yes.", None);
    assert_eq!(call.decisions(), APPROVED);
}

#[test]
fn in_a_language_without_a_grammar_nothing_is_asked() {
    let mut call = TestCall::asking(spoken("it", Listen::Own), false);
    call.request_confirmation("t1", ConfirmBy::Any);
    call.play(Step::Wait(ms(5_000)));
    assert_eq!(call.questions.spoken, []);
}

#[test]
fn a_late_transcript_confirms_nothing() {
    let mut call = asked();
    call.play(Step::UserIsSilent(ms(400)));
    call.say(&USER, 600);
    call.play(Step::Wait(ms(6_000)));
    call.transcribe("Yes.", Some(0.99));
    call.play(Step::Wait(ms(3_000)));
    call.play_question();
    call.transcribe("Yes.", Some(0.99));
    assert_eq!(call.decisions(), []);
}

#[test]
fn a_yes_that_is_followed_by_more_is_no_answer() {
    let mut call = asked();
    call.play(Step::UserIsSilent(ms(400)));
    call.say(&USER, 600);
    call.hear_frames(&USER, ms(600));
    call.transcribe("Yes.", Some(0.99));
    assert_eq!(call.decisions(), []);
}

#[test]
fn a_tool_that_demands_the_page_is_not_asked_about() {
    let mut call = TestCall::asking(spoken("en", Listen::Own), false);
    call.request_confirmation("t1", ConfirmBy::Page);
    call.play(Step::Wait(ms(5_000)));
    call.say(&USER, 600);
    assert_eq!((call.questions.spoken.len(), call.questions.transcribing.len()), (0, 0));
}

#[test]
fn a_tool_that_demands_a_code_takes_its_digits_and_no_yes() {
    let mut call = asked_by(ConfirmBy::Code);
    call.answer("Yes.", None);
    assert_eq!(call.decisions(), []);
    call.play(Step::Wait(ms(3_000)));
    call.play_question();
    call.answer("Four zero seven one.", None);
    assert_eq!(call.decisions(), APPROVED);
    assert_eq!(call.questions.resolved[0].2.as_ref().and_then(|words| words.code.as_deref()), Some("4071"));
}

#[test]
fn a_question_is_withdrawn_when_the_model_speaks_and_asked_again_twice() {
    let mut call = TestCall::asking(spoken("en", Listen::Own), false);
    call.request_confirmation("t1", ConfirmBy::Any);
    for asked in 1..=3 {
        assert_eq!(call.questions.spoken.len(), asked);
        call.speak_question();
        call.play(Step::ModelSpeaks(ms(500)));
        call.play(Step::Provider(LiveEvent::TurnComplete { more_follows: false }));
        call.play(Step::Wait(ms(3_000)));
        call.play(Step::Client(ClientMessage::Drained));
        call.play(Step::Wait(ms(3_000)));
    }
    assert_eq!(call.questions.spoken.len(), 3, "then only the page is left");
}

#[test]
fn a_client_that_comes_back_is_asked_anew() {
    let mut call = asked();
    call.play(Step::DetachClient);
    call.play(Step::AttachClient);
    call.play(Step::UserIsSilent(ms(500)));
    call.say(&USER, 600);
    assert_eq!(call.questions.transcribing, []);
    call.play(Step::Wait(ms(4_000)));
    assert_eq!(call.questions.spoken.len(), 2);
}

#[test]
fn a_question_that_cannot_be_spoken_is_left_to_the_page() {
    let mut call = TestCall::asking(spoken("en", Listen::Own), false);
    call.request_confirmation("t1", ConfirmBy::Any);
    let (number, _) = call.questions.spoken[0];
    call.feed(Input::QuestionFailed { number });
    call.play(Step::Wait(ms(30_000)));
    assert_eq!(call.questions.spoken.len(), 1);
}

#[test]
fn a_model_that_relies_on_our_ear_is_not_told_of_an_answer() {
    let mut call = TestCall::asking(spoken("en", Listen::Own), true);
    call.request_confirmation("t1", ConfirmBy::Any);
    call.play_question();
    call.answer("Yes.", None);
    assert_eq!((call.decisions(), call.sent.len(), call.questions.held_samples), (APPROVED.to_vec(), 0, 0));
}

#[test]
fn what_was_no_answer_is_heard_by_a_model_that_relies_on_our_ear() {
    let mut call = TestCall::asking(spoken("en", Listen::Own), true);
    call.request_confirmation("t1", ConfirmBy::Any);
    call.play_question();
    call.answer("Make it thirty euros.", None);
    assert_eq!(call.sent, [ProviderOutput::SpeechStarted, ProviderOutput::SpeechEnded]);
    assert!(call.questions.held_samples > 16 * 800, "{}", call.questions.held_samples);
    let log = call.log();
    let order = ["provider: SpeechStarted", "provider: held audio", "provider: SpeechEnded"]
        .map(|line| log.find(line));
    assert!(order.is_sorted() && order[0].is_some(), "{log}");
}

#[test]
fn a_wrong_code_leaves_the_question_open_and_is_asked_about_once_more() {
    let mut call = asked_by(ConfirmBy::Code);
    call.questions.refusal = Some(ToolError {
        details: Some(json!({ "spokenRefusal": "wrong_code" })),
        ..ToolError::new(ErrorType::ConfirmationRequired, "Say the code that is shown.")
    });
    call.answer("Four zero seven two.", None);
    call.play(Step::Wait(ms(3_000)));
    call.play_question();
    call.answer("Four zero seven one.", None);
    assert_eq!(call.decisions(), [APPROVED[0], APPROVED[0]]);
}

fn piece(text: &str, stage: TranscriptStage) -> Step {
    let text = text.to_owned().into();
    Step::Provider(LiveEvent::InputTranscript(TranscriptPiece { text, stage }))
}

fn asked_with_provider() -> TestCall {
    let mut call = TestCall::asking(spoken("en", Listen::Provider), false);
    call.request_confirmation("t1", ConfirmBy::Any);
    call.play_question();
    call
}

#[test]
fn the_providers_final_transcript_of_the_answer_counts_where_that_is_configured() {
    let mut call = asked_with_provider();
    call.play(Step::UserIsSilent(ms(400)));
    call.say(&USER, 600);
    call.play(piece("Yes", TranscriptStage::Interim));
    call.play(piece("Yes", TranscriptStage::Segment));
    assert_eq!(call.decisions(), [], "more may follow");
    call.play(piece(".", TranscriptStage::Final));
    assert_eq!((call.decisions(), call.questions.transcribing.len()), (APPROVED.to_vec(), 0));
}

#[test]
fn a_providers_transcript_of_something_older_does_not_count() {
    let mut call = asked_with_provider();
    call.play(piece("Yes.", TranscriptStage::Final));
    assert_eq!(call.decisions(), [], "the user has said nothing");
    let mut call = TestCall::asking(spoken("en", Listen::Provider), false);
    call.say(&USER, 600);
    call.request_confirmation("t1", ConfirmBy::Any);
    call.play(Step::Wait(ms(5_000)));
    assert_eq!(call.questions.spoken, [], "the words of the last utterance are still to come");
}

#[test]
fn a_call_that_ends_or_loses_its_provider_confirms_nothing() {
    let mut call = asked_with_provider();
    call.play(Step::Lose(LiveErrorKind::Lost));
    call.play(Step::UserIsSilent(ms(400)));
    call.say(&USER, 600);
    call.play(Step::Wait(ms(6_000)));
    assert_eq!(call.decisions(), []);
    let mut call = asked();
    call.play(Step::UserIsSilent(ms(400)));
    call.say(&USER, 600);
    call.feed(Input::SessionEnded(PendingEnd::with_reason("done")));
    call.transcribe("Yes.", Some(0.99));
    assert_eq!(call.decisions(), []);
}
