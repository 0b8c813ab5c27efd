//! Brings the session of a call here that another node has.

use std::time::Duration;

use axum::http::Method;
use bytes::Bytes;
use quarterdeck_runtime::Holder;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use super::{Nodes, SendError};
use crate::app::App;

pub(crate) const RELEASE_PATH: &str = "/api/nodes/release";
/// How long a living node may take to end a call and store what was said.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(1_500);
/// How long a session is waited for whose node is finishing something in it.
const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Which session is wanted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReleaseRequest {
    pub(crate) session: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReleaseReply {
    /// Whether there was a call of it, which is over.
    pub(crate) is_released: bool,
}

impl App {
    /// Sees to it that the session of a call can be resumed here: a living node that has it is asked to let it go. Returns
    /// the node that has it and is dead, from which it can be taken at once.
    pub(crate) async fn bring_call_here(&self, session: &str) -> Option<Holder> {
        let nodes = self.nodes.as_ref()?;
        let began = Instant::now();
        while began.elapsed() < HAND_OVER_TIMEOUT {
            // A store that fails will say so when the call is resumed.
            let holder = self.orchestrator.holder(session).await.ok()??;
            let asked = Instant::now();
            match nodes.ask_to_release(&holder, session).await {
                Ok(reply) => {
                    let (node, waited_ms) = (&holder.node, asked.elapsed().as_millis() as u64);
                    tracing::info!(
                        session,
                        node,
                        waited_ms,
                        is_released = reply.is_released,
                        "call handed over"
                    );
                    // It is finishing something, or another node asked first.
                    if !reply.is_released {
                        tokio::time::sleep(POLL_INTERVAL).await;
                    }
                }
                Err(SendError::Unreachable(reason)) => {
                    tracing::warn!(session, node = holder.node, reason, "call taken over from a dead node");
                    return Some(holder);
                }
                Err(error) => {
                    tracing::warn!(session, node = holder.node, error = %error, "call was not handed over");
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
        None
    }
}

impl Nodes {
    async fn ask_to_release(&self, holder: &Holder, session: &str) -> Result<ReleaseReply, SendError> {
        let request = Bytes::from(json!(ReleaseRequest { session: session.to_owned() }).to_string());
        // A dead machine answers nothing: it is found out before the call is waited for.
        if !self.is_alive(holder).await {
            return Err(SendError::Unreachable("it is not alive".to_owned()));
        }
        self.ask_json(holder, Method::POST, RELEASE_PATH, request, RELEASE_TIMEOUT).await
    }
}
