//! The agent for voice calls.
//!
//! A call is one task between two links: the client's and the provider's. Audio goes from link to link without a stop.
//! Everything else goes through a state machine (`state`), which decides and performs no I/O; the task (`call`) carries out
//! what it decides. Either link may be lost and come back: a client finds its call by the session, and a call finds its
//! model by the provider's handle and by what was said since.

mod active_calls;
mod answers;
mod backpressure;
mod call;
mod closing;
mod journal;
mod link;
mod open;
mod provider_link;
mod question_tasks;
mod session;
mod spans;
pub mod spoken_answer;
mod spoken_question;
mod state;
mod tasks;
mod transcript;

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{ErrorType, LiveModel, StoreError, ToolError};
use quarterdeck_runtime::{Listen, Orchestrator, Registry, SessionError};
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

pub use link::{CallRequest, ClientLink, ClientMessage, CloseReason, Disconnect, ServerMessage};
pub use question_tasks::SpeechEngines;

use crate::briefing::{Briefing, DeclarationForms};
use crate::describe;
use crate::prompt::{Declare, Prompts};
use crate::text::User;
use active_calls::{ActiveCall, ActiveCalls, CallCommand, Reservation};
use call::Call;
use state::SpokenQuestions;

/// How long a new call waits for an older one of the same client whose page was just closed.
const OLDER_CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// How often calls are counted while they are waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many tokens of guides the prompt carries before it is cut to summaries.
    pub guide_tokens: usize,
    /// Which tools are declared to the model.
    pub declare: Declare,
    /// How long a call without a client keeps its provider. The session can be resumed for longer than that.
    pub reconnect_timeout: Duration,
    /// How long a client has to report that a farewell was played, beyond the time that it takes to play it.
    pub farewell_timeout: Duration,
    pub max_duration: Duration,
    /// How long a client may be silent, pings included.
    pub idle_timeout: Duration,
    /// How many calls there may be, those included whose client is away.
    pub calls: usize,
    /// What the model is asked to say while a tool takes long and there is silence. Absent: nothing.
    pub filler: Option<String>,
    /// Whether our own ear listens for the user, so that an interruption does not wait for the provider to notice it. A model
    /// that relies on it has one in any case.
    pub ear: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            guide_tokens: 4_000,
            declare: Declare::All,
            reconnect_timeout: Duration::from_secs(20),
            farewell_timeout: Duration::from_secs(5),
            max_duration: Duration::from_secs(2 * 3_600),
            idle_timeout: Duration::from_secs(45),
            calls: 500,
            filler: None,
            ear: true,
        }
    }
}

/// What a voice agent is made of.
pub struct Parts {
    /// Decides what the model may do.
    pub orchestrator: Orchestrator,
    pub registry: Arc<Registry>,
    pub model: Arc<dyn LiveModel>,
    /// What questions are asked with by voice, where the policy allows it.
    pub engines: SpeechEngines,
    /// The texts that an operator may change.
    pub prompts: Prompts,
    pub settings: Settings,
}

/// The agent for voice calls. Cheap to clone.
#[derive(Clone)]
pub struct VoiceAgent {
    core: Arc<VoiceCore>,
}

pub(crate) struct VoiceCore {
    orchestrator: Orchestrator,
    registry: Arc<Registry>,
    model: Arc<dyn LiveModel>,
    engines: SpeechEngines,
    briefing: Briefing,
    settings: Settings,
    calls: Arc<ActiveCalls>,
    /// When every call must have ended, once the server is about to stop.
    stopping: watch::Sender<Option<Instant>>,
}

impl VoiceAgent {
    pub fn new(parts: Parts) -> Self {
        let Parts { orchestrator, registry, model, engines, prompts, settings } = parts;
        let describe_tool = describe::declaration(|name, description, parameters| {
            model.declare(name, description, parameters)
        });
        let forms = DeclarationForms { usual: model.declarations(), fuller: model.fuller_declarations() };
        let briefing = Briefing::new(prompts, settings.declare, settings.guide_tokens, forms, describe_tool);
        let (stopping, _) = watch::channel(None);
        let calls = ActiveCalls::new(settings.calls);
        let core = VoiceCore { orchestrator, registry, model, engines, briefing, settings, calls, stopping };
        Self { core: Arc::new(core) }
    }

    /// Replaces the texts that an operator may change, from the next call on.
    pub fn set_prompts(&self, prompts: Prompts) {
        self.core.briefing.set_prompts(prompts);
    }

    /// The model's name, `gemini/gemini-3.8-live`.
    pub fn model(&self) -> &str {
        self.core.model.name()
    }

    /// Whether the model is the built-in one.
    pub fn is_rehearsal(&self) -> bool {
        self.core.model.is_rehearsal()
    }

    /// Whether the model's audio is speech. Where it is not, clients have the transcript to speak.
    pub fn speaks(&self) -> bool {
        self.core.model.speaks()
    }

    /// Whether the model understands speech.
    pub fn hears(&self) -> bool {
        self.core.model.hears()
    }

    /// Whether a client is connected to a call. A call whose client is away does not count.
    pub fn is_in_call(&self, client: &str) -> bool {
        self.core.calls.is_connected(client)
    }

    /// How many calls there are.
    pub fn active_calls(&self) -> usize {
        self.core.calls.len()
    }

    /// Starts or resumes a call. It runs in a task of its own; this returns as soon as it is set up or refused.
    pub async fn start_call(&self, user: &User, request: CallRequest, mut link: Box<dyn ClientLink>) {
        let core = &self.core;
        if core.stopping.borrow().is_some() {
            let error = unavailable("The server is about to stop. Please call again.");
            link.send(ServerMessage::Error(&error));
            return link.close(CloseReason::Stopping).await;
        }
        let Some(link) = core.resume_active(user, &request, link).await else { return };
        let Some((link, incoming, active)) = core.reserve(user, link).await else { return };
        match core.open(user, &request).await {
            Ok(opened) => {
                active.set_session(opened.session.id());
                let call = Call::new(core.clone(), user, opened, link, (incoming, active));
                tokio::spawn(call.run());
            }
            Err(error) => {
                drop(active);
                refuse(link, &error, core.orchestrator.now_ms()).await;
            }
        }
    }

    /// Ends the call of a session so that another node can continue it, with everything that was said; `false` when there is
    /// no such call here.
    pub async fn hand_over(&self, session: &str) -> bool {
        let Some(commands) = self.core.calls.commands_of_session(session) else { return false };
        let (done, handed_over) = oneshot::channel();
        commands.send(CallCommand::HandOver(done)).await.is_ok() && handed_over.await.is_ok()
    }

    /// Tells every client that the server is about to stop, and waits until every call has ended. Their sessions stay.
    pub async fn drain(&self, within: Duration) {
        let deadline = Instant::now() + within;
        let _ = self.core.stopping.send_replace(Some(deadline));
        while self.active_calls() > 0 && Instant::now() < deadline {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

impl VoiceCore {
    /// Hands the link to the active call that it resumes. Returns it if there is none.
    async fn resume_active(
        &self,
        user: &User,
        request: &CallRequest,
        link: Box<dyn ClientLink>,
    ) -> Option<Box<dyn ClientLink>> {
        let session = request.session_id.as_deref().filter(|_| request.may_resume);
        let commands = session.and_then(|session| self.calls.commands_of(&user.client.id, session));
        let Some(commands) = commands else { return Some(link) };
        // A node that was stopped for a while may not know yet that another one has continued the call.
        let session = session.unwrap_or_default();
        if matches!(self.orchestrator.has_session(session).await, Ok(false)) {
            return Some(link);
        }
        match commands.send(CallCommand::Link(link)).await {
            Err(SendError(CallCommand::Link(link))) => Some(link),
            Ok(()) | Err(_) => None,
        }
    }

    /// Reserves a call for the client, or closes the link.
    async fn reserve(
        &self,
        user: &User,
        mut link: Box<dyn ClientLink>,
    ) -> Option<(Box<dyn ClientLink>, mpsc::Receiver<CallCommand>, ActiveCall)> {
        let since = Instant::now();
        let (message, reason) = loop {
            match self.calls.reserve(&user.client.id) {
                Reservation::Granted(incoming, active) => return Some((link, incoming, active)),
                Reservation::AtCapacity => {
                    break ("All lines are busy. Please call again in a moment.", CloseReason::AtCapacity);
                }
                Reservation::InCall if since.elapsed() > OLDER_CALL_TIMEOUT => {
                    break ("You are in a call already. End it first.", CloseReason::Refused);
                }
                Reservation::InCall => tokio::time::sleep(POLL_INTERVAL).await,
            }
        };
        link.send(ServerMessage::Error(&unavailable(message)));
        link.close(reason).await;
        None
    }

    /// How questions are asked by voice in a call of this user; `None` where only the page asks. A client that speaks itself
    /// would not play ours, and in a language without a grammar nothing is an answer.
    fn spoken_questions(&self, user: &User) -> Option<SpokenQuestions> {
        let policy = self.orchestrator.policy();
        let spoken = policy.spoken_confirmation;
        let has_ears = spoken.listen == Listen::Provider || self.engines.hears.is_some();
        let can_ask = spoken.is_allowed && has_ears && self.engines.speaks.is_some() && self.model.speaks();
        let language = user.situation.locale.as_ref().or(self.engines.language.as_ref())?;
        (can_ask && spoken_answer::is_supported(language)).then(|| SpokenQuestions {
            language: language.clone(),
            listen: spoken.listen,
            lifetime: policy.confirmation_lifetime,
        })
    }

    /// Until when what is written now is kept.
    fn expiry_ms(&self) -> u64 {
        self.orchestrator.now_ms() + self.orchestrator.policy().retention.as_millis() as u64
    }
}

async fn refuse(mut link: Box<dyn ClientLink>, error: &SessionError, now_ms: u64) {
    let (message, reason) = match error {
        SessionError::Blocked(block) => {
            let left_ms = block.until_ms.saturating_sub(now_ms);
            tracing::info!(client = block.client_id, left_ms, "call refused, client is blocked");
            link.send(ServerMessage::Blocked(block));
            return link.close(CloseReason::Refused).await;
        }
        SessionError::Store(error) => {
            tracing::error!(error = %error, "call setup failed");
            let is_temporary = matches!(error, StoreError::Unavailable(_));
            // A page calls again by itself after the one, and not after the other.
            let reason = if is_temporary { CloseReason::Stopping } else { CloseReason::Failed };
            ("The call could not be opened. Please try again.", reason)
        }
        SessionError::HeldElsewhere(_) | SessionError::Lost => (
            "This call is being continued by another server. Please try again in a moment.",
            CloseReason::Stopping,
        ),
        SessionError::Version(error) => (&*error.to_string(), CloseReason::Failed),
        _ => ("There is no such session. Call again without one.", CloseReason::Failed),
    };
    link.send(ServerMessage::Error(&unavailable(message)));
    link.close(reason).await;
}

fn unavailable(message: &str) -> ToolError {
    ToolError::new(ErrorType::Unavailable, message)
}
