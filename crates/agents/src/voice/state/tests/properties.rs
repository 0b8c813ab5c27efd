//! What holds whatever happens, in whatever order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use quarterdeck_contracts::{LiveErrorKind, LiveEvent};

use super::harness::{Fate, Step, TestCall, calls, heard, said};
use crate::voice::Settings;
use crate::voice::link::ClientMessage;
use crate::voice::state::{ClientOutput, ProviderOutput};

/// Makes a step from a number that makes texts, ids and handles unlike every other's.
type MakeStep = fn(usize) -> Step;

fn step() -> impl Strategy<Value = MakeStep> {
    let steps: Vec<(u32, MakeStep)> = vec![
        (6, |n| Step::Client(ClientMessage::Text(format!("<t{n}>").leak()))),
        (2, |_| Step::Client(ClientMessage::Interrupt)),
        (2, |_| Step::Client(ClientMessage::Drained)),
        (1, |n| Step::Client(confirm(n))),
        (2, |_| Step::ClientAudio),
        (2, |_| Step::UserSpeaks(Duration::from_millis(200))),
        (2, |_| Step::UserSpeaks(Duration::from_millis(600))),
        (2, |_| Step::UserIsSilent(Duration::from_millis(700))),
        (1, |n| Step::Client(ClientMessage::Played(Duration::from_millis(n as u64 * 100)))),
        (2, |_| Step::DetachClient),
        (3, |_| Step::AttachClient),
        (5, |_| Step::ModelAudio),
        (2, |_| Step::ModelSpeaks(Duration::from_secs(2))),
        (5, |n| Step::Provider(said(&format!("(m{n})")))),
        (3, |n| Step::Provider(heard(&format!("<t{n}>")))),
        (2, |_| Step::Provider(LiveEvent::SpeechStarted)),
        (2, |_| Step::Provider(LiveEvent::Interrupted { end_follows: true })),
        (1, |_| Step::Provider(LiveEvent::Interrupted { end_follows: false })),
        (5, |_| Step::Provider(LiveEvent::TurnComplete { more_follows: false })),
        (2, |_| Step::Provider(LiveEvent::TurnComplete { more_follows: true })),
        (3, |_| Step::Provider(LiveEvent::GenerationComplete)),
        (5, |n| Step::Provider(calls(&[&format!("c{n}a"), &format!("c{n}b")]))),
        (3, Step::Cancel),
        (3, |n| Step::Provider(LiveEvent::ResumptionHandle(Some(format!("h{n}"))))),
        (1, |_| Step::Provider(LiveEvent::GoingAway { left: Some(Duration::from_secs(5)) })),
        (6, |_| Step::Open),
        (1, |_| Step::FailToOpen(LiveErrorKind::Lost)),
        (1, |_| Step::FailToOpen(LiveErrorKind::Refused)),
        (3, |_| Step::Lose(LiveErrorKind::Lost)),
        (6, Step::Complete),
        (1, |_| Step::LateAnswer),
        (2, |n| Step::SessionNote(format!("<n{n}>"))),
        (1, |_| Step::AskToEnd),
        (5, |_| Step::Flush),
        (4, |_| Step::Wait(Duration::from_millis(300))),
        (1, |_| Step::Wait(Duration::from_secs(4))),
        (1, |_| Step::Wait(Duration::from_secs(40))),
    ];
    let steps = steps.into_iter().map(|(weight, step)| (weight, Just(step).boxed())).collect::<Vec<_>>();
    proptest::strategy::Union::new_weighted(steps)
}

fn confirm(n: usize) -> ClientMessage<'static> {
    ClientMessage::Confirm { token: format!("qdc_{n}").leak(), is_approved: true }
}

/// What the test knows of a call beside the machine.
#[derive(Default)]
struct Observer {
    /// Notes, and what the user has said or written; and what of it the present connection has transcribed itself.
    written: BTreeSet<String>,
    transcribed: BTreeSet<String>,
    /// What a connection knew when it gave a handle.
    known_by_handle: BTreeMap<String, BTreeSet<String>>,
    /// Calls of the present connection, and running ones that it has cancelled.
    asked: BTreeSet<String>,
    cancelled: BTreeSet<String>,
    generation: u64,
}

fn tokens(text: &str) -> impl Iterator<Item = String> {
    text.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(token, _)| token.to_owned())
}

impl Observer {
    fn note(&mut self, call: &TestCall, step: &Step) {
        match step {
            Step::Cancel(index) if call.is_connected && !call.running.is_empty() => {
                self.cancelled.extend(call.running[index % call.running.len()].call.id.clone());
            }
            Step::SessionNote(note) => self.written.extend(tokens(note)),
            Step::Client(ClientMessage::Text(text)) => self.written.extend(tokens(text)),
            Step::Provider(event) if call.is_connected => match event {
                // A late transcript is of audio that the connection has had, and that its handles cover.
                LiveEvent::InputTranscript(_)
                    if call.state.speech.reports_speech && !call.state.speech.is_turn_open => {}
                LiveEvent::InputTranscript(piece) => {
                    self.written.extend(tokens(&piece.text));
                    self.transcribed.extend(tokens(&piece.text));
                }
                LiveEvent::Calls(calls) => self.asked.extend(calls.iter().filter_map(|call| call.id.clone())),
                LiveEvent::ResumptionHandle(Some(handle)) => {
                    let known = self.known(call);
                    self.known_by_handle.insert(handle.clone(), known);
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// What the user said that the present connection knows.
    fn known(&self, call: &TestCall) -> BTreeSet<String> {
        let mut known = self.transcribed.clone();
        if let Some(context) = &call.context {
            known.extend(context.history.iter().flat_map(|turn| tokens(&turn.text)));
            let by_handle = context.handle.as_ref().and_then(|handle| self.known_by_handle.get(handle));
            known.extend(by_handle.into_iter().flatten().cloned());
        }
        known.extend(sent_texts(call));
        known
    }

    /// Compares after each step.
    fn check(&mut self, call: &TestCall) -> Result<(), TestCaseError> {
        if call.state.generation() != self.generation {
            self.generation = call.state.generation();
            self.asked.clear();
            self.cancelled.clear();
            self.transcribed.clear();
        }
        let mut results: BTreeMap<&str, usize> = BTreeMap::new();
        for message in &call.sent {
            if let ProviderOutput::Result { id: Some(id), .. } = message {
                prop_assert!(
                    self.asked.contains(id),
                    "{id} was not asked on this connection\n{}",
                    call.log()
                );
                *results.entry(id).or_default() += 1;
            }
        }
        prop_assert!(results.values().all(|count| *count == 1), "{results:?}\n{}", call.log());
        prop_assert!(!results.keys().any(|id| self.cancelled.contains(*id)), "{results:?}\n{}", call.log());
        let mut told: BTreeMap<String, usize> = BTreeMap::new();
        let history =
            call.context.iter().flat_map(|context| &context.history).flat_map(|turn| tokens(&turn.text));
        for text in history.chain(sent_texts(call)) {
            *told.entry(text).or_default() += 1;
        }
        prop_assert!(told.values().all(|count| *count == 1), "{told:?}\n{}", call.log());
        if call.is_connected && !call.is_connecting() && !call.state.is_ended() {
            let mut known = self.known(call);
            // A note of the session waits for the next turn.
            known.extend(call.state.session.notes.iter().flat_map(|note| tokens(note)));
            let lost: Vec<_> = self.written.difference(&known).collect();
            prop_assert!(lost.is_empty(), "{lost:?} lost\n{}", call.log());
        }
        Ok(())
    }
}

fn sent_texts(call: &TestCall) -> impl Iterator<Item = String> {
    call.sent.iter().flat_map(|message| match message {
        ProviderOutput::Text(text)
        | ProviderOutput::Note { text, .. }
        | ProviderOutput::Filler { request: text, .. } => tokens(text).collect::<Vec<_>>(),
        _ => Vec::new(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    /// Every call of a connection is answered to that connection, at most once at any time and exactly once in the end
    /// unless it was cancelled; what the user said is known to every connection, and told to none twice; every answer is
    /// delivered or returned, and not both.
    #[test]
    fn nothing_is_lost_or_doubled(steps in prop::collection::vec(step(), 0..80)) {
        let mut call = TestCall::ready();
        let mut observer = Observer { generation: call.state.generation(), ..Observer::default() };
        for (number, step) in steps.into_iter().enumerate() {
            let step = step(number + 2);
            observer.note(&call, &step);
            call.play(step);
            observer.check(&call)?;
        }
        while !call.running.is_empty() {
            call.play(Step::Complete(0));
            observer.check(&call)?;
        }
        call.flush();
        if call.is_connected && !call.state.is_ended() {
            let answered: BTreeSet<String> = call.sent.iter().filter_map(|message| match message {
                ProviderOutput::Result { id, .. } => id.clone(),
                _ => None,
            }).collect();
            let wanted: BTreeSet<String> = observer.asked.difference(&observer.cancelled).cloned().collect();
            prop_assert!(wanted.is_subset(&answered), "{wanted:?} {answered:?}\n{}", call.log());
        }
        // What is still held waits as a note for a pause, or the call is over and its driver gives it back.
        let held = call.fates.values().filter(|fate| **fate == Fate::Held).count();
        prop_assert!(held == 0 || !call.state.notes.is_empty() || call.state.is_ended(), "{}", call.log());
    }

    /// Once a call has ended, nothing comes out of it any more; the harness checks every output.
    #[test]
    fn after_the_end_there_is_no_output(
        before in prop::collection::vec(step(), 0..20),
        after in prop::collection::vec(step(), 0..40),
    ) {
        let mut call = TestCall::ready();
        before.into_iter().enumerate().for_each(|(number, step)| call.play(step(number + 2)));
        call.play(Step::Client(ClientMessage::Stop));
        prop_assert!(call.state.is_ended());
        let end = format!("{:?}", call.state.end());
        let messages = call.to_client.len();
        for (number, step) in after.into_iter().enumerate() {
            call.play(step(number + 100));
            prop_assert!(!call.hear_model_audio());
        }
        prop_assert_eq!(messages, call.to_client.len());
        prop_assert_eq!(end, format!("{:?}", call.state.end()), "a call ends once");
    }

    /// A client is greeted first and once on each link, and gets nothing while it is away.
    #[test]
    fn each_link_is_greeted_once(steps in prop::collection::vec(step(), 0..60)) {
        let mut call = TestCall::ready();
        let mut is_attached = true;
        for (number, step) in steps.into_iter().enumerate() {
            let step = step(number + 2);
            call.to_client.clear();
            let is_attaching = matches!(step, Step::AttachClient) && !call.state.is_ended();
            let is_waiting = matches!(step, Step::Wait(_) | Step::UserSpeaks(_) | Step::UserIsSilent(_));
            match step {
                Step::AttachClient => is_attached = true,
                Step::DetachClient => is_attached = false,
                _ => {}
            }
            call.play(step);
            let greetings = call.to_client.iter().filter(|message| matches!(message, ClientOutput::Ready { .. }));
            prop_assert_eq!(greetings.count(), usize::from(is_attaching));
            if is_attaching {
                prop_assert!(matches!(call.to_client.first(), Some(ClientOutput::Ready { .. })), "{}", call.log());
            }
            prop_assert!(is_attached || call.to_client.is_empty(), "{}", call.log());
            // A client that is silent for too long counts as lost.
            is_attached &= !is_waiting || call.state.client.is_connected;
        }
    }

    /// Playback that was paused soon goes on or is thrown away.
    #[test]
    fn playback_is_never_left_paused(steps in prop::collection::vec(step(), 0..60)) {
        let mut call = TestCall::ready();
        steps.into_iter().enumerate().for_each(|(number, step)| call.play(step(number + 2)));
        call.play(Step::Wait(Duration::from_secs(1)));
        let last = call.to_client.iter().rev().find(|message| {
            matches!(message, ClientOutput::Pause | ClientOutput::Resume | ClientOutput::Interrupted | ClientOutput::Ready { .. })
        });
        let is_over = call.state.is_ended() || !call.state.client.is_connected;
        prop_assert!(is_over || last != Some(&ClientOutput::Pause), "{}", call.log());
    }

    /// A provider that relies on our ear is told of the beginning and the end of each utterance, one after the other.
    #[test]
    fn utterances_begin_and_end_in_turn(steps in prop::collection::vec(step(), 0..60)) {
        let mut call = TestCall::ready_with(Settings::default(), true);
        for (number, step) in steps.into_iter().enumerate() {
            call.play(step(number + 2));
            let told = call.sent.iter().filter_map(|message| match message {
                ProviderOutput::SpeechStarted => Some(true),
                ProviderOutput::SpeechEnded => Some(false),
                _ => None,
            });
            let is_in_turn = told.enumerate().all(|(place, is_start)| is_start == (place % 2 == 0));
            prop_assert!(is_in_turn, "{}", call.log());
        }
    }

    /// From the moment the user asks for silence, no audio of that response is played until the provider has ended it.
    #[test]
    fn no_audio_of_a_suppressed_response_is_played(
        before in prop::collection::vec(step(), 0..30),
        frames in 1_usize..20,
        pause_ms in 0_u64..1_000,
    ) {
        let mut call = TestCall::ready();
        before.into_iter().enumerate().for_each(|(number, step)| call.play(step(number + 2)));
        call.play(Step::AttachClient);
        call.play(Step::Open);
        call.play(Step::Provider(LiveEvent::TurnComplete { more_follows: false }));
        call.play(Step::Provider(heard("Tell me.")));
        call.play(Step::ModelAudio);
        call.play(Step::Client(ClientMessage::Interrupt));
        for _ in 0..frames {
            call.play(Step::Wait(Duration::from_millis(pause_ms)));
            let is_gone = !call.is_connected;
            prop_assert!(is_gone || !call.hear_model_audio(), "{}", call.log());
        }
    }
}
