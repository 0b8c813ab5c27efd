//! What a handler's capabilities do that need the session itself, and who answers for the others. Whether the handler
//! may use them is checked before.

use std::sync::Arc;
use std::time::SystemTime;

use quarterdeck_contracts::handler::{
    BoxFuture, CapabilityCall, CapabilityClient, CapabilityError, CapabilityErrorCode, CapabilityRequest,
    CapabilityScope, Context,
};
use quarterdeck_contracts::telemetry::SpanOrigin;
use quarterdeck_contracts::{
    Capability, Overlay, PROTOCOL_MESSAGE_TYPES, StoreError, Table, ToolResponse, message_type,
};
use serde_json::{Value, json};

use super::admit::{Admission, admit_nested};
use super::context::CallContext;
use super::record::send_messages;
use super::retrieval_span::{record_retrieval, retrieval_span};
use super::run;
use crate::blocks::{Block, block};
use crate::call::Call;
use crate::envelope::replayed;
use crate::gates::ClientFacts;
use crate::ids::is_session_id;
use crate::ledger::{Entry, Phase};
use crate::session::{AnswerOwner, AnswerSource};
use crate::store_keys::reserved_key;

/// How deep tools may call each other.
const MAX_CALL_DEPTH: usize = 3;
/// Messages one call may send.
const MAX_MESSAGES: usize = 20;
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// The seconds that a handler may ask for. What it gets is at most what the policy allows.
const BLOCK_SECONDS: std::ops::RangeInclusive<u64> = 1..=31_536_000;
/// How long an issued voice session waits to be taken up.
const VOICE_RESERVATION_MS: u64 = 10 * 60 * 1_000;

type Result<T> = std::result::Result<T, CapabilityError>;

impl CallContext {
    pub(super) fn call_capability(&self, call: CapabilityCall) -> BoxFuture<Result<Value>> {
        let context = self.me.upgrade();
        Box::pin(async move {
            match context {
                Some(context) => context.answer(call).await,
                None => Err(CapabilityError::not_available(&call.capability)),
            }
        })
    }

    async fn answer(self: Arc<Self>, call: CapabilityCall) -> Result<Value> {
        let CapabilityCall { capability, method, args } = call;
        let argument = |index: usize| args.get(index).cloned().unwrap_or(Value::Null);
        // What needs the session itself is done here. Everything else has a provider.
        match (capability.as_str(), method.as_str()) {
            ("messaging", "send") => self.send_message(argument(0)).await,
            ("moderation", "block") => self.block_client(&argument(0), &argument(1)).await,
            ("tools", "call") => self.call_tool(&argument(0), argument(1)).await,
            _ => match self.core.shared.capabilities.find(&capability) {
                Some(provider) => {
                    let mut span = retrieval_span(&self.core, &capability, &method, self.span);
                    let answer = provider.call(CapabilityRequest { method, args, scope: self.clone() }).await;
                    record_retrieval(&mut span, &answer);
                    answer
                }
                None => Err(CapabilityError::not_available(&capability)),
            },
        }
    }

    /// A message to the client. Those of a call that writes go out when it is recorded, and not if it fails.
    async fn send_message(&self, mut message: Value) -> Result<Value> {
        let Some(kind) = message.get("type").and_then(Value::as_str).map(message_type) else {
            return Err(invalid("a message is an object with a `type`"));
        };
        if PROTOCOL_MESSAGE_TYPES.contains(&&*kind) {
            return Err(invalid(format!(
                "messages of type `{kind}` belong to the protocol; choose another name"
            )));
        }
        if message.to_string().len() > MAX_MESSAGE_BYTES {
            return Err(invalid("a message has at most 64 KiB"));
        }
        if !self.core.is_connected() {
            return Err(CapabilityError::new(
                CapabilityErrorCode::NotAvailable,
                "the client is not connected",
            ));
        }
        match &*kind {
            "timeout" => self.block_by_message(&mut message).await?,
            "voice_session_start" => self.reserve_voice_session(&message)?,
            _ => {}
        }
        let mut pending = self.lock();
        if pending.messages.len() >= MAX_MESSAGES {
            return Err(invalid("a call sends at most 20 messages"));
        }
        pending.messages.push(message);
        if !self.writes {
            let messages = std::mem::take(&mut pending.messages);
            drop(pending);
            send_messages(&self.core, messages);
        }
        Ok(Value::Null)
    }

    async fn block_client(&self, seconds: &Value, message: &Value) -> Result<Value> {
        self.require_writes("client.block")?;
        let Some(seconds) = whole_seconds(seconds).filter(|seconds| BLOCK_SECONDS.contains(seconds)) else {
            return Err(invalid("a block takes a number of seconds, up to a year"));
        };
        let seconds = seconds.min(self.core.shared.policy.max_block.as_secs().max(1));
        let now_ms = self.core.now_ms();
        let new = Block {
            client_id: self.core.client.to_string(),
            until_ms: now_ms + seconds * 1_000,
            message: message.as_str().unwrap_or_default().to_owned(),
            session_id: self.core.id.to_string(),
            at_ms: now_ms,
            address: self.core.lock().connection.address.clone(),
        };
        let block = block(&self.store_overlay(), new).await.map_err(failed)?;
        let mut pending = self.lock();
        pending.block_message = Some(block.message);
        pending.block_seconds = pending.block_seconds.max(seconds);
        Ok(json!({ "until": block.until_ms, "seconds": seconds }))
    }

    /// Folders from before there was `client.block` send the message alone. The client is told how long the block really
    /// lasts, which may be less than the handler asked for.
    async fn block_by_message(&self, message: &mut Value) -> Result<()> {
        let may_block =
            self.core.snapshot.find(self.tool()).is_some_and(|tool| {
                tool.metadata().effective_capabilities().contains(&Capability::MODERATION)
            });
        if !may_block {
            return Err(CapabilityError::not_declared("\"capabilities\": [\"moderation\"]"));
        }
        if self.lock().block_message.is_none() {
            let farewell = message.get("farewellMessage").cloned().unwrap_or(Value::Null);
            self.block_client(&message["durationSeconds"], &farewell).await?;
        }
        let lasts = self.lock().block_seconds;
        if whole_seconds(&message["durationSeconds"]).is_some_and(|said| said > lasts) {
            message["durationSeconds"] = lasts.into();
            message["timeoutUntil"] = (self.core.now_ms() + lasts * 1_000).into();
        }
        Ok(())
    }

    /// The request that a voice session will be opened with is kept under the id that it was issued.
    fn reserve_voice_session(&self, message: &Value) -> Result<()> {
        let id = message.get("sessionId").and_then(Value::as_str).unwrap_or_default();
        if !is_session_id(id) {
            return Err(invalid("`sessionId` has 8 to 64 letters, digits, `-` or `_`"));
        }
        self.require_writes("voice_session_start")?;
        let row = json!({
            "clientId": self.core.client,
            "pendingRequest": message.get("pendingRequest").and_then(Value::as_str).unwrap_or_default(),
            "expiresMs": self.core.now_ms() + VOICE_RESERVATION_MS,
        });
        self.store_overlay().put(Table::Sessions, reserved_key(id), row);
        Ok(())
    }

    /// Another tool, through the same gates and the same turn's budgets.
    async fn call_tool(&self, name: &Value, args: Value) -> Result<Value> {
        let name = name.as_str().unwrap_or_default();
        if self.ancestors.len() > MAX_CALL_DEPTH {
            return Err(invalid(format!("tools call each other at most {MAX_CALL_DEPTH} deep")));
        }
        if self.ancestors.iter().any(|ancestor| *ancestor.tool == *name) {
            return Err(invalid(format!("{name} is already being called; tools must not call in a circle")));
        }
        let call = Call::new(name, args).with_origin(SpanOrigin::within(self.span));
        let admission = admit_nested(&self.core, call, self.ancestors.clone()).await;
        let response = match admission {
            // The confirmation gate refuses nested calls, so none of them waits for approval.
            Admission::Admitted(call) => {
                let entry = call.entry.clone();
                self.lock().reached_outside |= entry.writes;
                run(&self.core, call).await;
                let response = entry.wait_for_answer().await;
                // The caller has it: nothing else waits for a nested call.
                self.core.clone().mark_delivered(&entry);
                response
            }
            Admission::Answered(answer) => match answer.source {
                AnswerSource::Refusal(response) => response,
                AnswerSource::Call(entry) | AnswerSource::Confirmed(entry) | AnswerSource::Replay(entry) => {
                    wait_for_equal(&entry).await?
                }
            },
        };
        Ok(json!(*response))
    }
}

/// A fraction of a second counts as a whole one.
fn whole_seconds(seconds: &Value) -> Option<u64> {
    let is_countable = |seconds: &f64| (0.0..1e15).contains(seconds);
    seconds.as_u64().or_else(|| Some(seconds.as_f64().filter(is_countable)?.ceil() as u64))
}

/// The answer of an equal call.
async fn wait_for_equal(entry: &Entry) -> Result<Arc<ToolResponse>> {
    // It may be waiting for this very call to end.
    if entry.phase() == Phase::Admitted {
        let tool = &entry.tool;
        return Err(invalid(format!("the same call of {tool} is already waiting in this message")));
    }
    let response = entry.wait_for_answer().await;
    Ok(Arc::new(replayed(&response, entry.turn)))
}

impl CapabilityScope for CallContext {
    fn client(&self) -> CapabilityClient {
        let ClientFacts { authenticated, claims } = (*self.core.lock().client).clone();
        CapabilityClient { id: self.core.client.clone(), is_authenticated: authenticated, claims }
    }

    fn session_id(&self) -> Arc<str> {
        self.core.id.clone()
    }

    fn tool_id(&self) -> Arc<str> {
        self.tool().clone()
    }

    fn call_key(&self) -> Arc<str> {
        self.call_key.clone()
    }

    fn now(&self) -> SystemTime {
        self.core.now()
    }

    fn overlay(&self) -> Arc<Overlay> {
        self.store_overlay()
    }

    fn may_write(&self) -> bool {
        self.writes
    }

    fn mark_outside_effect(&self) {
        Context::mark_outside_effect(self);
    }
}

fn failed(error: StoreError) -> CapabilityError {
    tracing::error!(error = %error, "store failed during a capability call");
    CapabilityError::new(CapabilityErrorCode::Timeout, "the store is not available")
}

fn invalid(message: impl Into<String>) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, message)
}
