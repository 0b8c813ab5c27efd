//! One message to the server, and what it answers: one message, or a stream of them.

use std::time::Duration;

use quarterdeck_contracts::parse_json;
use quarterdeck_transports::sse::Decoder;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, redirect};
use serde_json::Value;

use super::handshake::Session;
use super::message::{ClientMessage, MessageKind, VERSION_HEADER};
use super::{MAX_MESSAGE_BYTES, ProxyTarget, Relay};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// How much of a server's own words is passed on, in characters.
const MAX_REASON_CHARS: usize = 300;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("No server answers on {0}. Start it with `quarterdeck serve`, and try again.")]
    Unreachable(String),
    #[error(
        "The connection to the server was lost before it answered. A call may have been carried out: look before you repeat it."
    )]
    Lost,
    #[error("The server has forgotten this session. Start the connection anew.")]
    SessionLost,
    #[error("The server wants a key. Name the environment variable that holds it with `--key-env`.")]
    KeyWanted,
    #[error("The server refused with status {0}: {1}")]
    Refused(StatusCode, String),
    #[error("The server's answer is not a message of the protocol.")]
    NotAMessage,
    #[error("The server's answer is larger than {MAX_MESSAGE_BYTES} bytes.")]
    TooLarge,
}

impl Failure {
    pub(super) fn is_session_lost(&self) -> bool {
        matches!(self, Self::SessionLost)
    }
}

/// Where messages go.
pub(super) struct Endpoint {
    http: Client,
    target: ProxyTarget,
    authorization: Option<HeaderValue>,
}

impl Endpoint {
    pub(super) fn new(target: &ProxyTarget) -> anyhow::Result<Self> {
        let mut builder = Client::builder()
            // The key is for this server alone.
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(KEEP_ALIVE_INTERVAL);
        if quarterdeck_transports::is_loopback_url(target.url.as_str()) {
            builder = builder.no_proxy();
        }
        let authorization = target.key.as_ref().map(|key| {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))?;
            value.set_sensitive(true);
            anyhow::Ok(value)
        });
        Ok(Self { http: builder.build()?, target: target.clone(), authorization: authorization.transpose()? })
    }

    fn request(&self, method: Method, session: &Session) -> RequestBuilder {
        let mut request = self.http.request(method, self.target.url.clone());
        if let Some(value) = &self.authorization {
            request = request.header(AUTHORIZATION, value.clone());
        }
        if let Some(id) = &session.id {
            request = request.header(SESSION_HEADER, id);
        }
        if let Some(version) = &session.version {
            request = request.header(VERSION_HEADER, version);
        }
        request
    }

    fn post(&self, message: &ClientMessage, session: &Session) -> RequestBuilder {
        // A message that names its version belongs to no session, and one that begins a session has none yet.
        let has_session = message.own_version().is_none() && message.kind != MessageKind::Initialize;
        let session = if has_session { session } else { &Session::default() };
        self.request(Method::POST, session)
            .headers(message.standard_headers())
            .header(ACCEPT, format!("{JSON}, {EVENTS}"))
            .header(CONTENT_TYPE, JSON)
            .body(message.body.to_string())
    }

    pub(super) fn delete(&self, session: &Session) -> RequestBuilder {
        self.request(Method::DELETE, session)
    }
}

impl Relay {
    /// Sends a message and passes on what comes back. A request has had its answer when this returns without a failure.
    pub(super) async fn exchange(&self, message: &ClientMessage, session: &Session) -> Result<(), Failure> {
        let messages = self.send(message, session).await?;
        if message.kind == MessageKind::Initialize {
            let answer = self.read_handshake(message, messages).await?;
            self.tell_client(&answer).await;
            return Ok(());
        }
        let is_answered = self.pass_back(messages, message.id()).await?;
        let wants_answer = message.kind == MessageKind::Request;
        if wants_answer && !is_answered { Err(Failure::Lost) } else { Ok(()) }
    }

    /// Repeats a handshake whose answer the client has had before.
    pub(super) async fn begin_session(&self, request: &ClientMessage) -> Result<(), Failure> {
        let messages = self.send(request, &Session::default()).await?;
        self.read_handshake(request, messages).await.map(drop)
    }

    /// Passes on what the server says unasked, until it closes the stream. Returns how many messages there were.
    pub(super) async fn read_unasked(&self, session: &Session) -> Result<usize, Failure> {
        let request = self.endpoint.request(Method::GET, session).header(ACCEPT, EVENTS);
        let response = match request.send().await {
            Ok(response) => response,
            // It may be back in a moment.
            Err(_) => return Ok(0),
        };
        let status = response.status();
        if !status.is_success() {
            return Err(self.failure(status, &Value::Null, session));
        }
        let mut messages = 0;
        let mut events = EventStream::new(response);
        // A stream that breaks is opened again.
        while let Ok(Some(message)) = events.next().await {
            self.tell_client(&message).await;
            messages += 1;
        }
        Ok(messages)
    }

    async fn send(&self, message: &ClientMessage, session: &Session) -> Result<EventStream, Failure> {
        let sent = self.endpoint.post(message, session).send().await;
        let response = sent.map_err(|error| match error.is_connect() {
            true => Failure::Unreachable(self.endpoint.target.shown()),
            false => Failure::Lost,
        })?;
        if response.status().is_success() {
            return Ok(EventStream::new(response));
        }
        self.read_refusal(response, message, session).await
    }

    /// What the server answers to `initialize`, with the session that it begins.
    async fn read_handshake(
        &self,
        request: &ClientMessage,
        mut messages: EventStream,
    ) -> Result<Value, Failure> {
        while let Some(message) = messages.next().await? {
            if message.get("method").is_some() {
                continue;
            }
            let version = message.pointer("/result/protocolVersion").and_then(Value::as_str);
            let (id, version) = (messages.session_id.take(), version.map(str::to_owned));
            self.handshake.set_session(Session { id, version });
            let mut answer = message;
            answer["id"] = request.id().cloned().unwrap_or_default();
            return Ok(answer);
        }
        Err(Failure::Lost)
    }

    /// Whether the answer to the request of this id was among what came.
    async fn pass_back(&self, mut messages: EventStream, id: Option<&Value>) -> Result<bool, Failure> {
        let mut is_answered = false;
        while let Some(message) = messages.next().await? {
            is_answered |= message.get("method").is_none() && message.get("id") == id;
            self.tell_client(&message).await;
        }
        Ok(is_answered)
    }

    /// A refusal of the protocol is an answer. Any other is a failure: of what stands before the protocol, or of something
    /// that does not speak it.
    async fn read_refusal(
        &self,
        response: Response,
        message: &ClientMessage,
        session: &Session,
    ) -> Result<EventStream, Failure> {
        let status = response.status();
        let mut messages = EventStream::new(response);
        let mut body = messages.next().await.ok().flatten().unwrap_or_default();
        if body.get("jsonrpc").is_some() && body.get("error").is_some() {
            // Where it was refused before its id was read, it has none.
            body["id"] = message.id().cloned().unwrap_or_default();
            messages.ready.push_front(body);
            return Ok(messages);
        }
        Err(self.failure(status, &body, session))
    }

    fn failure(&self, status: StatusCode, body: &Value, session: &Session) -> Failure {
        match status {
            StatusCode::NOT_FOUND if session.id.is_some() => Failure::SessionLost,
            StatusCode::UNAUTHORIZED if self.endpoint.authorization.is_none() => Failure::KeyWanted,
            _ => {
                let reason = body.pointer("/error/message").and_then(Value::as_str);
                let reason = reason.unwrap_or("it gave no reason").chars().take(MAX_REASON_CHARS).collect();
                Failure::Refused(status, reason)
            }
        }
    }
}

/// The messages of a response, whether it is one or a stream.
struct EventStream {
    response: Response,
    /// The session that the response begins.
    session_id: Option<String>,
    /// `None` where the body is one message.
    events: Option<Decoder>,
    ready: std::collections::VecDeque<Value>,
    body: Vec<u8>,
    is_done: bool,
}

impl EventStream {
    fn new(response: Response) -> Self {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with(EVENTS));
        let events = is_stream.then(|| Decoder::new(MAX_MESSAGE_BYTES));
        let session_id = response.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok());
        let session_id = session_id.map(str::to_owned);
        Self { session_id, response, events, ready: Default::default(), body: Vec::new(), is_done: false }
    }

    async fn next(&mut self) -> Result<Option<Value>, Failure> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            if self.is_done {
                return Ok(None);
            }
            match self.response.chunk().await.map_err(|_| Failure::Lost)? {
                Some(bytes) => self.feed(&bytes)?,
                None => self.finish()?,
            }
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(events) = &mut self.events else {
            if self.body.len() + bytes.len() > MAX_MESSAGE_BYTES {
                return Err(Failure::TooLarge);
            }
            self.body.extend_from_slice(bytes);
            return Ok(());
        };
        let (ready, mut is_sound) = (&mut self.ready, true);
        let fed = events.feed(bytes, |event| {
            // Some events only keep the connection, or say where to go on.
            if !event.data.trim().is_empty() {
                match parse_json(event.data) {
                    Ok(message) => ready.push_back(message),
                    Err(_) => is_sound = false,
                }
            }
        });
        fed.map_err(|_| Failure::TooLarge)?;
        if is_sound { Ok(()) } else { Err(Failure::NotAMessage) }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.is_done = true;
        let text = std::str::from_utf8(&self.body).map_err(|_| Failure::NotAMessage)?;
        if self.events.is_none() && !text.trim().is_empty() {
            self.ready.push_back(parse_json(text).map_err(|_| Failure::NotAMessage)?);
        }
        Ok(())
    }
}
