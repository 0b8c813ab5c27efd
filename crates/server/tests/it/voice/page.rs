//! A page in a call, with a raw socket.

use std::time::Duration;

use quarterdeck_websocket::{Class, Limits, Message, Opcode, SocketError, UpgradeError, WebSocket, upgrade};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::world::World;

const TIMEOUT: Duration = Duration::from_secs(20);
const LIMITS: Limits = Limits { max_message_bytes: 1 << 20 };

pub(crate) struct Page {
    pub(crate) socket: WebSocket<TcpStream>,
}

/// A received message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Read {
    Json(Value),
    Audio(Vec<u8>),
    Closed(Option<u16>),
    /// The connection ended without a close frame.
    Lost,
}

impl Page {
    /// Opens the WebSocket without `start`.
    pub(crate) async fn open(world: &World, target: &str, headers: &[(&str, &str)]) -> Self {
        Self::try_open(world, target, headers).await.unwrap()
    }

    pub(crate) async fn try_open(
        world: &World,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, UpgradeError> {
        let stream = TcpStream::connect(world.address).await.unwrap();
        let host = world.address.to_string();
        Ok(Self { socket: upgrade(stream, &host, target, headers, LIMITS).await? })
    }

    /// Starts a call of a client.
    pub(crate) async fn calling(world: &World, cookie: &str) -> (Self, Value) {
        let mut page = Self::open(world, "/voice", &[("cookie", cookie)]).await;
        let ready = page.start(json!({})).await;
        (page, ready)
    }

    /// Sends `start` and waits for `ready`.
    pub(crate) async fn start(&mut self, mut fields: Value) -> Value {
        fields["type"] = "start".into();
        self.send_json(&fields).await;
        let Read::Json(ready) = self.read().await else { panic!("no JSON") };
        assert_eq!(ready["type"], "ready", "{ready}");
        ready
    }

    pub(crate) async fn send_json(&mut self, json: &Value) {
        self.socket.send_text(&json.to_string());
        self.socket.flush().await.unwrap();
    }

    pub(crate) async fn send_audio(&mut self, audio: &[u8]) {
        self.socket.send(Opcode::Binary, Class::Control, audio.len(), |out| out.extend_from_slice(audio));
        self.socket.flush().await.unwrap();
    }

    pub(crate) async fn read(&mut self) -> Read {
        timeout(TIMEOUT, self.next()).await.unwrap()
    }

    async fn next(&mut self) -> Read {
        loop {
            while let Some(message) = self.socket.next() {
                match message.unwrap() {
                    Message::Text(text) => return Read::Json(serde_json::from_str(text).unwrap()),
                    Message::Binary(bytes) => return Read::Audio(bytes.to_vec()),
                    Message::Close(code, _) => return Read::Closed(code.map(|code| code.0)),
                    Message::Ping(_) | Message::Pong => {}
                }
            }
            match self.socket.fill().await {
                Ok(()) => {}
                Err(SocketError::Ended | SocketError::Io(_)) => return Read::Lost,
            }
        }
    }

    /// Reads until a message of a type.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        loop {
            match self.read().await {
                Read::Json(json) if json["type"] == kind => return json,
                Read::Json(_) | Read::Audio(_) => {}
                other => panic!("{other:?} before {kind}"),
            }
        }
    }

    /// Reads to the end: the last error and the close code.
    pub(crate) async fn ending(&mut self) -> (Option<Value>, Option<u16>) {
        let mut error = None;
        loop {
            match self.read().await {
                Read::Json(json) if json["type"] == "error" => error = Some(json["error"].clone()),
                Read::Json(_) | Read::Audio(_) => {}
                Read::Closed(code) => return (error, code),
                Read::Lost => return (error, None),
            }
        }
    }

    /// Checks that audio is echoed, so the call works.
    pub(crate) async fn check_echo(&mut self) {
        self.send_audio(&[1, 2, 3, 4]).await;
        loop {
            match self.read().await {
                Read::Audio(audio) => return assert_eq!(audio, [1, 2, 3, 4]),
                Read::Json(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}
