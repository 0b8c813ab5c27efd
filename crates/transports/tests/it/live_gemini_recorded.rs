//! What the official client sends to Gemini Live and what it was sent, beside what we send and what we make of it.
//!
//! Skipped, with a word, where the recordings are not on the machine.

use std::path::Path;

use expect_test::expect;
use quarterdeck_contracts::{
    Audio, HandlerAnswer, LiveInput, LiveModel, LiveResult, LiveSetup, LiveTurn, Speaker,
};
use quarterdeck_testkit::corpus;
use quarterdeck_transports::gemini::live::{Detection, ServerMessages};
use quarterdeck_transports::{GeminiLive, GeminiLiveConfig};
use serde_json::{Value, json};

use crate::live_gemini_setup::{bare, nothing};
use crate::live_provider::{Pipe, Provider, envelope, flush};

/// What is sent for some inputs.
async fn sent(config: GeminiLiveConfig, opening: LiveSetup, inputs: Vec<LiveInput<'_>>) -> Vec<Value> {
    let (pipe, mut ends) = Pipe::new(1 << 16);
    let model = GeminiLive::new(config).unwrap().with_dialer(pipe);
    let provider = async {
        let mut provider = Provider::accept(&mut ends).await;
        provider.hear().await.unwrap();
        provider.say(&json!({"setupComplete": {}})).await;
        provider
    };
    let (connection, mut provider) = tokio::join!(model.connect(opening), provider);
    let mut connection = connection.unwrap();
    for input in inputs {
        connection.send(input);
    }
    flush(&mut connection).await;
    let (heard, ()) = tokio::join!(
        async {
            let mut heard = Vec::new();
            while let Some(message) = provider.hear().await {
                heard.push(message);
            }
            heard
        },
        connection.close()
    );
    heard
}

fn config(model: &str) -> GeminiLiveConfig {
    GeminiLiveConfig { model: model.to_owned(), ..bare() }
}

/// What we do in the place of a recorded call, and which of what is sent then is compared.
async fn ours(call: &str, frame: &Value) -> Option<Value> {
    let (new, old) = ("gemini-3.8-live", "gemini-3.1-flash-live-preview");
    let manual = || {
        let detection = Detection { disabled: Some(true), ..Detection::default() };
        GeminiLiveConfig { detection, ..config(new) }
    };
    let speech = || LiveInput::Audio(Audio::Pcm(vec![1, 2].into()));
    let text = |at: &str| frame.pointer(at).and_then(Value::as_str).unwrap();
    let turn = |by, text: &str| LiveTurn { by, text: text.to_owned() };
    let (config, opening, inputs, place) = match call {
        "sendRealtimeInput({audio})" => {
            let data = text("/realtimeInput/audio/data");
            let samples = base64_simd::STANDARD.decode_to_vec(data).unwrap();
            let inputs = vec![
                LiveInput::Audio(Audio::Base64(data.to_owned().into())),
                LiveInput::Audio(Audio::Pcm(samples.into())),
            ];
            let sent = sent(config(new), nothing(), inputs).await;
            assert_eq!(sent[0], sent[1]);
            return sent.into_iter().next();
        }
        "sendRealtimeInput({text})" => {
            (config(old), nothing(), vec![LiveInput::Text(text("/realtimeInput/text"))], 0)
        }
        "sendRealtimeInput({audioStreamEnd:true})" => {
            (config(new), nothing(), vec![LiveInput::AudioEnded], 0)
        }
        "sendRealtimeInput({activityStart:{}})" => (manual(), nothing(), vec![speech(), speech()], 0),
        "sendRealtimeInput({activityEnd:{}})" => {
            (manual(), nothing(), vec![speech(), LiveInput::AudioEnded], 2)
        }
        "sendClientContent({turns:string})" => {
            let words = text("/clientContent/turns/0/parts/0/text");
            (config(new), nothing(), vec![LiveInput::Text(words)], 0)
        }
        "sendClientContent({turns:[Content],turnComplete:true})" => {
            let history = vec![
                turn(Speaker::User, "Hi"),
                turn(Speaker::Model, "Hello!"),
                turn(Speaker::User, "Weather in Oslo?"),
            ];
            (config(new), LiveSetup { history, asks: true, ..nothing() }, Vec::new(), 0)
        }
        "sendClientContent({turns,turnComplete:false})" => {
            let note = LiveInput::Note { text: "Earlier context", asks: false };
            (config(new), nothing(), vec![note], 0)
        }
        "sendToolResponse one (object, not array)" => return result(old, frame, false).await,
        "sendToolResponse scheduling WHEN_IDLE" => return result(new, frame, false).await,
        "sendToolResponse scheduling SILENT" => return result(new, frame, true).await,
        // The older form, which is not to be sent any more.
        "sendRealtimeInput({media}) (older form, audio blob)"
        // There is no video.
        | "sendRealtimeInput({video})"
        // It asks for an answer to nothing.
        | "sendClientContent({})"
        // Results are sent one by one, as they come.
        | "sendToolResponse two at once"
        // A result is not worth cutting off a sentence.
        | "sendToolResponse scheduling INTERRUPT"
        // A call has one result, and it is made of words.
        | "sendToolResponse willContinue progress"
        | "sendToolResponse willContinue false, empty response"
        | "sendToolResponse with media parts"
        // The tools and the instruction of a session stay what they were.
        | "sendContextUpdate({systemInstruction})"
        | "sendContextUpdate({tools})"
        | "sendContextUpdate clear tools" => return None,
        other => panic!("an unknown recorded frame: {other}"),
    };
    sent(config, opening, inputs).await.into_iter().nth(place)
}

async fn result(model: &str, frame: &Value, is_silent: bool) -> Option<Value> {
    let recorded = &frame["toolResponse"]["functionResponses"][0];
    let response = envelope(HandlerAnswer::success(recorded["response"]["output"].clone()));
    let result = LiveResult {
        id: recorded["id"].as_str(),
        name: recorded["name"].as_str().unwrap(),
        response: &response,
        is_silent,
        is_last: true,
    };
    sent(config(model), nothing(), vec![LiveInput::Result(result)]).await.into_iter().next()
}

#[tokio::test]
async fn frames_are_what_the_official_client_sends() {
    let Some(folder) = corpus("wire/gemini-live") else { return };
    let mut compared = 0;
    for line in lines(&folder.join("client-frames.jsonl")) {
        // What the official client refuses to send has no frame.
        let Some(frame) = line.get("frame") else { continue };
        let call = line["call"].as_str().unwrap();
        if let Some(ours) = ours(call, frame).await {
            assert_eq!(&ours, frame, "{call}");
            compared += 1;
        }
    }
    assert_eq!(compared, 11);
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_recorded_message_of_the_provider_is_understood() {
    let Some(folder) = corpus("wire/gemini-live") else { return };
    let mut all = String::new();
    for line in lines(&folder.join("server-frames.jsonl")) {
        let mut messages = ServerMessages::default();
        messages.take(line["frame"].to_string().as_bytes());
        all.push_str(line["name"].as_str().unwrap());
        all.push('\n');
        if messages.is_ready() {
            all.push_str("  (ready)\n");
        }
        while let Some(event) = messages.next_event() {
            all.push_str(&format!("  {event:?}\n"));
        }
    }
    expect![[r#"
        setupComplete with session id
          (ready)
        serverContent modelTurn audio
          Audio(Base64("qwFOA98EVwatB9wI3AmpCj8Lmgu4C5kLPguoCtoJ2QiqB1MG2wRKA6cB/P9R/q/8"))
        serverContent modelTurn thought text
        serverContent inputTranscription
          InputTranscript(TranscriptPiece { text: "what is the weather", stage: Segment })
        serverContent inputTranscription finished
          InputTranscript(TranscriptPiece { text: " in Oslo", stage: Final })
        serverContent interimInputTranscription
          InputTranscript(TranscriptPiece { text: "what is the", stage: Interim })
        serverContent outputTranscription
          OutputTranscript(TranscriptPiece { text: "It is raining", stage: Segment })
        serverContent audio plus outputTranscription in one frame
          Audio(Base64("qwFOA98EVwatB9wI3AmpCg=="))
          OutputTranscript(TranscriptPiece { text: " in Oslo.", stage: Segment })
        serverContent interrupted
          Interrupted { end_follows: true }
        serverContent generationComplete
          GenerationComplete
        serverContent turnComplete with usage
          TurnComplete { more_follows: false }
          Usage(Usage { input_tokens: 120, output_tokens: 40, cached_tokens: 0, cache_write_tokens: 0 })
        serverContent turnComplete reason and status
          TurnComplete { more_follows: false }
        toolCall one
          Calls([ModelCall { id: Some("function-call-1"), name: "get_weather", arguments: Json(Object {"city": String("Oslo")}) }])
        toolCall two
          Calls([ModelCall { id: Some("function-call-1"), name: "get_weather", arguments: Json(Object {"city": String("Oslo")}) }, ModelCall { id: Some("function-call-2"), name: "get_weather", arguments: Json(Object {"city": String("Rome"), "unit": String("c")}) }])
        toolCall without args
          Calls([ModelCall { id: Some("function-call-5"), name: "ping", arguments: Json(Object {}) }])
        toolCallCancellation
          CallsCancelled(["function-call-1", "function-call-2"])
        goAway
          GoingAway { left: Some(50s) }
        goAway fractional
          GoingAway { left: Some(9.5s) }
        sessionResumptionUpdate resumable
          ResumptionHandle(Some("handle-abc123"))
        sessionResumptionUpdate not resumable
          ResumptionHandle(None)
        sessionResumptionUpdate transparent
          ResumptionHandle(Some("handle-abc124"))
        usageMetadata alone
          Usage(Usage { input_tokens: 12, output_tokens: 8, cached_tokens: 0, cache_write_tokens: 0 })
        voiceActivity
          SpeechStarted
        voiceActivityDetectionSignal
          SpeechStarted
        unknown top-level field
          OutputTranscript(TranscriptPiece { text: "x", stage: Segment })
    "#]].assert_eq(&all);
}
