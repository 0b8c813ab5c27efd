//! A client that says what it is told to and writes down what it hears.

use std::time::Duration;

use quarterdeck_simulator::live::{ConnectionEnd, LiveSimulator, Scenario};
use quarterdeck_websocket::{CloseCode, Limits, Message, UpgradeError, WebSocket, upgrade};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) const PATH: &str =
    "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=k";
/// Nothing takes that long, on a clock that jumps.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// How a connection has ended for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Closed(u16, String),
    Disconnect,
}

pub(crate) struct Client {
    socket: WebSocket<DuplexStream>,
    server: JoinHandle<ConnectionEnd>,
}

pub(crate) fn playing(scenario: &Value) -> LiveSimulator {
    LiveSimulator::from_scenario(Scenario::parse(&scenario.to_string()).unwrap())
}

/// A setup with everything on.
pub(crate) fn setup() -> Value {
    json!({ "setup": {
        "model": "models/gemini-3.8-live",
        "generationConfig": { "responseModalities": ["AUDIO"] },
        "inputAudioTranscription": {}, "outputAudioTranscription": {}, "sessionResumption": {},
        "tools": [{ "functionDeclarations": [
            { "name": "look_up", "parametersJsonSchema": { "type": "object" } },
            { "name": "book", "behavior": "BLOCKING" },
            { "name": "slow", "behavior": "NON_BLOCKING" },
        ] }],
    } })
}

pub(crate) fn setup_with(handle: &str) -> Value {
    let mut setup = setup();
    setup["setup"]["sessionResumption"] = json!({ "handle": handle });
    setup
}

impl Client {
    /// Connects, without a setup.
    pub(crate) async fn connect(simulator: &LiveSimulator, target: &str) -> Self {
        Self::try_connect(simulator, target).await.unwrap()
    }

    /// Connects, without a setup, if it is let in.
    pub(crate) async fn try_connect(simulator: &LiveSimulator, target: &str) -> Result<Self, UpgradeError> {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let simulator = simulator.clone();
        let server = tokio::spawn(async move { simulator.serve(theirs).await });
        let socket = upgrade(ours, "localhost", target, &[], Limits { max_message_bytes: 4 << 20 }).await?;
        Ok(Self { socket, server })
    }

    /// Connects and sets up.
    pub(crate) async fn open(simulator: &LiveSimulator, setup: &Value) -> Self {
        let mut client = Self::connect(simulator, PATH).await;
        client.send(setup).await;
        let first = client.receive().await.unwrap();
        assert!(first["setupComplete"].is_object(), "{first}");
        client
    }

    pub(crate) async fn send(&mut self, frame: &Value) {
        self.socket.send_text(&frame.to_string());
        // A connection that was cut shows when it is read.
        let _ = self.socket.flush().await;
    }

    pub(crate) async fn text(&mut self, text: &str) {
        self.send(&json!({ "realtimeInput": { "text": text } })).await;
    }

    /// So many milliseconds of a tone or of nothing, in pieces of 20.
    pub(crate) async fn audio(&mut self, loudness: i16, millis: usize) {
        let piece: Vec<u8> = (0..320_i32)
            .map(|nth| if nth / 16 % 2 == 0 { loudness } else { -loudness })
            .flat_map(i16::to_le_bytes)
            .collect();
        let data = base64_simd::STANDARD.encode_to_string(piece);
        let frame =
            json!({ "realtimeInput": { "audio": { "data": data, "mimeType": "audio/pcm;rate=16000" } } });
        for _ in 0..millis / 20 {
            self.send(&frame).await;
        }
    }

    /// Speaks for so long, and then is quiet for long enough.
    pub(crate) async fn speak(&mut self, millis: usize) {
        self.audio(4_000, millis).await;
        self.audio(0, 400).await;
    }

    pub(crate) async fn answer(&mut self, id: &str, name: &str, response: Value) {
        let answer = json!({ "id": id, "name": name, "response": response });
        self.send(&json!({ "toolResponse": { "functionResponses": [answer] } })).await;
    }

    /// The next frame, or how the connection has ended.
    pub(crate) async fn receive(&mut self) -> Result<Value, End> {
        self.receive_soon().await.map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    /// The next frame as it came, within some time.
    pub(crate) async fn receive_soon(&mut self) -> Result<Vec<u8>, End> {
        timeout(TEST_TIMEOUT, self.receive_raw()).await.unwrap()
    }

    pub(crate) async fn receive_raw(&mut self) -> Result<Vec<u8>, End> {
        loop {
            match self.socket.next() {
                Some(Ok(Message::Binary(bytes))) => return Ok(bytes.to_vec()),
                Some(Ok(Message::Text(text))) => return Ok(text.as_bytes().to_vec()),
                Some(Ok(Message::Close(code, reason))) => {
                    let over = End::Closed(code.map_or(1005, |code| code.0), reason.to_owned());
                    let _ = self.socket.flush().await;
                    return Err(over);
                }
                Some(Ok(_)) => {}
                Some(Err(violation)) => panic!("{violation}"),
                None => {
                    if self.socket.fill().await.is_err() {
                        return Err(End::Disconnect);
                    }
                }
            }
        }
    }

    /// Everything up to the first frame that has something at a place, which is the last of them.
    pub(crate) async fn until(&mut self, place: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let frame = match self.receive().await {
                Ok(frame) => frame,
                Err(over) => panic!("{over:?} before {place}, after {frames:#?}"),
            };
            let is_there = frame.pointer(place).is_some();
            frames.push(frame);
            if is_there {
                return frames;
            }
        }
    }

    /// A whole turn, up to and with its handle.
    pub(crate) async fn turn(&mut self) -> Vec<Value> {
        let mut frames = self.until("/serverContent/turnComplete").await;
        frames.extend(self.until("/sessionResumptionUpdate/newHandle").await);
        frames
    }

    /// Nothing comes for a while.
    pub(crate) async fn receives_nothing(&mut self) {
        let heard = timeout(Duration::from_secs(30), self.receive_raw()).await;
        assert!(heard.is_err(), "{heard:?}");
    }

    /// Goes on until it is over, which must be soon.
    pub(crate) async fn end(&mut self) -> End {
        loop {
            if let Err(over) = self.receive().await {
                return over;
            }
        }
    }

    /// Says goodbye.
    pub(crate) async fn close(mut self) -> ConnectionEnd {
        timeout(TEST_TIMEOUT, self.socket.finish(CloseCode::NORMAL, "")).await.unwrap().unwrap();
        self.server.await.unwrap()
    }

    /// Is gone without a word.
    pub(crate) async fn disconnect(self) -> ConnectionEnd {
        drop(self.socket);
        self.server.await.unwrap()
    }

    /// How the simulator saw it.
    pub(crate) async fn ended(self) -> ConnectionEnd {
        timeout(TEST_TIMEOUT, self.server).await.unwrap().unwrap()
    }
}

/// What was in frames, in short: one word for each thing.
pub(crate) fn story(frames: &[Value]) -> Vec<String> {
    let mut story: Vec<String> = Vec::new();
    for frame in frames {
        for (key, value) in frame.as_object().unwrap() {
            let inside = value.as_object().unwrap();
            let words: Vec<String> = match key.as_str() {
                "serverContent" => inside.iter().map(|(name, value)| content(name, value)).collect(),
                "toolCall" => {
                    let calls = value["functionCalls"].as_array().unwrap();
                    calls.iter().map(|call| format!("call {}", call["name"].as_str().unwrap())).collect()
                }
                "toolCallCancellation" => vec![format!("cancel {}", value["ids"])],
                "sessionResumptionUpdate" => vec![match inside.get("newHandle") {
                    Some(_) => "handle".to_owned(),
                    None => "no handle".to_owned(),
                }],
                "usageMetadata" => continue,
                other => vec![other.to_owned()],
            };
            for word in words {
                add(&mut story, word);
            }
        }
    }
    story
}

/// Pieces of one utterance belong together.
fn add(story: &mut Vec<String>, word: String) {
    let is_uttered = |it: &String| it == "audio" || it.starts_with("said ");
    let begun = story.iter().rposition(|it| !is_uttered(it)).map_or(0, |at| at + 1);
    let said = story[begun..].iter().position(|it| it.starts_with("said "));
    match (said, word.strip_prefix("said ")) {
        (Some(said), Some(more)) => story[begun + said].push_str(more),
        _ if word == "audio" && story[begun..].contains(&word) => {}
        _ => story.push(word),
    }
}

fn content(name: &str, value: &Value) -> String {
    match name {
        "modelTurn" => match value["parts"][0].get("thought") {
            Some(_) => format!("thought {}", value["parts"][0]["text"].as_str().unwrap()),
            None if value["parts"][0].get("text").is_some() => {
                format!("text {}", value["parts"][0]["text"].as_str().unwrap())
            }
            None => "audio".to_owned(),
        },
        "inputTranscription" => format!("heard {}", value["text"].as_str().unwrap()),
        "outputTranscription" => format!("said {}", value["text"].as_str().unwrap()),
        other => other.to_owned(),
    }
}

/// All samples of what was said.
pub(crate) fn samples(frames: &[Value]) -> Vec<i16> {
    let mut samples = Vec::new();
    for part in frames
        .iter()
        .filter_map(|frame| frame.pointer("/serverContent/modelTurn/parts")?.as_array())
        .flatten()
    {
        let Some(data) = part.pointer("/inlineData/data") else { continue };
        assert_eq!(part["inlineData"]["mimeType"], "audio/pcm;rate=24000");
        let bytes = base64_simd::STANDARD.decode_to_vec(data.as_str().unwrap()).unwrap();
        samples.extend(bytes.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample)));
    }
    samples
}

/// The handle in some frames.
pub(crate) fn handle(frames: &[Value]) -> String {
    let mut handles =
        frames.iter().filter_map(|frame| frame.pointer("/sessionResumptionUpdate/newHandle")?.as_str());
    handles.next_back().unwrap().to_owned()
}
