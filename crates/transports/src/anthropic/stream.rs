//! Reads Anthropic's replies: named events around blocks that open, grow and close.

use std::collections::VecDeque;

use quarterdeck_contracts::{
    ChatEvent, Finish, MAX_CALLS_PER_MESSAGE, ModelMessage, ModelReply, Usage, parse_json,
};
use serde_json::Value;

use super::blocks::Block;
use crate::Fault;
use crate::fault::one_line;
use crate::reply::{Accumulator, MAX_PARTS, Progress, not_json, too_many_calls, too_many_parts};
use crate::sse::Event;

#[derive(Debug)]
pub struct AnthropicReply {
    name: String,
    blocks: Vec<Block>,
    stop_reason: Option<String>,
    tokens: Tokens,
    stopped: bool,
}

/// Counts by their names on the wire. A later report overwrites what it mentions and nothing else.
#[derive(Debug, Default)]
struct Tokens {
    input: u64,
    cache_creation: u64,
    cache_read: u64,
    output: u64,
}

impl AnthropicReply {
    /// An empty reply of the named model.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            blocks: Vec::new(),
            stop_reason: None,
            tokens: Tokens::default(),
            stopped: false,
        }
    }

    fn start_block(&mut self, mut event: Value, out: &mut VecDeque<ChatEvent>) -> Result<(), Fault> {
        let index = index_of(&event);
        let Some(Value::Object(members)) = event.get_mut("content_block").map(Value::take) else {
            return Ok(());
        };
        let block = Block::start(index, members, out);
        let calls = self.blocks.iter().filter(|block| block.is_call()).count();
        if block.is_call() && calls == MAX_CALLS_PER_MESSAGE {
            return Err(too_many_calls());
        }
        if self.blocks.len() == MAX_PARTS {
            return Err(too_many_parts());
        }
        self.blocks.push(block);
        Ok(())
    }

    fn grow_block(&mut self, mut event: Value, out: &mut VecDeque<ChatEvent>) {
        let index = index_of(&event);
        let block = self.blocks.iter_mut().rfind(|block| block.index == index);
        if let (Some(block), Some(Value::Object(delta))) = (block, event.get_mut("delta")) {
            block.delta(delta, out);
        }
    }

    fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let update = |count: &mut u64, member: &str| {
            if let Some(out) = usage.get(member).and_then(Value::as_u64) {
                *count = out;
            }
        };
        update(&mut self.tokens.input, "input_tokens");
        update(&mut self.tokens.cache_creation, "cache_creation_input_tokens");
        update(&mut self.tokens.cache_read, "cache_read_input_tokens");
        update(&mut self.tokens.output, "output_tokens");
    }
}

impl Accumulator for AnthropicReply {
    fn take(&mut self, event: Event<'_>, out: &mut VecDeque<ChatEvent>) -> Result<(), Fault> {
        if event.data.trim().is_empty() {
            return Ok(());
        }
        let data = parse_json(event.data).map_err(|fault| not_json(&fault))?;
        let kind = data.get("type").and_then(Value::as_str).unwrap_or(event.name).to_owned();
        match kind.as_str() {
            "message_start" => self.count(data.pointer("/message/usage")),
            "content_block_start" => self.start_block(data, out)?,
            "content_block_delta" => self.grow_block(data, out),
            "message_delta" => {
                self.count(data.get("usage"));
                if let Some(reason) = data.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.stop_reason = Some(reason.to_owned());
                }
            }
            "message_stop" => self.stopped = true,
            "error" => return Err(Fault::mid_stream(&data)),
            // Pings, ends of blocks and unknown events.
            _ => {}
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.stopped { Progress::Ended } else { Progress::Incomplete }
    }

    fn finish(self) -> Result<ModelReply, Fault> {
        if !self.stopped {
            return Err(Fault::cut("the answer ended without message_stop"));
        }
        let finish = match self.stop_reason.as_deref() {
            Some("end_turn" | "tool_use" | "stop_sequence") | None => Finish::Stop,
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            Some("refusal") => Finish::Filtered,
            Some(other) => Finish::Other(one_line(other)),
        };
        let last_call = self.blocks.iter().rposition(Block::is_call);
        let is_cut = |place| finish == Finish::Length && Some(place) == last_call;
        let blocks = self.blocks.into_iter().enumerate();
        let parts = blocks.filter_map(|(place, block)| block.finish(is_cut(place))).collect();
        let Tokens { input, cache_creation, cache_read, output } = self.tokens;
        let usage = Usage {
            input_tokens: input.saturating_add(cache_creation).saturating_add(cache_read),
            output_tokens: output,
            cached_tokens: cache_read,
            cache_write_tokens: cache_creation,
        };
        Ok(ModelReply { message: ModelMessage { by: self.name, parts }, finish, usage })
    }
}

fn index_of(event: &Value) -> u64 {
    event.get("index").and_then(Value::as_u64).unwrap_or(0)
}
