//! A page that speaks, with a socket that a test can do anything with.

use std::time::Duration;

use quarterdeck_websocket::{Class, Limits, Message, Opcode, SocketError, UpgradeError, WebSocket, upgrade};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::world::World;

/// Nothing that a test waits for takes this long.
const PATIENCE: Duration = Duration::from_secs(20);
const LIMITS: Limits = Limits { max_message_bytes: 1 << 20 };

/// A page on a WebSocket.
pub(crate) struct Page {
    pub(crate) socket: WebSocket<TcpStream>,
}

/// Something that a page reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Read {
    Json(Value),
    Audio(Vec<u8>),
    Closed(Option<u16>),
    /// The connection ended without a word.
    Lost,
}

impl Page {
    /// Opens the WebSocket and says nothing.
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

    /// Opens a call as somebody.
    pub(crate) async fn calling(world: &World, cookie: &str) -> (Self, Value) {
        let mut page = Self::open(world, "/voice", &[("cookie", cookie)]).await;
        let ready = page.start(json!({})).await;
        (page, ready)
    }

    /// Begins, and waits for the answer.
    pub(crate) async fn start(&mut self, mut fields: Value) -> Value {
        fields["type"] = "start".into();
        self.says(&fields).await;
        let Read::Json(ready) = self.read().await else { panic!("no JSON") };
        assert_eq!(ready["type"], "ready", "{ready}");
        ready
    }

    pub(crate) async fn says(&mut self, json: &Value) {
        self.socket.send_text(&json.to_string());
        self.socket.flush().await.unwrap();
    }

    pub(crate) async fn speaks(&mut self, audio: &[u8]) {
        self.socket.send(Opcode::Binary, Class::Control, audio.len(), |out| out.extend_from_slice(audio));
        self.socket.flush().await.unwrap();
    }

    /// The next thing.
    pub(crate) async fn read(&mut self) -> Read {
        timeout(PATIENCE, self.next()).await.unwrap()
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

    /// Reads on to a message of a type.
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

    /// What it says comes back, so the call is on and undisturbed.
    pub(crate) async fn is_heard(&mut self) {
        self.speaks(&[1, 2, 3, 4]).await;
        loop {
            match self.read().await {
                Read::Audio(audio) => return assert_eq!(audio, [1, 2, 3, 4]),
                Read::Json(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}
