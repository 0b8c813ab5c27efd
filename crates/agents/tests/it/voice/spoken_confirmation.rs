//! Questions that are asked by voice, with engines that do what a test wants.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream;
use quarterdeck_agents::voice::SpeechEngines;
use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{
    Sentence, SpeechError, SpeechErrorKind, SpeechStream, SpeechToText, TextToSpeech, Transcript, Utterance,
};
use quarterdeck_testkit::sound::speech;
use serde_json::json;

use super::harness::{
    ClientAction, FakeClient, VoiceHarness, model_said, tool_calls, turn_complete, user_said,
};

/// Speaks every sentence for a second, and understands every utterance as the same words.
#[derive(Default)]
struct Engine {
    sentences: Mutex<Vec<String>>,
    words: &'static str,
    is_broken: bool,
}

impl TextToSpeech for Engine {
    fn name(&self) -> &str {
        "test/voice"
    }

    fn speak(&self, sentence: Sentence) -> SpeechStream {
        self.sentences.lock().unwrap().push(sentence.text);
        let pieces = speech(Duration::from_secs(1), 0.3, 24_000);
        let pieces: Vec<_> = pieces.chunks(2_400).map(|piece| Ok(piece.to_vec())).collect();
        let error = || SpeechError {
            kind: SpeechErrorKind::Unavailable,
            engine: "test/voice".into(),
            detail: "as the test wants".into(),
        };
        if self.is_broken { Box::pin(stream::iter([Err(error())])) } else { Box::pin(stream::iter(pieces)) }
    }
}

impl SpeechToText for Engine {
    fn name(&self) -> &str {
        "test/ears"
    }

    fn transcribe(&self, utterance: Utterance) -> BoxFuture<Result<Transcript, SpeechError>> {
        assert_eq!(utterance.language.as_deref(), Some("en"));
        let transcript = Transcript { text: self.words.into(), confidence: Some(0.9) };
        Box::pin(std::future::ready(Ok(transcript)))
    }
}

async fn asking(engine: Engine) -> (VoiceHarness, FakeClient, Arc<Engine>) {
    let engine = Arc::new(engine);
    let harness = VoiceHarness::asking(SpeechEngines {
        speaks: Some(engine.clone()),
        hears: Some(engine.clone()),
        language: Some("en".into()),
    });
    let client = harness.connect_client().await;
    let pay = tool_calls(&[("0001", "pay", json!({ "what": "rent" }))]);
    harness.model.send_all([user_said("Pay the rent."), pay]).await;
    harness.model.send_all([model_said("Please confirm."), turn_complete()]).await;
    pass(&harness, 600).await;
    (harness, client, engine)
}

/// Time passes, on the clock of the session too.
async fn pass(harness: &VoiceHarness, ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    harness.clock.advance(Duration::from_millis(ms));
}

/// The client plays the question, and the user says something after it that is no recording of it.
async fn answer(harness: &VoiceHarness, client: &FakeClient) {
    pass(harness, 1_500).await;
    client.send(ClientAction::Drained).await;
    let user = [vec![0; 6_400], speech(Duration::from_secs(1), 0.4, 12_800), vec![0; 12_800]].concat();
    for frame in user.chunks(320) {
        pass(harness, 20).await;
        let bytes = frame.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        client.send(ClientAction::Audio(bytes)).await;
    }
    pass(harness, 100).await;
}

#[tokio::test(start_paused = true)]
async fn a_spoken_yes_runs_the_call_once() {
    let (harness, client, engine) = asking(Engine { words: "Yes.", ..Engine::default() }).await;
    let asked = engine.sentences.lock().unwrap().clone();
    assert_eq!(asked, ["Please confirm: pay (what: rent). Please say yes please, or no thank you."]);
    let received = client.received();
    assert_eq!(received.matches("audio 4800").count(), 10, "{received}");
    assert_eq!(harness.runs("pay"), 0);
    answer(&harness, &client).await;
    assert_eq!(harness.runs("pay"), 1, "{}", client.received());
    answer(&harness, &client).await;
    assert_eq!(harness.runs("pay"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_spoken_no_or_something_else_runs_nothing() {
    for words in ["No.", "Yes, but later.", ""] {
        let (harness, client, _) = asking(Engine { words, ..Engine::default() }).await;
        answer(&harness, &client).await;
        assert_eq!(harness.runs("pay"), 0, "{words}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_voice_the_page_asks_alone() {
    let (harness, client, _) = asking(Engine { words: "Yes.", is_broken: true, ..Engine::default() }).await;
    answer(&harness, &client).await;
    assert_eq!(harness.runs("pay"), 0);
    client.send(ClientAction::Confirm(client.token(), true)).await;
    assert_eq!(harness.runs("pay"), 1);
}
