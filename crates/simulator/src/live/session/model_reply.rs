//! A reply of the chat model, as steps of a turn.

use quarterdeck_contracts::{CallArguments, ChatMessage, ModelCall, ModelReply, PartContent};
use serde_json::Map;

use super::Session;
use crate::live::scenario::{CallId, ScriptedCall, Step};

impl Session {
    pub(super) fn take_reply(&mut self, reply: ModelReply) {
        let mut message = reply.message;
        let mut calls = Vec::new();
        for part in &mut message.parts {
            if let PartContent::Call(call) = &mut part.content {
                // The chat model's ids repeat in each conversation; on this wire they must not.
                let id = self.simulation.state().fresh_call_id();
                call.id = Some(id.clone());
                calls.push(scripted(id, call));
            }
        }
        let text = message.text();
        self.conversation.push(ChatMessage::Model(message));
        let Some(turn) = &mut self.turn else { return };
        if !text.trim().is_empty() {
            turn.steps.push_back(Step::Say { text, audio: true, transcript: true });
        }
        if calls.is_empty() {
            turn.said.clear();
            self.finish();
        } else {
            turn.steps.push_back(Step::Call { calls, behaviour: None, with: Map::new() });
            turn.steps.push_back(Step::Await { within: None });
            turn.steps.push_back(Step::Ask);
        }
    }
}

fn scripted(id: String, call: &ModelCall) -> ScriptedCall {
    let args = match &call.arguments {
        CallArguments::Json(args) => Some(args.clone()),
        CallArguments::Broken(_) => None,
    };
    ScriptedCall { id: CallId::Given(id), name: call.name.clone(), args }
}
