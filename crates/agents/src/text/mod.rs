//! The agent for written conversations.
//!
//! A request brings a user's message to a conversation and gets a reader that follows the answer. The turn runs in a
//! task of its own and stops when the last reader leaves. One turn runs in a conversation at a time.

mod briefed_model;
mod codes;
mod confirmations;
mod context;
mod conversation;
mod deletion;
mod driver;
mod event;
mod feedback;
mod held;
mod history;
mod listing;
mod lookup;
mod memory;
mod model_health;
mod start;
mod stream;
mod transcript;
mod turn_span;
mod view;
mod window;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::{ChatMessage, ChatModel, StoreError, ToolError};
use quarterdeck_runtime::{Block, Client, Orchestrator, Registry, SessionError};
use tokio::sync::watch;

pub use briefed_model::{ModelStatus, ModelTrouble};
pub use codes::{confirmation_code, format_confirmation};
pub use event::{Failure, StreamEvent};
pub use feedback::{Feedback, GivenFeedback, Rating, list_feedback};
pub use listing::{
    ConversationList, ConversationSummary, ListCursor, MAX_LISTED_CONVERSATIONS, MAX_TITLE_CHARS, NotACursor,
};
pub use memory::MemoryUse;
pub use model_health::Failing;
pub use stream::Reader;
pub use view::{Part, SessionView, TurnView};

use crate::prompt::{Declare, Prompts, Situation};
use briefed_model::BriefedModel;
use conversation::Conversation;
use memory::AnswerMemory;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many requests a turn may make to the model. The last one must be answered in text.
    pub rounds: u32,
    /// How many tokens of guides the prompt carries before it is cut to summaries.
    pub guide_tokens: usize,
    /// Which tools are declared to the model.
    pub declare: Declare,
    /// How long one answer of the model may take.
    pub round_deadline: Duration,
    /// How many conversations are kept in memory. The others wait in the store.
    pub conversations: usize,
    /// How many bytes of them, roughly.
    pub conversation_bytes: usize,
    /// How long a turn that is far ahead of its fastest reader waits for it to read on. One that does not holds up no other
    /// but itself, and then misses what it has not read.
    pub reader_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rounds: 8,
            guide_tokens: 4_000,
            declare: Declare::All,
            round_deadline: Duration::from_secs(300),
            conversations: 1_000,
            conversation_bytes: 64 << 20,
            reader_timeout: Duration::from_secs(10),
        }
    }
}

/// What a text agent is made of.
pub struct Parts {
    /// Decides what the model may do.
    pub orchestrator: Orchestrator,
    pub registry: Arc<Registry>,
    pub model: Arc<dyn ChatModel>,
    /// Asked in its place when it fails before it has said anything.
    pub fallback: Option<Arc<dyn ChatModel>>,
    /// The texts that an operator may change.
    pub prompts: Prompts,
    pub settings: Settings,
}

/// The agent for written conversations. Cheap to clone.
#[derive(Clone)]
pub struct TextAgent {
    core: Arc<TextCore>,
}

pub(crate) struct TextCore {
    orchestrator: Orchestrator,
    registry: Arc<Registry>,
    model: BriefedModel,
    fallback: Option<BriefedModel>,
    settings: Settings,
    conversations: Mutex<HashMap<String, Arc<Conversation>>>,
    memory: AnswerMemory,
    /// Held while a conversation is looked up in a registry that follows a folder: it may move on to other tools.
    moving: tokio::sync::Mutex<()>,
    /// Whether running turns end early, because the server stops.
    stopped: watch::Sender<bool>,
}

#[derive(Debug, Clone)]
pub struct User {
    /// The client, as the server has identified it.
    pub client: Client,
    /// Time zone and language, as the client says.
    pub situation: Situation,
}

/// Which conversation is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address<'a> {
    New,
    /// One that the client has a name of its own for. It begins with the first message.
    Chat(&'a str),
    Session(&'a str),
}

/// A message from the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The client's id for the message; a second delivery under the same id is the same message.
    pub id: Option<String>,
    /// Their key for this request, which counts before the id.
    pub idempotency_key: Option<String>,
    pub text: String,
}

/// A reply to a confirmation request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmationReply {
    pub token: String,
    pub is_approved: bool,
}

/// A conversation as the client sends it, in protocols where the client keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// Everything before the last message.
    pub before: Vec<ChatMessage>,
    pub text: String,
    /// What makes two requests the same one.
    pub fingerprint: String,
    /// Whether the client says that it sends the request again.
    pub is_retry: bool,
}

/// Why a message is not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("an answer is still being written in this conversation")]
    Busy,
    #[error("there is no message to regenerate")]
    NothingToRegenerate,
    /// None of the decisions is about a question that is open.
    #[error("{0}")]
    Confirmation(Box<ToolError>),
    #[error("no random numbers")]
    NoRandom,
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Session(SessionError::Store(error))
    }
}

impl Refusal {
    /// The block that a client is under, if that is the reason.
    pub fn block(&self) -> Option<&Block> {
        match self {
            Self::Session(SessionError::Blocked(block)) => Some(block),
            _ => None,
        }
    }
}

impl TextAgent {
    pub fn new(parts: Parts) -> Self {
        let Parts { orchestrator, registry, model, fallback, prompts, settings } = parts;
        let fallback = fallback.map(|model| BriefedModel::new(model, prompts.clone(), &settings));
        let model = BriefedModel::new(model, prompts, &settings);
        let (conversations, memory) = (Mutex::default(), AnswerMemory::new(settings.conversation_bytes));
        let (moving, stopped) = (tokio::sync::Mutex::default(), watch::Sender::new(false));
        let core = TextCore {
            orchestrator,
            registry,
            model,
            fallback,
            settings,
            conversations,
            memory,
            moving,
            stopped,
        };
        Self { core: Arc::new(core) }
    }

    /// Replaces the texts that an operator may change, from the next turn on.
    pub fn set_prompts(&self, prompts: Prompts) {
        if let Some(fallback) = &self.core.fallback {
            fallback.set_prompts(prompts.clone());
        }
        self.core.model.set_prompts(prompts);
    }

    /// What answers and conversations take in memory at the moment.
    pub fn memory_use(&self) -> MemoryUse {
        self.core.memory.used()
    }

    /// The model that answers, `gemini/gemini-3.8-flash`.
    pub fn model(&self) -> &str {
        self.core.model.model.name()
    }

    /// The models that may answer, the first one first, each with its failures.
    pub fn models(&self) -> Vec<ModelStatus> {
        let all = std::iter::once(&self.core.model).chain(&self.core.fallback);
        all.map(BriefedModel::status).collect()
    }

    /// The trouble with the model, if it fails.
    pub fn model_trouble(&self) -> Option<ModelTrouble> {
        let ModelStatus { name: model, failing } = self.core.model.status();
        let fallback = self.core.fallback.as_ref().map(BriefedModel::status);
        Some(ModelTrouble { model, failing: failing?, fallback })
    }

    /// Whether the model is the built-in one.
    pub fn is_rehearsal(&self) -> bool {
        self.core.model.model.is_rehearsal()
    }

    /// Drops conversations from memory whose tools were replaced, where the registry follows a folder: they hold on to
    /// their version, and get the new one from the store. Those that would lose something by it stay.
    pub fn evict_superseded(&self) {
        let current = self.core.registry.snapshot();
        let is_current = |conversation: &Conversation| {
            conversation.session.snapshot().content_hash() == current.content_hash()
        };
        self.core.lock().retain(|_, conversation| {
            is_current(conversation) || !lookup::is_idle(conversation) || !conversation.is_stored()
        });
    }

    /// Drops conversations from memory that were not used for a while. They stay in the store.
    pub fn evict_idle(&self) {
        let now_ms = self.core.orchestrator.now_ms();
        let timeout = self.core.orchestrator.policy().confirmation_lifetime.as_millis() as u64;
        self.core.lock().retain(|_, conversation| {
            conversation.is_running() || now_ms.saturating_sub(conversation.used_ms()) < timeout
        });
    }

    /// Whether an answer is being written for a client.
    pub fn is_answering(&self, client: &str) -> bool {
        let theirs = |conversation: &&Arc<Conversation>| conversation.session.client() == client;
        self.core.lock().values().filter(theirs).any(|conversation| conversation.is_running())
    }

    /// Ends running turns and those that begin from now on: what was said is stored, and readers are told to ask again.
    pub fn stop_turns(&self) {
        self.core.stopped.send_replace(true);
    }

    pub fn running_turns(&self) -> usize {
        self.core.lock().values().filter(|conversation| conversation.is_running()).count()
    }
}

impl TextCore {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Conversation>>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until turns are to end because the server stops.
    async fn stopped(&self) {
        // It ends early only if the sender is gone, and that is ours.
        let _ = self.stopped.subscribe().wait_for(|is_stopped| *is_stopped).await;
    }

    /// Until when what is written now is kept.
    fn expiry_ms(&self) -> u64 {
        self.orchestrator.now_ms() + self.orchestrator.policy().retention.as_millis() as u64
    }
}
