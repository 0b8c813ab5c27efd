//! One call: it speaks, listens to the answer and speaks again.

use std::time::{Duration, Instant};

use quarterdeck_testkit::sound::speech;
use quarterdeck_websocket::{Class, Limits, Message, Opcode, WebSocket, upgrade};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval};

use super::engines::RequestLog;
use super::{Measured, REPLY_DELAY, SPEECH_DELAY, TRANSCRIPTION_DELAY};

const FRAME: Duration = Duration::from_millis(20);
/// 20 ms at 16 kHz.
const FRAME_BYTES: usize = 640;
const SPOKEN: Duration = Duration::from_millis(1_200);
/// Calls do not begin all at once.
const START_GAP: Duration = Duration::from_millis(37);
/// How long one turn may take.
const TURN_TIMEOUT: Duration = Duration::from_secs(30);

/// What a call knows of its present turn.
#[derive(Default)]
struct Turn {
    spoken_at: Option<Instant>,
    asked_at: Option<Instant>,
    measured: Option<Measured>,
    is_over: bool,
}

/// Holds a call of so many turns.
pub(super) async fn hold(port: u16, log: RequestLog, number: usize, turns: usize) -> Vec<Measured> {
    tokio::time::sleep(START_GAP * number as u32).await;
    let cookie = new_cookie(port).await;
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    let host = format!("127.0.0.1:{port}");
    let limits = Limits { max_message_bytes: 1 << 20 };
    let headers = [("cookie", cookie.as_str())];
    let mut socket = upgrade(stream, &host, "/voice", &headers, limits).await.expect("a call");
    socket.send_text(r#"{"type":"start"}"#);
    socket.flush().await.expect("a call");
    let voice: Vec<u8> = speech(SPOKEN, 0.3, 16_000).iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let mut measured = Vec::new();
    let mut clock = interval(FRAME);
    clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for _ in 0..turns {
        let turn = tokio::time::timeout(TURN_TIMEOUT, converse(&mut socket, &mut clock, &voice, &log));
        measured.push(turn.await.expect("an answer in time"));
    }
    measured
}

/// Speaks and waits until the answer was given and the turn is over.
async fn converse(
    socket: &mut WebSocket<TcpStream>,
    clock: &mut tokio::time::Interval,
    voice: &[u8],
    log: &RequestLog,
) -> Measured {
    let mut turn = Turn::default();
    let mut frames = voice.chunks_exact(FRAME_BYTES);
    loop {
        tokio::select! {
            _ = clock.tick() => {
                let silence = [0; FRAME_BYTES];
                let frame = frames.next();
                if frame.is_some() {
                    turn.spoken_at = Some(Instant::now());
                }
                let bytes = frame.unwrap_or(&silence);
                socket.send(Opcode::Binary, Class::Control, bytes.len(), |out| out.extend_from_slice(bytes));
                socket.flush().await.expect("the call is on");
            }
            filled = socket.fill() => {
                filled.expect("the call is on");
                while let Some(message) = socket.next() {
                    turn.take(message.expect("a message"), log);
                }
            }
        }
        if let (Some(measured), true) = (turn.measured, turn.is_over) {
            return measured;
        }
    }
}

impl Turn {
    fn take(&mut self, message: Message<'_>, log: &RequestLog) {
        match message {
            Message::Binary(_) => self.measure(),
            Message::Text(text) => {
                let message: Value = serde_json::from_str(text).expect("JSON");
                let words = message["text"].as_str().unwrap_or_default();
                let number = words.strip_prefix("Question ").and_then(|number| number.parse::<usize>().ok());
                if let (Some("transcript"), Some(number)) = (message["type"].as_str(), number) {
                    self.asked_at = log.lock().expect("no writer panics").get(number).copied();
                }
                assert!(message["type"] != "error", "{message}");
                self.is_over |= message["type"] == "turn_complete";
            }
            _ => {}
        }
    }

    /// The first audio has come.
    fn measure(&mut self) {
        let (Some(spoken_at), Some(asked_at), None) = (self.spoken_at, self.asked_at, self.measured) else {
            return;
        };
        let engines = TRANSCRIPTION_DELAY + REPLY_DELAY + SPEECH_DELAY;
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        self.measured = Some(Measured {
            end_of_turn_ms: millis(asked_at.saturating_duration_since(spoken_at)),
            added_ms: millis(asked_at.elapsed()) - millis(engines),
        });
    }
}

/// The cookie of a new client.
async fn new_cookie(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    let request = format!("GET /api/me HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    cookie.split(';').next().unwrap_or_default().to_owned()
}
