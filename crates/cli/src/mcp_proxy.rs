//! Passes messages between an MCP client at a pair of streams and the endpoint of a server, for `quarterdeck mcp serve
//! --url`.
//!
//! Messages are passed on as they are, both ways. What is kept is what HTTP needs and a pipe does not: the id of the
//! session, and which requests are open. When the server has forgotten the session, because it was started anew, the
//! client's handshake is repeated without the client's noticing.

mod exchange;
mod handshake;
mod message;
mod target;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_mcp_server::{Line, LineReader, LineWriter};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{AbortHandle, JoinSet};

use exchange::Endpoint;
use handshake::Handshake;
use message::{ClientMessage, MessageKind, error_answer};

pub(crate) use target::ProxyTarget;

/// No message is larger, in either direction.
const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Messages that are on their way at a time.
const MAX_PENDING_MESSAGES: usize = 256;
/// How long answers are waited for when the client has closed its end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const INTERNAL_ERROR: i64 = -32603;

/// Runs until the client closes its end, or `shutdown` comes.
pub(crate) async fn run<R, W>(
    target: &ProxyTarget,
    read: R,
    write: W,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let relay = Arc::new(Relay {
        endpoint: Endpoint::new(target)?,
        client: LineWriter::start(write),
        handshake: Handshake::default(),
        open: Mutex::default(),
    });
    let mut tasks = JoinSet::new();
    tokio::select! {
        read = relay.read_messages(LineReader::new(read, MAX_MESSAGE_BYTES), &mut tasks) => {
            read?;
            // What was asked for before the end is answered; what is only listened to has no end.
            let answered = async { while tasks.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, answered).await;
        }
        () = shutdown => {}
    }
    tasks.shutdown().await;
    relay.close().await;
    Ok(())
}

/// One client and one server.
struct Relay {
    endpoint: Endpoint,
    client: LineWriter,
    handshake: Handshake,
    /// Requests of the newer generation, by their ids: there, a request is cancelled by closing its connection.
    open: Mutex<HashMap<String, AbortHandle>>,
}

impl Relay {
    async fn read_messages<R: AsyncRead + Unpin>(
        self: &Arc<Self>,
        mut lines: LineReader<R>,
        tasks: &mut JoinSet<()>,
    ) -> anyhow::Result<()> {
        while let Some(line) = lines.next().await? {
            while tasks.try_join_next().is_some() {}
            let message = match line {
                Line::Message(bytes) => ClientMessage::parse(&String::from_utf8_lossy(&bytes)),
                Line::TooLong => Err(format!("a message has at most {MAX_MESSAGE_BYTES} bytes")),
            };
            match message {
                Ok(message) => self.take(message, tasks).await,
                Err(reason) => {
                    let text = format!("The line is not a message: {reason}.");
                    self.tell_client(&error_answer(Value::Null, PARSE_ERROR, &text)).await;
                }
            }
        }
        Ok(())
    }

    async fn take(self: &Arc<Self>, message: ClientMessage, tasks: &mut JoinSet<()>) {
        if let Some(id) = message.cancelled_id()
            && let Some(request) = self.open().remove(&id.to_string())
        {
            return request.abort();
        }
        // What follows a handshake needs what comes of it.
        if message.kind == MessageKind::Initialize || message.method() == "notifications/initialized" {
            return self.pass_on(message).await;
        }
        if tasks.len() >= MAX_PENDING_MESSAGES {
            let text = format!(
                "At most {MAX_PENDING_MESSAGES} requests are passed on at a time. Wait for some of them."
            );
            if let Some(failure) = message.failure(INVALID_REQUEST, &text) {
                self.tell_client(&failure).await;
            }
            return;
        }
        let key = message.own_version().and(message.id()).map(ToString::to_string);
        let (relay, own_key) = (self.clone(), key.clone());
        // Locked until the request is noted, so that its end finds it.
        let mut open = self.open();
        let task = tasks.spawn(async move {
            relay.pass_on(message).await;
            if let Some(key) = own_key {
                relay.open().remove(&key);
            }
        });
        if let Some(key) = key {
            open.insert(key, task);
        }
    }

    /// Passes a message on, and what the server answers back.
    async fn pass_on(self: &Arc<Self>, message: ClientMessage) {
        let session = self.handshake.session();
        let mut passed = self.exchange(&message, &session).await;
        if passed.as_ref().is_err_and(|failure| failure.is_session_lost())
            && let Some(session) = self.renew_session(&session).await
        {
            // The server did not take it, so it is not done twice.
            passed = self.exchange(&message, &session).await;
        }
        if let Err(failure) = passed {
            tracing::warn!(reason = %failure, "message was not passed on");
            if let Some(answer) = message.failure(INTERNAL_ERROR, &failure.to_string()) {
                self.tell_client(&answer).await;
            }
        }
        if message.kind == MessageKind::Initialize {
            self.handshake.remember(message);
        } else if message.method() == "notifications/initialized" {
            self.listen();
        }
    }

    /// A client that reads no more has left, which reading from it tells.
    async fn tell_client(&self, message: &Value) {
        let _ = self.client.write(message.to_string()).await;
    }

    async fn close(&self) {
        self.end_session().await;
        self.client.finish().await;
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
