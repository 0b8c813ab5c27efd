//! The text agent over a transport as it is, with a scripted provider behind it.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_agents::Prompts;
use quarterdeck_agents::text::{
    Address, ConfirmationReply, Parts, Reader, Refusal, Settings, StreamEvent, TextAgent,
};
use quarterdeck_transports::{OpenAi, OpenAiConfig};
use serde_json::Value;

use super::case::{Each, Harness, Runs, Step};
use super::scripted::Scripted;
use super::tools::{orchestrator, registry};
use crate::world::{ManualClock, ann, events, message, token};

pub(crate) struct TextHarness {
    agent: TextAgent,
    provider: Scripted,
    clock: Arc<ManualClock>,
    runs: Runs,
    token: Option<String>,
    received: Vec<String>,
}

impl Harness for TextHarness {
    async fn begin(steps: &[Step]) -> Self {
        let (provider, runs) = (Scripted::default(), Runs::default());
        let (orchestrator, clock) = orchestrator();
        let config =
            OpenAiConfig { window: 100_000, ..OpenAiConfig::compatible(provider.listen().await, "scripted") };
        let agent = TextAgent::new(Parts {
            orchestrator,
            registry: registry(&runs),
            model: Arc::new(OpenAi::new(config).unwrap()),
            fallback: None,
            prompts: Prompts::default(),
            settings: Settings::default(),
        });
        let mut turns = steps.iter().filter_map(|step| match step {
            Step::Turn(each) => Some(&each.written),
            Step::Later(_) | Step::Confirm { .. } => None,
        });
        // After the calls of a turn the model says something, and that ends it.
        turns.by_ref().for_each(|rounds| {
            provider.will(rounds);
            provider.will(&[Vec::new()]);
        });
        Self { agent, provider, clock, runs, token: None, received: Vec::new() }
    }

    async fn turn(&mut self, text: &str) {
        let reader = self.agent.send_message(&ann(), Address::Chat("chat"), message(text)).await;
        self.follow(reader).await;
    }

    async fn later(&mut self, time: Duration) {
        self.clock.advance(time);
    }

    async fn confirm(&mut self, approves: bool) {
        let token = self.token.clone().expect("a confirmation was requested");
        let decision = vec![ConfirmationReply { token, is_approved: approves }];
        let reader = self.agent.resolve_confirmations(&ann(), Address::Chat("chat"), decision).await;
        self.follow(reader).await;
    }

    async fn seen(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for request in self.provider.asked() {
            lines.extend(heard(request["messages"].as_array().unwrap()));
        }
        lines.append(&mut self.received);
        lines
    }

    fn runs(&self) -> &Runs {
        &self.runs
    }

    fn pick<T>(each: &Each<T>) -> &T {
        &each.written
    }
}

impl TextHarness {
    async fn follow(&mut self, reader: Result<Reader, Refusal>) {
        let reader = match reader {
            Ok(reader) => reader,
            Err(Refusal::Confirmation(error)) => return self.received.push(format!("user: {}", error.kind)),
            Err(other) => panic!("{other:?}"),
        };
        let events = events(reader).await;
        for event in &events {
            match event {
                StreamEvent::ConfirmationRequest { request, .. } => {
                    self.received.push(format!("confirmation requested: {}", request.preview));
                    self.token = Some(token(&events));
                }
                StreamEvent::Text(text) => self.received.push(format!("user reads: {text}")),
                StreamEvent::Failed(failure) => self.received.push(format!("user: {}", failure.kind)),
                _ => {}
            }
        }
    }
}

/// What is new in a request: what the user said, or what calls have come to.
fn heard(messages: &[Value]) -> Vec<String> {
    let is_new = |message: &&Value| message["role"] == "tool" || message["role"] == "user";
    let mut new: Vec<_> = messages.iter().rev().take_while(is_new).collect();
    new.reverse();
    let line = |message: &&Value| match message["role"].as_str() {
        Some("tool") => {
            let tool = called(messages, message);
            format!("{tool} -> {}", envelope(&tool, message))
        }
        _ => format!("model hears: {}", message["content"].as_str().unwrap_or_default().replace('\n', "⏎")),
    };
    new.iter().map(line).collect()
}

/// The call that a result belongs to.
fn called(messages: &[Value], result: &Value) -> String {
    let mut calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    let call = calls.rfind(|call| call["id"] == result["tool_call_id"]).expect("a call of this id");
    call["function"]["name"].as_str().unwrap().to_owned()
}

/// The envelope. Of its `meta` only what is unusual; the rest must be there and right.
fn envelope(tool: &str, message: &Value) -> Value {
    let mut envelope: Value = serde_json::from_str(message["content"].as_str().unwrap()).unwrap();
    let meta = envelope["meta"].as_object_mut().expect("the whole envelope");
    assert!(meta.remove("duration").is_some_and(|duration| duration.is_u64()), "{message}");
    assert!(meta.remove("registryVersion").is_some_and(|version| version.is_string()), "{message}");
    assert_eq!(meta.remove("responseSchemaVersion"), Some("1.1.0".into()), "{message}");
    assert_eq!(meta.remove("toolId"), Some(tool.into()), "{message}");
    assert!(meta.remove("timestamp").is_some_and(|time| time.is_string()), "{message}");
    if meta["toolVersion"] == "1.0.0" {
        meta.remove("toolVersion");
    }
    envelope
}
