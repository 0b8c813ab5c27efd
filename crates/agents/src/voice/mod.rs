//! The agent that people speak to.
//!
//! A call is one task with two ends: the person's line and the model's connection. Audio goes through it from end to
//! end without a stop; everything else is looked at on the way and decided by the same orchestrator that the text agent
//! asks. Either end may be lost and come back: a line finds its call by the session, and a call finds its model by the
//! provider's handle and by what was said since.

mod call;
mod clock;
mod cuts;
mod echo;
mod ending;
mod flights;
mod from_model;
mod from_person;
mod from_session;
mod journal;
mod line;
mod line_end;
mod missed;
mod model_end;
mod notes;
mod open;
mod seat;
mod speech;
mod upstream;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::{ErrorType, LiveModel, ToolError};
use quarterdeck_runtime::{Orchestrator, Registry, SessionError};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

pub use line::{CallRequest, ClientLink, ClientMessage, CloseReason, Disconnect, ServerMessage};

use crate::briefing::Briefing;
use crate::prompt::{Declare, Prompts};
use crate::text::User;
use call::Call;
use seat::Seat;

/// How long a new call waits for an older one of the same person whose page was just closed.
const PATIENCE_WITH_OLDER: Duration = Duration::from_secs(1);
/// How often that is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// The numbers of the voice agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many tokens of guides the prompt carries before it is cut to summaries.
    pub guide_tokens: usize,
    /// Which tools the model is told about.
    pub declare: Declare,
    /// How long a call without a line keeps its model. The session can be resumed for longer than that.
    pub parked_for: Duration,
    /// How long a page has to say that a farewell was heard, beyond the time that it takes to hear it.
    pub farewell: Duration,
    /// The longest call.
    pub longest: Duration,
    /// How long a line may be silent, pings included.
    pub line_silence: Duration,
    /// How many calls are on at the most, those included that wait for their line to come back.
    pub calls: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            guide_tokens: 4_000,
            declare: Declare::All,
            parked_for: Duration::from_secs(20),
            farewell: Duration::from_secs(5),
            longest: Duration::from_secs(2 * 3_600),
            line_silence: Duration::from_secs(45),
            calls: 500,
        }
    }
}

/// What a voice agent is made of.
pub struct Parts {
    /// Decides what the model may do.
    pub orchestrator: Orchestrator,
    /// The tools.
    pub registry: Arc<Registry>,
    /// The model.
    pub model: Arc<dyn LiveModel>,
    /// The texts that a site may change.
    pub prompts: Prompts,
    /// The numbers.
    pub settings: Settings,
}

/// The agent that people speak to. Cheap to clone.
#[derive(Clone)]
pub struct VoiceAgent {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    orchestrator: Orchestrator,
    registry: Arc<Registry>,
    model: Arc<dyn LiveModel>,
    briefing: Briefing,
    settings: Settings,
    /// The one call of each client.
    calls: Mutex<HashMap<String, Known>>,
    counted: AtomicU64,
    /// When every call must have ended, once the server is about to stop.
    leaving: watch::Sender<Option<Instant>>,
}

/// Whether a client can have a call.
enum Room {
    Free(mpsc::Receiver<Box<dyn ClientLink>>, Seat),
    /// They have one.
    Taken,
    /// Too many others have.
    Full,
}

/// A call that is on.
struct Known {
    number: u64,
    session: Option<Arc<str>>,
    /// A new line takes over. Dropping it ends the call.
    lines: mpsc::Sender<Box<dyn ClientLink>>,
    has_line: Arc<AtomicBool>,
}

impl VoiceAgent {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Self {
        let Parts { orchestrator, registry, model, prompts, settings } = parts;
        let briefing = Briefing::new(prompts, settings.declare, settings.guide_tokens, model.declarations());
        let (leaving, _) = watch::channel(None);
        let calls = Mutex::default();
        Self {
            inner: Arc::new(Inner {
                orchestrator,
                registry,
                model,
                briefing,
                settings,
                calls,
                counted: AtomicU64::new(0),
                leaving,
            }),
        }
    }

    /// The model that speaks, `gemini/gemini-3.8-live`.
    pub fn model(&self) -> &str {
        self.inner.model.name()
    }

    /// Whether a client is on the line. A call that waits for its line to come back does not count.
    pub fn is_in_call(&self, client: &str) -> bool {
        self.inner.lock().get(client).is_some_and(|known| known.has_line.load(Ordering::Acquire))
    }

    /// How many calls are on.
    pub fn active_calls(&self) -> usize {
        self.inner.lock().len()
    }

    /// Puts a person through. The call runs on by itself; this returns as soon as it stands or is refused.
    pub async fn start_call(&self, user: &User, opening: CallRequest, mut line: Box<dyn ClientLink>) {
        let agent = &self.inner;
        if agent.leaving.borrow().is_some() {
            line.send(ServerMessage::Error(&unavailable("The server is about to stop. Please call again.")));
            return line.close(CloseReason::Stopping).await;
        }
        let line = match agent.take_over(user, &opening, line).await {
            Some(line) => line,
            None => return,
        };
        let (line, lines, seat) = match agent.reserve(user, line).await {
            Some(reserved) => reserved,
            None => return,
        };
        match agent.open(user, &opening).await {
            Ok(opened) => {
                seat.settle(opened.session.id());
                let call = Call::new(agent.clone(), user, opened, line, lines, seat);
                tokio::spawn(call.run());
            }
            Err(error) => {
                drop(seat);
                refuse(line, &error, agent.orchestrator.now_ms()).await;
            }
        }
    }

    /// Tells everybody that the server is about to stop, and waits until every call has ended. Their sessions stay.
    pub async fn drain(&self, within: Duration) {
        let deadline = Instant::now() + within;
        let _ = self.inner.leaving.send_replace(Some(deadline));
        while self.active_calls() > 0 && Instant::now() < deadline {
            tokio::time::sleep(GLANCE).await;
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands the line to the call that it resumes, if that is still on.
    async fn take_over(
        &self,
        user: &User,
        opening: &CallRequest,
        line: Box<dyn ClientLink>,
    ) -> Option<Box<dyn ClientLink>> {
        let lines = {
            let calls = self.lock();
            let known = calls.get(&user.client.id);
            let is_this = |known: &&Known| known.session.is_some() && known.session == opening.session_id;
            known.filter(|_| opening.may_resume).filter(is_this).map(|known| known.lines.clone())
        };
        let Some(lines) = lines else { return Some(line) };
        lines.send(line).await.err().map(|refused| refused.0)
    }

    /// Makes sure that the client has no other call. One that nobody is on any more makes room.
    async fn reserve(
        self: &Arc<Self>,
        user: &User,
        mut line: Box<dyn ClientLink>,
    ) -> Option<(Box<dyn ClientLink>, mpsc::Receiver<Box<dyn ClientLink>>, Seat)> {
        let since = Instant::now();
        let refusal = loop {
            match self.room_for(&user.client.id) {
                Room::Free(lines, seat) => return Some((line, lines, seat)),
                Room::Full => {
                    break ("All lines are busy. Please call again in a moment.", CloseReason::AtCapacity);
                }
                Room::Taken if since.elapsed() > PATIENCE_WITH_OLDER => {
                    break ("You are in a call already. End it first.", CloseReason::Refused);
                }
                Room::Taken => tokio::time::sleep(GLANCE).await,
            }
        };
        line.send(ServerMessage::Error(&unavailable(refusal.0)));
        line.close(refusal.1).await;
        None
    }

    fn room_for(self: &Arc<Self>, client: &str) -> Room {
        let mut calls = self.lock();
        match calls.get(client) {
            Some(known) if known.has_line.load(Ordering::Acquire) => return Room::Taken,
            None if calls.len() >= self.settings.calls => return Room::Full,
            _ => {}
        }
        let (sender, lines) = mpsc::channel(1);
        let has_line = Arc::new(AtomicBool::new(true));
        let number = self.counted.fetch_add(1, Ordering::Relaxed);
        let known = Known { number, session: None, lines: sender, has_line: has_line.clone() };
        calls.insert(client.to_owned(), known);
        Room::Free(lines, Seat::new(self.clone(), client.to_owned(), number, has_line))
    }

    /// Until when what is written now is kept.
    fn expiry_ms(&self) -> u64 {
        self.orchestrator.now_ms() + self.orchestrator.policy().retention.as_millis() as u64
    }
}

async fn refuse(mut line: Box<dyn ClientLink>, error: &SessionError, now_ms: u64) {
    let why = match error {
        SessionError::Blocked(block) => {
            tracing::info!(
                client = block.client_id,
                left_ms = block.until_ms.saturating_sub(now_ms),
                "a blocked client called"
            );
            line.send(ServerMessage::Blocked(block));
            return line.close(CloseReason::Refused).await;
        }
        SessionError::Store(error) => {
            tracing::error!(error = %error, "a call could not be opened");
            "The call could not be opened. Please try again."
        }
        _ => "There is no such session. Call again without one.",
    };
    line.send(ServerMessage::Error(&unavailable(why)));
    line.close(CloseReason::Failed).await;
}

fn unavailable(message: &str) -> ToolError {
    ToolError::new(ErrorType::Unavailable, message)
}
