//! `GET /api/deck/live`: audit events as they happen.

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
use schemars::JsonSchema;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;

use super::{Operator, Shared, audit_log, operation};
use crate::app::App;
use crate::deck::{FeedItem, next_item};
use crate::error::ApiError;
use crate::quota::Permit;
use crate::routes::openapi::envelope::AuditLineShape;
use crate::routes::openapi::schemas::one_of;
use crate::routes::openapi::{Media, Operation};
use crate::stream::write_json;

/// A comment is sent after this silence.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(12);

const STREAM: &str = "\
data: {\"event\":\"tool_execution\",\"time\":\"2026-11-15T09:30:00.000Z\",\"sessionId\":\"ses_1\",\"clientId\":\"c_1\",\
\"toolId\":\"kb_search\",\"duration\":12,\"ok\":true}\n\n\
data: {\"lost\":40}\n\n";

type NextEvent = Pin<Box<dyn Future<Output = Next> + Send>>;

enum Next {
    /// Bytes to send, and the future of the next.
    Send(Vec<u8>, NextEvent),
    /// The server is shutting down.
    Stop,
}

/// Follows the audit feed until the reader leaves or the server stops.
struct LiveBody {
    next: Option<NextEvent>,
    _permit: Permit,
}

#[derive(JsonSchema)]
#[schemars(rename = "LiveEvent", untagged, transform = one_of)]
#[expect(dead_code, reason = "only its schema is used")]
enum LiveEventShape {
    Line(AuditLineShape),
    #[schemars(title = "Lost")]
    Lost(LostShape),
}

#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct LostShape {
    /// Events skipped.
    #[schemars(range(min = 1))]
    lost: u64,
}

pub(super) async fn get(State(app): Shared, _: Operator) -> Result<Response, ApiError> {
    let receiver = audit_log(&app)?.feed.follow();
    let permit = app.admission.admit_live_feed()?;
    // A comment at once shows that the connection is open.
    let next: NextEvent = Box::pin(async move { Next::Send(b": here\n\n".to_vec(), wait(app, receiver)) });
    let body = LiveBody { next: Some(next), _permit: permit };
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::new(body)).into_response())
}

fn wait(app: Arc<App>, mut receiver: Receiver<Arc<Value>>) -> NextEvent {
    Box::pin(async move {
        let mut out = Vec::new();
        tokio::select! {
            item = next_item(&mut receiver) => match item {
                Some(FeedItem::Line(line)) => write_json(&mut out, &*line),
                Some(FeedItem::Lost(lost)) => write_json(&mut out, &json!({ "lost": lost })),
                None => return Next::Stop,
            },
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => out.extend_from_slice(b": keep-alive\n\n"),
            () = app.admission.wait_for_drain() => return Next::Stop,
        }
        Next::Send(out, wait(app, receiver))
    })
}

impl http_body::Body for LiveBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        match std::task::ready!(next.as_mut().poll(context)) {
            Next::Send(out, next) => {
                self.next = Some(next);
                Poll::Ready(Some(Ok(Frame::data(out.into()))))
            }
            Next::Stop => {
                self.next = None;
                Poll::Ready(None)
            }
        }
    }
}

pub(super) fn describe() -> Operation {
    operation("followLive", "Follow audit events")
        .description(
            "Server-sent events without end: lines of the audit log without their chain fields. A slow reader loses \
             the oldest events and is told how many.",
        )
        .response(200, "The events.", vec![Media::events::<LiveEventShape>(STREAM)])
        .errors(&[404])
}
