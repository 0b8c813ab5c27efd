//! The pipeline as a model that is spoken with.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use quarterdeck_contracts::{
    ChatError, ChatErrorKind, ChatModel, LiveConnecting, LiveConnection, LiveModel, LiveSetup, Provider,
    SpeechToText, TextToSpeech, estimate_tokens,
};
use serde_json::Value;

use crate::connection::Connection;
use crate::settings::PipelineSettings;

/// Any chat model by voice. It hears through our own ear ([`LiveModel::relies_on_ear`]) and has no resumption handle: a new
/// connection is told what was said.
pub struct Pipeline {
    engines: Arc<Engines>,
}

/// What every conversation is made of.
pub(crate) struct Engines {
    pub(crate) name: String,
    pub(crate) chat: Arc<dyn ChatModel>,
    pub(crate) hears: Arc<dyn SpeechToText>,
    pub(crate) speaks: Arc<dyn TextToSpeech>,
    pub(crate) settings: PipelineSettings,
}

impl Pipeline {
    pub fn new(
        chat: Arc<dyn ChatModel>,
        hears: Arc<dyn SpeechToText>,
        speaks: Arc<dyn TextToSpeech>,
        settings: PipelineSettings,
    ) -> Self {
        let name = format!("pipeline/{}", chat.name());
        Self { engines: Arc::new(Engines { name, chat, hears, speaks, settings }) }
    }
}

impl LiveModel for Pipeline {
    fn declarations(&self) -> Provider {
        self.engines.chat.declarations()
    }

    fn declare(&self, name: &str, description: &str, parameters: &Value) -> Value {
        self.engines.chat.declare(name, description, parameters)
    }

    fn name(&self) -> &str {
        &self.engines.name
    }

    fn window(&self) -> u64 {
        self.engines.chat.window() as u64
    }

    fn is_rehearsal(&self) -> bool {
        self.engines.chat.is_rehearsal()
    }

    fn relies_on_ear(&self) -> bool {
        true
    }

    fn connect(&self, opening: LiveSetup) -> LiveConnecting {
        let engines = self.engines.clone();
        Box::pin(async move {
            let connection = Connection::new(engines, opening, unique_prefix());
            Ok(Box::new(connection) as Box<dyn LiveConnection>)
        })
    }
}

impl Engines {
    /// How many tokens the messages of a request may have: what the instruction and the tools leave, with a quarter of the
    /// window for the answer and for what was estimated wrongly.
    pub(crate) fn max_message_tokens(&self, system: &str, tools: &[Value]) -> usize {
        let tools: usize = tools.iter().map(|tool| tool.to_string().len()).sum();
        let fixed = estimate_tokens(system.len() + tools);
        (self.chat.window() / 4 * 3).saturating_sub(fixed)
    }

    /// A stream that ends before its reply does.
    pub(crate) fn cut_reply(&self) -> ChatError {
        ChatError {
            kind: ChatErrorKind::Cut,
            model: self.chat.name().to_owned(),
            detail: "the reply has no end".to_owned(),
            retry_after: None,
            context: None,
        }
    }
}

/// A beginning for the ids of calls: no two connections have the same, in this process or after a restart.
fn unique_prefix() -> String {
    format!("call-{:016x}", RandomState::new().build_hasher().finish())
}
