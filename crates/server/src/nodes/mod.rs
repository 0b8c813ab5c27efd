//! Between the nodes of a cluster: requests that they send each other, signed with the secret that they share.
//!
//! A session belongs to one node. A request that arrives at another one is passed on as it came; the node that has the
//! session checks its credentials itself, and never passes it on again. What is sent is signed, not encrypted: nodes speak
//! to each other in a network of their own.

mod client;
mod client_calls;
mod forward;
mod hand_over;
mod homes;
mod kept_request;
mod receive;
mod replay;
mod secret;
mod signature;

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, Method, Request, Response, Uri, header};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use quarterdeck_runtime::{Holder, Orchestrator};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

pub(crate) use client::{NodeBody, SendError};
pub(crate) use client_calls::{CALLS_PATH, CallQuestion, CallStatus, ClientCall, NoCall};
pub(crate) use hand_over::{RELEASE_PATH, ReleaseReply, ReleaseRequest};
pub(crate) use homes::{Place, names_no_session, split_mark};
pub(crate) use kept_request::KeptRequest;
pub(crate) use receive::{is_node_path, receive, refuse_unsigned};
pub use secret::shared_secret;
pub(crate) use signature::NodeRequest;
use signature::{NODE_HEADER, NodeKey, SignedParts};

/// Requests to other nodes that may be open at the same time.
const MAX_OPEN_REQUESTS: usize = 1_024;
/// How long a node may take to say that it is alive.
const ALIVE_TIMEOUT: Duration = Duration::from_millis(500);
/// Of an answer that is read as a whole.
const MAX_ANSWER_BYTES: usize = 64 << 10;
pub(crate) const ALIVE_PATH: &str = "/api/nodes/alive";
pub(crate) const FEED_PATH: &str = "/api/nodes/feed";

/// Speaks to the other nodes, and knows what they have signed.
pub(crate) struct Nodes {
    key: NodeKey,
    slots: Arc<Semaphore>,
    orchestrator: Orchestrator,
}

impl Nodes {
    /// `None` where the process is alone on its store.
    pub(crate) fn new(secret: &[u8], orchestrator: Orchestrator) -> Option<Self> {
        let (name, boot) = (orchestrator.node_name()?.to_owned(), orchestrator.node_boot()?.to_owned());
        let slots = Arc::new(Semaphore::new(MAX_OPEN_REQUESTS));
        Some(Self { key: NodeKey::new(secret, name, boot), slots, orchestrator })
    }

    pub(crate) fn name(&self) -> &str {
        self.key.node()
    }

    pub(crate) fn boot(&self) -> &str {
        self.key.boot()
    }

    /// Whether a node answers in time. A process that has taken another one's place is not it.
    pub(crate) async fn is_alive(&self, node: &Holder) -> bool {
        let asked = self.ask(node, Method::GET, ALIVE_PATH, Bytes::new());
        let answered = tokio::time::timeout(ALIVE_TIMEOUT, asked).await;
        answered.is_ok_and(|answer| answer.is_ok_and(|response| response.status().is_success()))
    }

    /// Sends a request of our own to another node and waits for the head of its answer, without a time limit.
    pub(crate) async fn ask(
        &self,
        to: &Holder,
        method: Method,
        target: &str,
        body: Bytes,
    ) -> Result<Response<NodeBody>, SendError> {
        let invalid = |what: &str| SendError::Unreachable(format!("its {what} is not valid"));
        let uri: Uri = target.parse().map_err(|_| invalid("target"))?;
        let signed = SignedParts { method: &method, uri: &uri, body: &body };
        let signature =
            self.key.sign(&signed, &to.boot, None, self.now_ms()).ok_or_else(|| invalid("name"))?;
        let host = HeaderValue::from_str(client::host_of(&to.address)).map_err(|_| invalid("address"))?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        request.headers_mut().insert(header::HOST, host);
        request.headers_mut().insert(NODE_HEADER, signature);
        let permit = self.slots.clone().try_acquire_owned().map_err(|_| SendError::Busy)?;
        client::send(&to.address, request, permit).await
    }

    /// The same, and reads a short answer in JSON, all of it within a time.
    async fn ask_json<T: DeserializeOwned>(
        &self,
        to: &Holder,
        method: Method,
        target: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<T, SendError> {
        let answer = async {
            let response = self.ask(to, method, target, body).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
            let body = body.map_err(|error| SendError::Lost(error.to_string()))?.to_bytes();
            // A refusal has other members.
            serde_json::from_slice(&body).map_err(|_| SendError::Lost(format!("it answered with {status}")))
        };
        let late = |_| SendError::Lost(format!("no answer within {within:?}"));
        tokio::time::timeout(within, answer).await.map_err(late)?
    }

    fn now_ms(&self) -> u64 {
        self.orchestrator.now_ms()
    }
}
