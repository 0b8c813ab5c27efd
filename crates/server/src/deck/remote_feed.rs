//! The live feeds of the other nodes, which the deck asks for over HTTP.
//!
//! A node that starts or comes back is found within a few seconds; what it recorded before is in its audit log.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use bytes::Bytes;
use http_body_util::BodyExt;
use quarterdeck_runtime::{Holder, NodeView, Orchestrator};
use serde_json::{Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{AbortHandle, JoinSet};

use super::feed::FeedItem;
use crate::nodes::{FEED_PATH, Nodes};

/// How often it is looked which nodes there are.
const LOOK_INTERVAL: Duration = Duration::from_secs(3);
/// Events that a reader may lag behind.
const MAX_LAG_EVENTS: usize = 256;
/// A longer event is no line of a log: its feed is not read further.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// The events of all other nodes, until it is dropped.
pub(crate) struct RemoteFeed {
    receiver: Receiver<FeedItem>,
    _following: Following,
}

struct Following(AbortHandle);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl RemoteFeed {
    pub(crate) fn follow(nodes: Arc<Nodes>, orchestrator: Orchestrator) -> Self {
        let (sender, receiver) = channel(MAX_LAG_EVENTS);
        let following = tokio::spawn(follow_nodes(nodes, orchestrator, sender));
        Self { receiver, _following: Following(following.abort_handle()) }
    }

    /// The next event; waits for ever when there will be none.
    pub(crate) async fn next(&mut self) -> FeedItem {
        match self.receiver.recv().await {
            Some(item) => item,
            None => std::future::pending().await,
        }
    }
}

/// Follows every other node that lives, each once.
async fn follow_nodes(nodes: Arc<Nodes>, orchestrator: Orchestrator, sender: Sender<FeedItem>) {
    let mut readers = JoinSet::new();
    let mut followed: BTreeMap<String, AbortHandle> = BTreeMap::new();
    loop {
        followed.retain(|_, reader| !reader.is_finished());
        // Without the database nothing is known of others; those that are followed are followed on.
        for node in orchestrator.nodes().await.unwrap_or_default() {
            if node.is_alive && !node.is_self && !followed.contains_key(&node.boot) {
                let boot = node.boot.clone();
                let reader = readers.spawn(follow_node(nodes.clone(), node, sender.clone()));
                followed.insert(boot, reader);
            }
        }
        while readers.try_join_next().is_some() {}
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Reads the feed of one node until it ends.
async fn follow_node(nodes: Arc<Nodes>, node: NodeView, sender: Sender<FeedItem>) {
    let to = Holder { node: node.name.clone(), address: node.address, boot: node.boot };
    let response = match nodes.ask(&to, Method::GET, FEED_PATH, Bytes::new()).await {
        Ok(response) if response.status().is_success() => response,
        Ok(response) => {
            return tracing::warn!(node = to.node, status = %response.status(), "live feed of a node was refused");
        }
        Err(error) => return tracing::warn!(node = to.node, error = %error, "live feed of a node was lost"),
    };
    let mut body = pin!(response.into_body());
    let mut events = EventLines::default();
    let mut lost = 0;
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        if !events.add(&data) {
            return tracing::warn!(node = to.node, "live feed of a node sent too long an event");
        }
        for mut event in events.take() {
            lost += event["lost"].as_u64().unwrap_or_default();
            if event.get("lost").is_some() {
                continue;
            }
            event["nodeName"] = json!(to.node);
            // A reader that is behind loses lines and is told how many.
            if lost > 0 && sender.try_send(FeedItem::Lost(lost)).is_ok() {
                lost = 0;
            }
            match sender.try_send(FeedItem::Line(Arc::new(event))) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => lost += 1,
                Err(TrySendError::Closed(_)) => return,
            }
        }
    }
}

/// Server-sent events from the pieces that they come in.
#[derive(Default)]
struct EventLines {
    buffer: Vec<u8>,
}

impl EventLines {
    /// `false` if an event is too long.
    fn add(&mut self, bytes: &[u8]) -> bool {
        self.buffer.extend_from_slice(bytes);
        self.buffer.len() <= MAX_EVENT_BYTES || self.buffer.contains(&b'\n')
    }

    /// The events that are complete. Comments are none.
    fn take(&mut self) -> Vec<Value> {
        let Some(end) = self.buffer.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let rest = self.buffer.split_off(end + 1);
        let complete = std::mem::replace(&mut self.buffer, rest);
        let lines = complete.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
        lines.filter_map(|line| serde_json::from_slice(line).ok()).filter(Value::is_object).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_from_any_pieces() {
        let text =
            ": here\n\ndata: {\"event\":\"ä\"}\n\n: keep-alive\n\ndata: {\"lost\":3}\n\ndata: 7\n\ndata: {";
        for size in 1..text.len() {
            let mut events = EventLines::default();
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                assert!(events.add(piece));
                found.extend(events.take());
            }
            assert_eq!(found, [json!({ "event": "ä" }), json!({ "lost": 3 })], "{size}");
        }
        assert!(!EventLines::default().add(&vec![b'x'; MAX_EVENT_BYTES + 1]));
    }
}
