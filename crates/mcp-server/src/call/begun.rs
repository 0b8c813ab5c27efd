//! A call that is begun when its request comes in, before the protocol's machinery has it.
//!
//! Most calls have their answer at once. Theirs is sent without the queues, tasks and extra writes that a session of the SDK
//! takes for a request. All others, and everything that has to be asked, go on in [`McpHandler::call`], which finds here
//! what was begun.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use quarterdeck_runtime::{Answer, Client, Reply};
use rmcp::model::{CallToolRequest, CallToolResponse, RequestMetaObject};
use serde_json::Value;

use super::keys::CallKeys;
use super::{needs_more, result_of};
use crate::caller::McpCaller;
#[cfg(doc)]
use crate::handler::McpHandler;
use crate::handshake::Handshake;
use crate::request_count::Counted;
use crate::server::Shared;
use crate::session::{McpSession, RequestedCall, SubmittedCall};

/// A call that goes on elsewhere, among the extensions of its request. It is taken once.
#[derive(Clone)]
pub(crate) struct BegunCall(Arc<Mutex<Option<Begun>>>);

pub(super) struct Begun {
    pub(super) session: Arc<McpSession>,
    pub(super) submitted: SubmittedCall,
    /// Its answer, if it has one already.
    pub(super) answer: Option<Answer>,
}

impl BegunCall {
    fn new(begun: Begun) -> Self {
        Self(Arc::new(Mutex::new(Some(begun))))
    }

    pub(super) fn take(&self) -> Option<Begun> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Shared {
    /// Begins a call of a client that has shaken hands. Its result, if there is one at once; `None` if the request is to be
    /// handled as any other, with what was begun among its extensions.
    pub(crate) async fn begin_call(
        &self,
        handshake: &Handshake,
        request: &mut CallToolRequest,
    ) -> Option<CallToolResponse> {
        let keys = plain_keys(request)?;
        let client = client_of(handshake, request)?;
        let session = self.session_in(handshake.slot()?, client).await.ok()?;
        if !session.offers(&request.params.name) {
            return None;
        }
        let mut submitted = session.submit(RequestedCall {
            name: request.params.name.to_string(),
            args: request.params.arguments.take().map_or(Value::Null, Value::Object),
            stable_id: keys.stable_id,
            turn: keys.turn,
            parent: keys.parent,
        });
        let answer = submitted.batch.next().now_or_never().flatten().and_then(Reply::into_answer);
        match answer {
            Some(answer) if !needs_more(&answer) => {
                session.pass_on();
                let result = result_of(&answer, &submitted.notes);
                answer.mark_delivered();
                self.parts.orchestrator.metrics().record_mcp_request("tools/call", result.outcome());
                Some(result)
            }
            answer => {
                request.extensions.insert(BegunCall::new(Begun { session, submitted, answer }));
                None
            }
        }
    }
}

/// What the client says about the call. `None` for a retry, which is judged by what was asked, for a call whose progress is
/// listened for, and for what may have to be refused.
fn plain_keys(request: &CallToolRequest) -> Option<CallKeys> {
    let params = &request.params;
    let meta = request.extensions.get::<RequestMetaObject>();
    let is_plain = params.request_state.is_none()
        && params.input_responses.is_none()
        && meta.is_none_or(|meta| meta.get_progress_token().is_none() && meta.protocol_version().is_none());
    if !is_plain {
        return None;
    }
    meta.map_or(Some(CallKeys::default()), |meta| CallKeys::of(meta).ok())
}

fn client_of(handshake: &Handshake, request: &CallToolRequest) -> Option<Client> {
    let caller = McpCaller::of_request(&request.extensions).ok()?;
    handshake.client_for(caller).ok().flatten()
}
