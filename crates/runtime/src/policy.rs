//! The numbers of the policy: all of them configuration, these are the defaults.

use std::time::Duration;

use quarterdeck_contracts::Mode;
use serde::{Deserialize, Serialize};

/// What sessions may do and how long things are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub text: Budgets,
    pub voice: Budgets,
    /// How long the user has to answer a request for confirmation.
    pub confirmation_lifetime: Duration,
    pub spoken_confirmation: SpokenConfirmation,
    /// How long a tool may block a client at the most; a longer block is shortened to it.
    pub max_block: Duration,
    /// How long a session without a connection can be resumed.
    pub resume_timeout: Duration,
    /// After how long without a turn a session ends by itself.
    pub idle_timeout: Duration,
    /// How long history, records and values are kept.
    pub retention: Duration,
    /// How long operators may read conversations; absent: they may not, and nothing is kept for them.
    pub transcript_retention: Option<Duration>,
    /// How many recorded calls that do not write a session remembers.
    pub max_remembered_calls: usize,
    /// How many events may be queued for a client.
    pub max_queued_events: usize,
    /// How many calls one message may carry; those beyond are refused unread.
    pub max_calls_per_message: usize,
    /// How many background tasks of one client may run at the same time.
    pub max_tasks_per_client: usize,
    /// How many background tasks of all clients may run at the same time.
    pub max_tasks: usize,
    /// The claim of a verified token that names a client's organisation.
    pub organisation_claim: String,
}

/// Whether users may answer requests for confirmation by voice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpokenConfirmation {
    /// Without it, no spoken decision counts.
    pub is_allowed: bool,
    pub listen: Listen,
}

/// Whose transcript of the user's audio a spoken answer is taken from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Listen {
    /// That of our own speech to text.
    #[default]
    Own,
    /// That of the provider of a live model.
    Provider,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budgets {
    /// Calls per turn.
    pub calls: u32,
    /// Retrieval calls per turn, counted apart from the others.
    pub retrieval: u32,
    /// The largest `top_k`; `None` leaves it to the schema.
    pub top_k: Option<u64>,
    /// Soft: how long one retrieval call should take.
    pub retrieval_ms: Option<u64>,
    /// Soft: how long any call should take.
    pub call_ms: Option<u64>,
    /// Soft: how long all calls of a turn should take together.
    pub turn_ms: Option<u64>,
    /// How long calls of a turn keep the user waiting at the most; a slower one is not waited for.
    #[serde(default)]
    pub max_wait_ms: Option<u64>,
    /// How often a failed call is tried again.
    pub retries: u32,
    /// The pause before the first retry; each further one is twice as long at the most.
    pub backoff_ms: u64,
}

impl Policy {
    pub fn budgets(&self, mode: Mode) -> &Budgets {
        match mode {
            Mode::Text => &self.text,
            Mode::Voice => &self.voice,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            text: Budgets {
                calls: 10,
                retrieval: 5,
                top_k: None,
                retrieval_ms: Some(2_000),
                call_ms: None,
                turn_ms: None,
                max_wait_ms: None,
                retries: 3,
                backoff_ms: 200,
            },
            voice: Budgets {
                calls: 3,
                retrieval: 2,
                top_k: Some(3),
                retrieval_ms: Some(800),
                call_ms: Some(1_000),
                turn_ms: Some(1_500),
                max_wait_ms: Some(15_000),
                retries: 1,
                backoff_ms: 50,
            },
            confirmation_lifetime: Duration::from_secs(5 * 60),
            spoken_confirmation: SpokenConfirmation::default(),
            max_block: Duration::from_secs(24 * 3_600),
            resume_timeout: Duration::from_secs(5 * 60),
            idle_timeout: Duration::from_secs(30 * 60),
            retention: Duration::from_secs(30 * 24 * 3_600),
            transcript_retention: None,
            max_remembered_calls: 100,
            max_queued_events: 256,
            max_calls_per_message: 128,
            max_tasks_per_client: 5,
            max_tasks: 100,
            organisation_claim: "org_id".into(),
        }
    }
}
