//! The provider's side of OpenAI Realtime, as much of it as a client has to get right: turn-taking, and which outputs
//! belong to which calls.
//!
//! A [`RealtimeSimulator`] serves connections on any stream and gives [`Answer`]s, in their order or by keywords. Its [`Report`]
//! lists faults of the client.

mod connection;
mod conversation;
mod events;
mod report;
mod response;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

pub use self::report::{CallReport, Report};
use crate::live::Disconnect;

/// What the model does in a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Says a text.
    Say(String),
    /// Calls a tool, and says a text once it has the output.
    Call {
        /// The tool.
        name: String,
        /// The arguments.
        arguments: Value,
        /// What it says then.
        then: String,
    },
}

/// OpenAI Realtime, simulated. Clones share the report.
#[derive(Debug, Clone)]
pub struct RealtimeSimulator {
    answers: Answers,
    disconnect: Option<Disconnect>,
    report: SharedReport,
}

#[derive(Debug, Clone)]
enum Answers {
    InOrder(Arc<[Answer]>),
    /// The first whose keyword is in the last text.
    ByKeyword(Arc<[(String, Answer)]>),
}

impl RealtimeSimulator {
    /// Gives these answers, in every conversation from the first on.
    pub fn new(answers: impl Into<Arc<[Answer]>>) -> Self {
        Self::with_answers(Answers::InOrder(answers.into()))
    }

    /// Answers texts by the keywords in them. It remembers nothing from one connection to the next:
    /// the same text gets the same answer.
    pub fn by_keyword<'a>(answers: impl IntoIterator<Item = (&'a str, Answer)>) -> Self {
        let answers = answers.into_iter().map(|(words, answer)| (words.to_owned(), answer));
        Self::with_answers(Answers::ByKeyword(answers.collect()))
    }

    fn with_answers(answers: Answers) -> Self {
        Self { answers, disconnect: None, report: SharedReport::default() }
    }

    /// Loses a connection in the middle.
    pub fn with_disconnect(self, disconnect: Disconnect) -> Self {
        Self { disconnect: Some(disconnect), ..self }
    }

    /// Serves one connection, from the handshake until it is closed or lost.
    pub async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send>(&self, stream: S) {
        connection::serve(self, stream).await;
    }

    /// What has happened so far.
    pub fn report(&self) -> Report {
        self.report.lock().clone()
    }
}

#[derive(Debug, Clone, Default)]
struct SharedReport(Arc<Mutex<Report>>);

impl SharedReport {
    fn lock(&self) -> MutexGuard<'_, Report> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a fault of the client.
    fn fault(&self, what: impl Into<String>) {
        let mut report = self.lock();
        if report.faults.len() < report::MAX_ENTRIES {
            report.faults.push(what.into());
        }
    }
}
