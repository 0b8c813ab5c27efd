//! `GET /api/deck/live`: audit events as they happen.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;

use super::{Operator, Shared, audit_log, operation};
use crate::app::App;
use crate::deck::{FeedItem, RemoteFeed, next_item};
use crate::error::ApiError;
use crate::routes::openapi::envelope::AuditLineShape;
use crate::routes::openapi::schemas::one_of;
use crate::routes::openapi::{Media, Operation};
use crate::stream::feed_body::{KEEP_ALIVE_INTERVAL, Next, NextEvent, respond};
use crate::stream::write_json;

const STREAM: &str = "\
data: {\"event\":\"tool_execution\",\"time\":\"2026-11-15T09:30:00.000Z\",\"sessionId\":\"ses_1\",\"clientId\":\"c_1\",\
\"toolId\":\"kb_search\",\"duration\":12,\"ok\":true}\n\n\
data: {\"lost\":40}\n\n";

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
    let nodes = app.nodes.clone();
    let others = nodes.map(|nodes| RemoteFeed::follow(nodes, app.orchestrator.clone()));
    Ok(respond(wait(app, receiver, others), permit))
}

/// What another node asks for: this node's own events.
pub(in crate::routes) async fn follow_own_events(State(app): Shared) -> Result<Response, ApiError> {
    let receiver = audit_log(&app)?.feed.follow();
    let permit = app.admission.admit_live_feed()?;
    Ok(respond(wait(app, receiver, None), permit))
}

fn wait(app: Arc<App>, mut receiver: Receiver<Arc<Value>>, mut others: Option<RemoteFeed>) -> NextEvent {
    Box::pin(async move {
        let mut out = Vec::new();
        let remote = async {
            match &mut others {
                Some(others) => others.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            item = next_item(&mut receiver) => match item {
                Some(item) => write_item(&mut out, &item, app.orchestrator.node_name()),
                None => return Next::Stop,
            },
            item = remote => write_item(&mut out, &item, None),
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => out.extend_from_slice(b": keep-alive\n\n"),
            () = app.admission.wait_for_drain() => return Next::Stop,
        }
        Next::Send(out, wait(app, receiver, others))
    })
}

/// Writes an event, with the name of this node where it is one of several.
fn write_item(out: &mut Vec<u8>, item: &FeedItem, node: Option<&str>) {
    match (item, node) {
        (FeedItem::Line(line), None) => write_json(out, &**line),
        (FeedItem::Line(line), Some(node)) => {
            let mut line = Value::clone(line);
            line["nodeName"] = json!(node);
            write_json(out, &line);
        }
        (FeedItem::Lost(lost), _) => write_json(out, &json!({ "lost": lost })),
    }
}

pub(super) fn describe() -> Operation {
    operation("followLive", "Follow audit events")
        .description(
            "Server-sent events without end: lines of the audit log without their chain fields. Where several nodes share \
             the store, those of all of them, each with its `nodeName`. A slow reader loses events and is told how many.",
        )
        .response(200, "The events.", vec![Media::events::<LiveEventShape>(STREAM)])
        .errors(&[404])
}
