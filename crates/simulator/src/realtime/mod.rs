//! The provider's side of OpenAI Realtime, as much of it as a client has to get right: who may speak, and which results
//! belong to which calls.
//!
//! A [`RealtimeSimulator`] serves connections on any stream and gives [`Answer`]s, in their order or to the words that are
//! written to it. Its [`Report`] says what a client has done wrong.

mod connection;
mod conversation;
mod ears;
mod events;
mod report;
mod response;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

pub use self::report::{CallReport, Report};
use crate::live::Disconnect;

/// What the model does when it is its turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It says something.
    Say(String),
    /// It calls a tool, and says something once it has the result.
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
    cut: Option<Disconnect>,
    report: Books,
}

/// Which answer is given.
#[derive(Debug, Clone)]
enum Answers {
    /// One after the other.
    InOrder(Arc<[Answer]>),
    /// The first whose words are in what was written last.
    To(Arc<[(String, Answer)]>),
}

impl RealtimeSimulator {
    /// Gives these answers, in every conversation from the first on. After the last one it says that it has no more.
    pub fn new(answers: impl Into<Arc<[Answer]>>) -> Self {
        Self::giving(Answers::InOrder(answers.into()))
    }

    /// Answers what is written, by the words in it. It remembers nothing from one connection to the next: who tells it
    /// the same again is answered the same again, which is what a forgetful model does.
    pub fn by_keyword<'a>(answers: impl IntoIterator<Item = (&'a str, Answer)>) -> Self {
        let answers = answers.into_iter().map(|(words, answer)| (words.to_owned(), answer));
        Self::giving(Answers::To(answers.collect()))
    }

    fn giving(answers: Answers) -> Self {
        Self { answers, cut: None, report: Books::default() }
    }

    /// Cuts a connection in the middle.
    pub fn with_disconnect(self, cut: Disconnect) -> Self {
        Self { cut: Some(cut), ..self }
    }

    /// Serves one connection, from the handshake until it is closed or cut.
    pub async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send>(&self, stream: S) {
        connection::serve(self, stream).await;
    }

    /// What has happened so far.
    pub fn report(&self) -> Report {
        self.report.open().clone()
    }
}

/// The report while it is written.
#[derive(Debug, Clone, Default)]
struct Books(Arc<Mutex<Report>>);

impl Books {
    fn open(&self) -> MutexGuard<'_, Report> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something that a client should not do.
    fn fault(&self, what: impl Into<String>) {
        let mut report = self.open();
        if report.faults.len() < report::MOST {
            report.faults.push(what.into());
        }
    }
}
