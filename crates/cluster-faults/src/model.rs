//! The model of the load. It does what the user says, once, and repeats what the tool answered: so that whatever is done
//! twice, or said and not done, is not its fault. It keeps nothing between requests, as a provider does.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::stream;
use quarterdeck_contracts::{
    CallArguments, ChatEvent, ChatMessage, ChatModel, ChatRequest, ChatStream, Finish, ModelCall,
    ModelMessage, ModelPart, ModelReply, Outcome, PartContent, Provider, Usage,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::http;
use crate::journal::keys_in;

/// How a note of the runtime begins. One that names a tool tells what an earlier call of it came to.
const NOTE: &str = "[Note: ";
const TOOLS: [&str; 2] = ["book", "pay"];

/// What it does about a conversation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Call { tool: String, key: String },
    Say(String),
}

/// Decides from the user's last words, and from the results of the calls that were made since, if there are any.
pub(crate) fn decide(user: &str, results: &[String]) -> Act {
    if !results.is_empty() {
        return Act::Say(format!("It came to this: {}", results.join(" ")));
    }
    // A model that was told of an earlier attempt, known or unknown, does not simply try again.
    if let Some(news) = user.lines().rfind(|line| is_news(line)) {
        return Act::Say(format!("Earlier: {}", summary(news)));
    }
    let words: Vec<&str> = user.split_whitespace().collect();
    let asked =
        words.windows(2).rev().find(|pair| TOOLS.contains(&pair[0]) && keys_in(pair[1]).next().is_some());
    match asked {
        Some(pair) => Act::Call { tool: pair[0].into(), key: pair[1].into() },
        None => Act::Say("Nothing to do.".into()),
    }
}

fn is_news(line: &str) -> bool {
    line.split_once(NOTE).is_some_and(|(_, note)| note.split_whitespace().any(|word| TOOLS.contains(&word)))
}

/// A call's answer in few words, because they may be spoken.
fn summary(answer: &str) -> String {
    let receipt = answer.split_once("\"receipt\":").map(|(_, rest)| rest);
    let number: String =
        receipt.into_iter().flat_map(|rest| rest.chars().take_while(char::is_ascii_digit)).collect();
    match keys_in(answer).next() {
        Some(key) if !number.is_empty() => format!("receipt {number} for {key}."),
        _ if answer.contains("is not known") => "it is not known.".into(),
        _ => "it was not done.".into(),
    }
}

/// A provider of OpenAI's protocol with this model.
pub(crate) struct TextProvider {
    pub(crate) address: SocketAddr,
    serving: JoinHandle<()>,
}

impl TextProvider {
    pub(crate) async fn start() -> Self {
        let (address, serving) = http::serve(|body| async move {
            let request: Value = serde_json::from_slice(&body).unwrap_or_default();
            let no_messages = Vec::new();
            http::Answer::events(reply(request["messages"].as_array().unwrap_or(&no_messages)))
        })
        .await;
        Self { address, serving }
    }
}

impl Drop for TextProvider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn reply(messages: &[Value]) -> String {
    let last = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    let user = messages.get(last).and_then(|message| message["content"].as_str()).unwrap_or_default();
    let results = messages.iter().skip(last + 1).filter(|message| message["role"] == "tool");
    let results: Vec<String> =
        results.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect();
    let (delta, finish) = match decide(user, &results) {
        Act::Say(text) => (json!({ "content": text }), "stop"),
        Act::Call { tool, key } => {
            let arguments = json!({ "what": key }).to_string();
            let call = json!({ "index": 0, "id": new_call_id(), "type": "function",
                               "function": { "name": tool, "arguments": arguments } });
            (json!({ "tool_calls": [call] }), "tool_calls")
        }
    };
    let said = json!({ "choices": [{ "index": 0, "delta": delta }] });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] });
    format!("data: {said}\n\ndata: {end}\n\ndata: [DONE]\n\n")
}

/// A new one each time, as of a provider that is asked again.
fn new_call_id() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    format!("call_of_the_load_{:08}", CALLS.fetch_add(1, Ordering::Relaxed))
}

/// The same model for the simulator of live models.
pub(crate) struct SpokenModel;

impl ChatModel for SpokenModel {
    fn declarations(&self) -> Provider {
        Provider::GeminiJsonSchema
    }

    fn name(&self) -> &'static str {
        "load/spoken"
    }

    fn window(&self) -> usize {
        1_000_000
    }

    fn ask(&self, request: ChatRequest) -> ChatStream {
        // All that the user said, and was noted, since the model's last words.
        let messages = &request.messages;
        let answered = messages.iter().rposition(|message| !matches!(message, ChatMessage::User { .. }));
        let is_result = |message: &ChatMessage| matches!(message, ChatMessage::Tools { .. });
        let user: Vec<&str> =
            messages.iter().skip(answered.map_or(0, |last| last + 1)).filter_map(text_of).collect();
        let results = messages.last().filter(|last| is_result(last)).map(results_of).unwrap_or_default();
        let user = user.join("\n");
        let content = match decide(&user, &results) {
            Act::Say(text) => PartContent::Text(text),
            Act::Call { tool, key } => PartContent::Call(ModelCall {
                id: None,
                name: tool,
                arguments: CallArguments::Json(json!({ "what": key })),
            }),
        };
        let message = ModelMessage { by: self.name().into(), parts: vec![ModelPart::new(content)] };
        let reply = ModelReply { message, finish: Finish::Stop, usage: Usage::default() };
        Box::pin(stream::iter([Ok(ChatEvent::Done(reply))]))
    }
}

fn text_of(message: &ChatMessage) -> Option<&str> {
    match message {
        ChatMessage::User { text } => Some(text),
        _ => None,
    }
}

fn results_of(message: &ChatMessage) -> Vec<String> {
    let ChatMessage::Tools { results } = message else { return Vec::new() };
    let words = |outcome: &Outcome| match outcome {
        Outcome::Success(data) => summary(&data.to_string()),
        Outcome::Failure(error) => summary(&error.message),
    };
    results.iter().map(|result| words(&result.response.outcome)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_what_it_is_told_once_and_believes_what_it_is_told() {
        let call = |tool: &str, key: &str| Act::Call { tool: tool.into(), key: key.into() };
        assert_eq!(decide("book c1-1", &[]), call("book", "c1-1"));
        assert_eq!(decide("[Note: It is late.]\n\npay c2-7 now", &[]), call("pay", "c2-7"));
        assert_eq!(decide("book c1-1", &["done".into()]), Act::Say("It came to this: done".into()));
        let note =
            |answer: &str| format!("[Note: An earlier call of book has come to this: {answer}]\n\nbook c1-1");
        let said = |text: &str| Act::Say(format!("Earlier: {text}"));
        let done = r#"{"ok":true,"data":{"did":"c1-1","receipt":17}}"#;
        assert_eq!(decide(&note(done), &[]), said("receipt 17 for c1-1."));
        assert_eq!(decide(&note("whether it was done is not known"), &[]), said("it is not known."));
        assert_eq!(decide(&note("{}"), &[]), said("it was not done."));
        assert!(matches!(decide("hello there", &[]), Act::Say(_)));
    }
}
