//! Messages as lines, such as over standard input and output. One client is at the other end.
//!
//! A line is read as any JSON from outside is: within limits, and no key stands twice. What cannot be taken is answered,
//! so that no client waits for it.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quarterdeck_contracts::parse_json_noting_duplicates;
use rmcp::model::{
    CancelledNotification, ClientJsonRpcMessage, ClientNotification, ErrorCode, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::ServerInitializeError;
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer, ServiceExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::caller::McpCaller;
use crate::line_stream::{Line, LineReader, LineWriter};
use crate::server::{McpServer, Shared};

/// Requests of one client that are being answered.
const MAX_PENDING_REQUESTS: usize = 256;
/// How deep a message may be nested, as for every body that the server takes.
const MAX_DEPTH: usize = 64;

/// Why a connection ended before its client closed it.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the client failed: {0}")]
pub struct ConnectionLost(String);

impl McpServer {
    /// Serves one client until it closes its end. What it asked for before that is still answered, within seconds. It is
    /// the only client of this server, which closes with it.
    pub async fn serve_lines<R, W>(&self, caller: McpCaller, read: R, write: W) -> Result<(), ConnectionLost>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let transport = LineTransport::new(read, write, self.shared.clone());
        let writer = transport.writer.clone();
        let served = match self.handler_for(caller).serve(transport).await {
            Ok(running) => {
                running.waiting().await.map(|_| ()).map_err(|error| ConnectionLost(error.to_string()))
            }
            // It said nothing.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(ConnectionLost(error.to_string())),
        };
        // Where there was no handshake, nothing has closed the transport.
        writer.finish().await;
        served
    }
}

/// One message in each line, both ways.
struct LineTransport<R> {
    shared: Arc<Shared>,
    lines: LineReader<R>,
    limits: Limits,
    writer: Arc<LineWriter>,
    pending: Arc<PendingRequests>,
    /// What a line is answered with that could not be taken. It is kept here, because waiting for a place in the queue may
    /// be given up.
    refusal: Option<String>,
    /// Before its first request a client has nothing to tell.
    has_begun: bool,
}

#[derive(Clone, Copy)]
struct Limits {
    max_bytes: usize,
    max_depth: usize,
}

impl<R: AsyncRead + Send + Unpin + 'static> LineTransport<R> {
    fn new<W>(read: R, write: W, shared: Arc<Shared>) -> Self
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let limits = Limits { max_bytes: shared.parts.settings.max_body_bytes, max_depth: MAX_DEPTH };
        Self {
            shared,
            lines: LineReader::new(read, limits.max_bytes),
            limits,
            writer: Arc::new(LineWriter::start(write)),
            pending: Arc::default(),
            refusal: None,
            has_begun: false,
        }
    }

    /// The message of a line, if there is one that can be passed on.
    fn take(&mut self, line: &Line) -> Option<ClientJsonRpcMessage> {
        let message = match line {
            Line::Message(bytes) => parse(bytes, self.limits),
            Line::TooLong => Err(Refusal::too_long(self.limits)),
        };
        let message = message.and_then(|message| self.pending.admit(message));
        match message {
            Ok(message) if self.has_begun || matches!(message, JsonRpcMessage::Request(_)) => {
                self.has_begun = true;
                Some(message)
            }
            Ok(_) => None,
            Err(refusal) => {
                tracing::warn!(reason = %refusal.error.message, "message refused");
                self.refusal = refusal.into_line();
                None
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleServer> for LineTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let (writer, pending) = (self.writer.clone(), self.pending.clone());
        async move {
            let line = serde_json::to_string(&message)?;
            writer.write(line).await?;
            pending.mark_answered(&message);
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(refusal) = &self.refusal {
                self.writer.write(refusal.clone()).await.ok()?;
                self.refusal = None;
            }
            let line = match self.lines.next().await {
                Ok(Some(line)) => line,
                end => {
                    if let Err(error) = end {
                        tracing::error!(%error, "client's messages cannot be read");
                    }
                    // Whatever listens for changes would be waited for.
                    self.shared.close();
                    return None;
                }
            };
            if let Some(message) = self.take(&line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.writer.finish().await;
        Ok(())
    }
}

/// What a line is answered with that is not taken.
struct Refusal {
    id: Option<RequestId>,
    error: ErrorData,
    is_response: bool,
}

impl Refusal {
    fn new(id: Option<RequestId>, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { id, error: ErrorData::new(code, message.into(), None), is_response: false }
    }

    fn too_long(limits: Limits) -> Self {
        let message = format!("A message has at most {} bytes.", limits.max_bytes);
        Self::new(None, ErrorCode::INVALID_REQUEST, message)
    }

    /// A client that has answered a question is not answered in turn.
    fn into_line(self) -> Option<String> {
        let message = ServerJsonRpcMessage::error(self.error, self.id);
        if self.is_response { None } else { serde_json::to_string(&message).ok() }
    }
}

fn parse(line: &[u8], limits: Limits) -> Result<ClientJsonRpcMessage, Refusal> {
    let text = std::str::from_utf8(line)
        .map_err(|_| Refusal::new(None, ErrorCode::PARSE_ERROR, "The line is not UTF-8."))?;
    let (value, has_duplicates) = parse_json_noting_duplicates(text).map_err(|error| {
        Refusal::new(None, ErrorCode::PARSE_ERROR, format!("The line is not one JSON value: {error}."))
    })?;
    let id = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    let is_response = value.get("method").is_none() && id.is_some();
    let refuse = |message: String| Refusal {
        is_response,
        ..Refusal::new(id.clone(), ErrorCode::INVALID_REQUEST, message)
    };
    if has_duplicates {
        return Err(refuse("A key stands twice in the message.".to_owned()));
    }
    if depth(&value) > limits.max_depth {
        return Err(refuse(format!("The message is nested deeper than {} levels.", limits.max_depth)));
    }
    serde_json::from_value(value).map_err(|_| refuse("The line is not a message of the protocol.".to_owned()))
}

/// What a line is answered with that is not taken; nothing if it is.
#[cfg(feature = "fuzzing")]
pub fn refusal_of_line(line: &[u8]) -> Option<String> {
    parse(line, Limits { max_bytes: 1 << 20, max_depth: MAX_DEPTH }).err()?.into_line()
}

/// How deep a value is nested. The parser has a limit of its own, so recursion is bounded.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Requests that are being answered, so that their number is bounded.
#[derive(Default)]
struct PendingRequests {
    ids: Mutex<HashSet<RequestId>>,
}

impl PendingRequests {
    fn lock(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, message: ClientJsonRpcMessage) -> Result<ClientJsonRpcMessage, Refusal> {
        match &message {
            JsonRpcMessage::Request(request) => {
                let mut ids = self.lock();
                let id = Some(request.id.clone());
                if ids.len() >= MAX_PENDING_REQUESTS {
                    let message = format!(
                        "At most {MAX_PENDING_REQUESTS} requests are answered at a time. Wait for some of them."
                    );
                    return Err(Refusal::new(id, ErrorCode::INTERNAL_ERROR, message));
                }
                if !ids.insert(request.id.clone()) {
                    let message = "A request with this id is being answered.";
                    return Err(Refusal::new(None, ErrorCode::INVALID_REQUEST, message));
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(CancelledNotification { params, .. }) =
                    &notification.notification
                    && let Some(id) = &params.request_id
                {
                    // It is answered no more.
                    self.lock().remove(id);
                }
            }
            _ => {}
        }
        Ok(message)
    }

    fn mark_answered(&self, message: &ServerJsonRpcMessage) {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = id {
            self.lock().remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { max_bytes: 1_000, max_depth: 8 };

    fn refused(line: &str) -> Option<Value> {
        let refusal = parse(line.as_bytes(), LIMITS).unwrap_err().into_line()?;
        Some(serde_json::from_str(&refusal).unwrap())
    }

    #[test]
    fn a_line_that_cannot_be_taken_is_answered_with_its_id() {
        let answer = refused(r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1,"a":2}}"#).unwrap();
        assert_eq!((answer["id"].as_i64(), answer["error"]["code"].as_i64()), (Some(7), Some(-32600)));
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"ping","params":{}1{}}}"#,
            "[".repeat(9),
            "]".repeat(9)
        );
        let answer = refused(&deep).unwrap();
        assert_eq!((answer["id"].as_str(), answer["error"]["code"].as_i64()), (Some("x"), Some(-32600)));
        let answer = refused(r#"{"id":1,"method":7}"#).unwrap();
        assert_eq!((answer["id"].as_i64(), answer["error"]["code"].as_i64()), (Some(1), Some(-32600)));
    }

    #[test]
    fn what_is_not_json_is_a_parse_error_and_a_broken_response_is_not_answered() {
        for line in ["{", "hello", &"[".repeat(500)] {
            assert_eq!(refused(line).unwrap()["error"]["code"], -32700, "{line}");
        }
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":1}}"#), None);
        assert!(parse(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, LIMITS).is_ok());
        assert!(parse(b"\xff", LIMITS).is_err());
    }
}
