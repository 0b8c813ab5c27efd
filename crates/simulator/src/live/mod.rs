//! The provider's side of the Gemini Live protocol: the counterpart of every voice test, and of the product when no key
//! is configured.
//!
//! A [`LiveSimulator`] serves connections on any stream. What it says and calls is written in a [`Scenario`], or a chat
//! model answers. It is strict where the provider is, and its [`Report`] says what a client has done wrong.

mod client_frame;
mod connection;
mod conversation;
mod declarations;
mod desk;
mod ears;
mod report;
mod scenario;
mod server_frame;
mod session;
mod setup;
mod sound;
mod wav;

use std::sync::Arc;

use quarterdeck_contracts::ChatModel;
use tokio::io::{AsyncRead, AsyncWrite};

use self::desk::{Desk, Mind};

pub use self::connection::{ConnectionEnd, EndedBy};
pub use self::report::{CallReport, Report};
pub use self::scenario::{Disconnect, DisconnectAfter, Scenario, ScenarioError};
pub use self::sound::{SpeechFuture, Voice};
pub use self::wav::samples_from_wav;

/// A provider of a live model, simulated. Clones share everything: handles, the record of calls, the count of
/// connections.
#[derive(Clone)]
pub struct LiveSimulator {
    desk: Arc<Desk>,
}

impl LiveSimulator {
    /// Plays a scenario. Every conversation begins it anew; one that goes on with a handle goes on where it was.
    pub fn from_scenario(scenario: Scenario) -> Self {
        Self::new(Mind::Plays(Arc::new(scenario)))
    }

    /// Has a chat model answer what is written to it, with real calls and their results.
    pub fn from_chat_model(model: Arc<dyn ChatModel>) -> Self {
        Self::new(Mind::Answers(model))
    }

    /// Speaks with a voice instead of tones. To be given before the first connection.
    #[must_use]
    pub fn with_voice(self, voice: Arc<dyn Voice>) -> Self {
        let mut desk = Desk::new(self.desk.mind.clone());
        desk.voice = Some(voice);
        Self { desk: Arc::new(desk) }
    }

    /// Serves one connection, from the handshake until it is closed. Reads tokio's clock and no other.
    pub async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send>(&self, stream: S) -> ConnectionEnd {
        connection::serve(self.desk.clone(), stream).await
    }

    /// What has happened so far.
    pub fn report(&self) -> Report {
        self.desk.books().report.clone()
    }

    /// Whether the last turn of the scenario has been completed and nobody is connected any more.
    pub fn is_done(&self) -> bool {
        let books = self.desk.books();
        books.is_played && books.open == 0
    }

    fn new(mind: Mind) -> Self {
        Self { desk: Arc::new(Desk::new(mind)) }
    }
}
