//! Applies intents, or refuses them with a reason.

use quarterdeck_contracts::{EndAfter, Intent, Mode, RequestedIntent};
use serde::Serialize;
use serde_json::{Value, json};

use super::{BLOCKED, PendingEnd, SessionState};

/// A message for the next turn that is longer is refused.
const MAX_PENDING_MESSAGE_CHARS: usize = 4_000;

/// Holds the state and changes it by rule.
#[derive(Debug)]
pub(crate) struct StateController {
    state: SessionState,
    /// Audio that is to be dropped once the farewell has been heard.
    suppress_after_farewell: Option<bool>,
    /// Whether the turn that asked for the end is complete.
    is_turn_complete: bool,
}

/// What an intent came with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cause<'a> {
    pub(crate) call_id: &'a str,
    /// Its data; `None` when the call failed.
    pub(crate) data: Option<&'a Value>,
    /// The farewell to the client, if the call has blocked it.
    pub(crate) block_message: Option<&'a str>,
}

/// One attempt to change the state.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Transition {
    /// What was requested: an intent, or a step such as the end of the session.
    pub(crate) asked: Value,
    /// The call that requested it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call_id: Option<String>,
    /// Whether the state changed.
    pub(crate) applied: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
}

impl StateController {
    pub(crate) fn new(state: SessionState) -> Self {
        Self { state, suppress_after_farewell: None, is_turn_complete: false }
    }

    pub(crate) fn state(&self) -> &SessionState {
        &self.state
    }

    /// Applies the intents of one call, in order.
    pub(crate) fn apply(&mut self, intents: &[RequestedIntent], cause: Cause<'_>) -> Vec<Transition> {
        // A failed call has no farewell to wait for.
        let says_farewell = cause.data.is_some()
            && intents.iter().any(|intent| {
                matches!(
                    intent,
                    RequestedIntent::Known(Intent::EndVoiceSession { after: EndAfter::FarewellSpoken })
                )
            });
        intents
            .iter()
            .map(|intent| {
                let result = match intent {
                    RequestedIntent::Unknown(_) => Err("there is no such intent"),
                    RequestedIntent::Known(intent) => self.apply_one(intent, cause, says_farewell),
                };
                Transition {
                    asked: json!(intent),
                    call_id: Some(cause.call_id.to_owned()),
                    applied: result.is_ok(),
                    reason: result.err(),
                }
            })
            .collect()
    }

    fn apply_one(
        &mut self,
        intent: &Intent,
        cause: Cause<'_>,
        says_farewell: bool,
    ) -> Result<(), &'static str> {
        let suppresses = matches!(intent, Intent::SuppressAudio { .. } | Intent::SuppressTranscript { .. });
        if cause.data.is_none() && !suppresses {
            return Err("the call failed");
        }
        if !self.state.is_active {
            return Err("the session has ended");
        }
        let is_for_voice = !matches!(intent, Intent::SetPendingMessage { .. });
        if is_for_voice && self.state.mode == Mode::Text {
            return Err("it has no effect in text");
        }
        match intent {
            Intent::EndVoiceSession { after } => self.schedule_end(*after, cause)?,
            Intent::SuppressAudio { value } if says_farewell || self.awaits_farewell() => {
                self.suppress_after_farewell = Some(*value);
            }
            Intent::SuppressAudio { value } => self.state.should_suppress_audio = *value,
            Intent::SuppressTranscript { value } => self.state.should_suppress_transcript = *value,
            Intent::SetPendingMessage { message } => {
                if message.as_ref().is_some_and(|message| message.chars().count() > MAX_PENDING_MESSAGE_CHARS)
                {
                    return Err("the message is too long");
                }
                self.state.pending_message.clone_from(message);
            }
        }
        Ok(())
    }

    fn schedule_end(&mut self, after: EndAfter, cause: Cause<'_>) -> Result<(), &'static str> {
        let pending = &self.state.pending_end_voice_session;
        if pending.as_ref().is_some_and(|pending| pending.is_block() || cause.block_message.is_none()) {
            return Err("the session is ending already");
        }
        let text = |name: &str| {
            cause.data.and_then(|data| data.get(name)).and_then(Value::as_str).map(str::to_owned)
        };
        let (reason, closing_message) = match cause.block_message {
            Some(farewell) => (Some(BLOCKED.to_owned()), Some(farewell.to_owned())),
            None => (text("reason"), text("finalMessage")),
        };
        self.state.pending_end_voice_session = Some(PendingEnd {
            after,
            reason: reason.unwrap_or_else(|| "user_requested".into()),
            closing_message: closing_message.filter(|message| !message.is_empty()),
            text_response: text("textResponse"),
        });
        self.is_turn_complete = false;
        Ok(())
    }

    fn awaits_farewell(&self) -> bool {
        let pending = self.state.pending_end_voice_session.as_ref();
        pending.is_some_and(|pending| pending.after == EndAfter::FarewellSpoken)
    }

    pub(crate) fn complete_turn(&mut self) {
        self.is_turn_complete = self.state.pending_end_voice_session.is_some();
    }

    /// Everything that was said has been heard. The end that waited for it, if there is one.
    pub(crate) fn mark_heard(&mut self) -> Option<PendingEnd> {
        if !self.is_turn_complete {
            return None;
        }
        if let Some(value) = self.suppress_after_farewell.take() {
            self.state.should_suppress_audio = value;
        }
        self.state.pending_end_voice_session.clone()
    }

    /// The response that may have requested an end was interrupted. The end of a blocked session stays.
    pub(crate) fn interrupt(&mut self) -> Option<Transition> {
        let pending = self.state.pending_end_voice_session.take_if(|pending| !pending.is_block())?;
        self.is_turn_complete = false;
        self.suppress_after_farewell = None;
        Some(lifecycle("end_void", Some(json!(pending)), Ok(())))
    }

    pub(crate) fn end(&mut self, reason: &str) -> Transition {
        let detail = Some(json!({ "reason": reason }));
        if !self.state.is_active {
            return lifecycle("end", detail, Err("the session has ended"));
        }
        self.state.is_active = false;
        self.state.pending_end_voice_session = None;
        lifecycle("end", detail, Ok(()))
    }

    /// What is put in front of the next turn, once.
    pub(crate) fn take_pending_message(&mut self) -> Option<String> {
        self.state.pending_message.take()
    }
}

fn lifecycle(step: &str, detail: Option<Value>, result: Result<(), &'static str>) -> Transition {
    let asked = json!({ "step": step, "detail": detail });
    Transition { asked, call_id: None, applied: result.is_ok(), reason: result.err() }
}
