//! The provider's side of the Gemini Live protocol: the counterpart of every voice test, and of the product when no key
//! is configured.
//!
//! A [`LiveSimulator`] serves connections on any stream. What it says and calls is written in a [`Scenario`], or a chat
//! model answers. It is strict where the provider is, and its [`Report`] says what a client has done wrong.

mod client_frame;
mod connection;
mod conversation;
mod declarations;
mod report;
mod scenario;
mod server_frame;
mod session;
mod setup;
mod simulation;
mod sound;
mod wav;

use std::sync::Arc;

use quarterdeck_contracts::ChatModel;
use tokio::io::{AsyncRead, AsyncWrite};

use self::simulation::{ReplySource, Simulation};

pub use self::connection::{ConnectionEnd, EndedBy};
pub use self::report::{CallReport, Report};
pub use self::scenario::{Disconnect, DisconnectAfter, Scenario, ScenarioError};
pub use self::sound::{SpeechFuture, Substitute, Voice};
pub use self::wav::samples_from_wav;

/// Gemini Live, simulated. Clones share everything: handles, the report, the count of connections.
#[derive(Clone)]
pub struct LiveSimulator {
    simulation: Arc<Simulation>,
}

impl LiveSimulator {
    /// Plays a scenario. Every conversation starts it anew; one that resumes with a handle goes on where it was.
    pub fn from_scenario(scenario: Scenario) -> Self {
        Self::new(ReplySource::Scenario(Arc::new(scenario)))
    }

    /// Has a chat model answer texts, with real calls and their results. Its tools are plain functions with a name, a
    /// description and a JSON Schema of their parameters, so the model must take these.
    pub fn from_chat_model(model: Arc<dyn ChatModel>) -> Self {
        Self::new(ReplySource::ChatModel(model))
    }

    /// Speaks with a voice instead of tones. To be set before the first connection.
    #[must_use]
    pub fn with_voice(self, voice: Arc<dyn Voice>) -> Self {
        self.rebuilt(|simulation| simulation.voice = Some(voice))
    }

    /// Sends this where nothing speaks. To be set before the first connection.
    #[must_use]
    pub fn with_substitute(self, substitute: Substitute) -> Self {
        self.rebuilt(|simulation| simulation.substitute = substitute)
    }

    /// Serves one connection, from the handshake until it is closed. Reads tokio's clock and no other.
    pub async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send>(&self, stream: S) -> ConnectionEnd {
        connection::serve(self.simulation.clone(), stream).await
    }

    /// What has happened so far.
    pub fn report(&self) -> Report {
        self.simulation.state().report.clone()
    }

    /// Whether the last turn of the scenario is complete and no connection is open.
    pub fn is_done(&self) -> bool {
        let state = self.simulation.state();
        state.is_played && state.open_connections == 0
    }

    fn rebuilt(self, change: impl FnOnce(&mut Simulation)) -> Self {
        let old = &self.simulation;
        let mut simulation = Simulation::new(old.source.clone());
        (simulation.voice, simulation.substitute) = (old.voice.clone(), old.substitute);
        change(&mut simulation);
        Self { simulation: Arc::new(simulation) }
    }

    fn new(source: ReplySource) -> Self {
        Self { simulation: Arc::new(Simulation::new(source)) }
    }
}
