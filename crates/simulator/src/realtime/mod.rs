//! The provider's side of OpenAI Realtime, as much of it as a client has to get right: who may speak, and which results
//! belong to which calls.
//!
//! A [`RealtimeSimulator`] serves connections on any stream and gives [`Answer`]s in their order. Its [`Report`] says what
//! a client has done wrong.

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
    answers: Arc<[Answer]>,
    report: Books,
}

impl RealtimeSimulator {
    /// Gives these answers, in every conversation from the first on. After the last one it says that it has no more.
    pub fn new(answers: impl Into<Arc<[Answer]>>) -> Self {
        Self { answers: answers.into(), report: Books::default() }
    }

    /// Serves one connection, from the handshake until it is closed.
    pub async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send>(&self, stream: S) {
        connection::serve(self.answers.clone(), self.report.clone(), stream).await;
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
