//! `GET /api/deck/live`: what happens, as it happens.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::Frame;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;

use super::{Operator, Shared, operation, trail};
use crate::app::App;
use crate::deck::{Heard, next};
use crate::error::ApiError;
use crate::places::Place;
use crate::routes::openapi::{Operation, event_stream, reference};
use crate::stream::write_json;

/// How long a connection is silent before a comment keeps it open.
const KEEP_ALIVE: Duration = Duration::from_secs(12);

const STREAM: &str = "\
data: {\"event\":\"tool_execution\",\"time\":\"2026-11-15T09:30:00.000Z\",\"sessionId\":\"ses_1\",\"clientId\":\"c_1\",\
\"toolId\":\"kb_search\",\"duration\":12,\"ok\":true}\n\n\
data: {\"lost\":40}\n\n";

type Waiting = Pin<Box<dyn Future<Output = Next> + Send>>;

/// What comes next.
enum Next {
    /// Something to say, and the wait for what follows.
    Say(Vec<u8>, Waiting),
    /// The server is about to stop.
    Stop,
}

/// A body that follows the trail until its reader leaves or the server stops.
struct Following {
    waiting: Option<Waiting>,
    _place: Place,
}

pub(super) async fn get(State(app): Shared, _: Operator) -> Result<Response, ApiError> {
    let receiver = trail(&app)?.feed.follow();
    let place = app.admit_watcher()?;
    // Something is said at once, so that whoever connects knows that they are.
    let waiting: Waiting = Box::pin(async move { Next::Say(b": here\n\n".to_vec(), wait(app, receiver)) });
    let following = Following { waiting: Some(waiting), _place: place };
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::new(following)).into_response())
}

/// Waits for something to say.
fn wait(app: Arc<App>, mut receiver: Receiver<Arc<Value>>) -> Waiting {
    Box::pin(async move {
        let mut out = Vec::new();
        tokio::select! {
            heard = next(&mut receiver) => match heard {
                Some(Heard::Line(line)) => write_json(&mut out, &*line),
                Some(Heard::Lost(lost)) => write_json(&mut out, &json!({ "lost": lost })),
                None => return Next::Stop,
            },
            () = tokio::time::sleep(KEEP_ALIVE) => out.extend_from_slice(b": keep-alive\n\n"),
            () = app.drained() => return Next::Stop,
        }
        Next::Say(out, wait(app, receiver))
    })
}

impl http_body::Body for Following {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(waiting) = &mut self.waiting else { return Poll::Ready(None) };
        match std::task::ready!(waiting.as_mut().poll(context)) {
            Next::Say(out, waiting) => {
                self.waiting = Some(waiting);
                Poll::Ready(Some(Ok(Frame::data(out.into()))))
            }
            Next::Stop => {
                self.waiting = None;
                Poll::Ready(None)
            }
        }
    }
}

pub(super) fn described() -> Operation {
    operation("followLive", "What happens, as it happens")
        .about(
            "Server-sent events without an end: lines of the audit trail, but for their place in the chain. Whoever reads \
             too slowly loses the oldest, and is told how many.",
        )
        .gives(200, "The events.", event_stream("LiveEvent", STREAM))
        .refuses(&[404])
}

/// An event, for the shared schemas.
pub(super) fn event_schema() -> Value {
    let lost = json!({
        "title": "Lost", "type": "object", "required": ["lost"], "additionalProperties": false,
        "properties": { "lost": { "type": "integer", "minimum": 1, "description": "How many events were missed." } },
    });
    json!({ "oneOf": [reference("schemas", "AuditLine"), lost] })
}
