//! Any bytes as a provider's stream: a reply or a reason, never a panic, wherever the packets end; and a reply can be
//! sent back to every provider.
#![no_main]

use std::collections::VecDeque;

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::{ChatEvent, ChatMessage, ChatRequest, ModelReply, ToolUse};
use quarterdeck_transports::anthropic::{self, AnthropicReply};
use quarterdeck_transports::gemini::{self, GeminiReply};
use quarterdeck_transports::openai::{self, OpenAiReply};
use quarterdeck_transports::{
    Accumulator, AnthropicConfig, Fault, GeminiConfig, OpenAiConfig, Progress, Reader,
};

fuzz_target!(|data: &[u8]| {
    let Some((cut, stream)) = data.split_first() else { return };
    check(|| GeminiReply::new("gemini/m"), stream, usize::from(*cut));
    check(|| OpenAiReply::new("openai/m"), stream, usize::from(*cut));
    check(|| AnthropicReply::new("anthropic/m"), stream, usize::from(*cut));
});

fn check<A: Accumulator>(fresh: impl Fn() -> A, stream: &[u8], cut: usize) {
    let whole = read(fresh(), stream.chunks(stream.len().max(1)));
    let pieces = read(fresh(), stream.chunks(cut.max(1)));
    assert_eq!(whole, pieces);
    if let Ok(reply) = whole.1 {
        send_back(reply);
    }
}

fn read<'a>(
    accumulator: impl Accumulator,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> (VecDeque<ChatEvent>, Result<ModelReply, Fault>) {
    let (mut reader, mut said) = (Reader::new(accumulator, 1 << 20), VecDeque::new());
    for chunk in chunks {
        match reader.feed(chunk, &mut said) {
            Ok(Progress::Ended) => return (said, reader.finish()),
            Ok(_) => {}
            Err(fault) => return (said, Err(fault)),
        }
    }
    match reader.end(&mut said) {
        Ok(()) => (said, reader.finish()),
        Err(fault) => (said, Err(fault)),
    }
}

fn send_back(reply: ModelReply) {
    let messages = vec![ChatMessage::User { text: "?".to_owned() }, ChatMessage::Model(reply.message)];
    let request =
        ChatRequest { system: "".into(), messages, tools: Vec::new().into(), tool_use: ToolUse::Allowed, span: None };
    gemini::body(&GeminiConfig::new("k"), "gemini/m", &request);
    openai::body(&OpenAiConfig::new("k", "m"), "openai/m", &request);
    anthropic::body(&AnthropicConfig::new("k"), "anthropic/m", &request);
}
