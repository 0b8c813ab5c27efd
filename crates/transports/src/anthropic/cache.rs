//! Marks what Anthropic should keep in its cache.
//!
//! A request is read in the order tools, instruction, messages, and a mark keeps everything up to it. Four marks are
//! allowed, and all are used: one after the tools and one after the part of the instruction that all conversations
//! share, and one after each of the last two messages of the user. The later of these is what the next request finds;
//! the earlier is what this one finds, however many calls the model has made since.

use quarterdeck_contracts::ChatRequest;
use serde_json::{Value, json};

/// Marks among the messages.
const MAX_MESSAGE_MARKS: usize = 2;

/// The tools, kept as a whole.
pub(super) fn marked_tools(request: &ChatRequest) -> Value {
    let mut tools = request.tools.to_vec();
    if let Some(last) = tools.last_mut() {
        mark(last);
    }
    tools.into()
}

/// The instruction in two blocks: what is the same in every conversation, and what is of this one.
pub(super) fn marked_system(request: &ChatRequest) -> Value {
    let (stable, own) = request.split_system();
    // An empty block is refused.
    let mut blocks: Vec<Value> = [stable, own]
        .into_iter()
        .filter(|text| !text.trim().is_empty())
        .map(|text| json!({ "type": "text", "text": text }))
        .collect();
    if let Some(first) = blocks.first_mut().filter(|_| !stable.trim().is_empty()) {
        mark(first);
    }
    blocks.into()
}

/// Marks the ends of the last messages of the user.
pub(super) fn mark_messages(messages: &mut [Value]) {
    let of_user = messages.iter_mut().rev().filter(|message| message["role"] == "user");
    for message in of_user.take(MAX_MESSAGE_MARKS) {
        if let Some(last) = message["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
            mark(last);
        }
    }
}

fn mark(block: &mut Value) {
    // A tool that has one of its own keeps it.
    if block.get("cache_control").is_none() {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
}
