//! What users think of answers: one rating for each, which they may change or take back.

use std::collections::HashMap;

use quarterdeck_contracts::{Commit, CommitError, Scan, Store, StoreError, Table};
use quarterdeck_runtime::FeedbackEvent;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Address, Refusal, SessionView, TextAgent, TextCore, User};

/// How often a rating is written again when another request has changed it.
const MAX_ATTEMPTS: usize = 3;
const SCAN_PAGE_ROWS: usize = 500;
/// How many rows a list of all ratings looks at.
const MAX_SCANNED_ROWS: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rating {
    Up,
    Down,
}

impl Rating {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// What a user thinks of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    pub rating: Rating,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// A rating as it is kept, for lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GivenFeedback {
    pub message_id: String,
    pub session_id: String,
    /// The version of the tools that the answer was given with.
    pub registry_version: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    #[serde(flatten)]
    pub feedback: Feedback,
}

/// Where the answer is that is rated.
struct RatedAnswer {
    root: String,
    session_id: String,
    registry_version: String,
}

impl TextAgent {
    /// Rates an answer in a conversation of this client, or takes the rating back. `false` when there is no such answer.
    pub async fn rate(
        &self,
        user: &User,
        of: Address<'_>,
        message_id: &str,
        feedback: Option<Feedback>,
    ) -> Result<bool, Refusal> {
        let core = &self.core;
        let Some(answer) = core.find_answer(user, of, message_id).await? else { return Ok(false) };
        let store = core.orchestrator.store();
        let key = format!("{}{message_id}", prefix(&user.client.id, &answer.root));
        for _ in 0..MAX_ATTEMPTS {
            let row = store.get(Table::History, &key).await?;
            let version = row.as_ref().map(|row| row.version);
            let known: Option<GivenFeedback> = row.and_then(|row| serde_json::from_value(row.value).ok());
            let previous = known.map(|known| known.feedback);
            if previous == feedback {
                return Ok(true);
            }
            let commit = Commit::default().check(Table::History, key.clone(), version);
            let commit = match &feedback {
                Some(feedback) => {
                    let given = core.given(&answer, message_id, feedback);
                    commit.put_until(Table::History, key.clone(), json!(given), Some(core.expiry_ms()))
                }
                None => commit.delete(Table::History, key.clone()),
            };
            match store.commit(commit).await {
                Ok(_) => {
                    core.report_feedback(user, &answer, message_id, previous.as_ref(), feedback.as_ref());
                    return Ok(true);
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into_store_error().into()),
            }
        }
        Err(Refusal::Busy)
    }
}

impl TextCore {
    async fn find_answer(
        &self,
        user: &User,
        of: Address<'_>,
        message_id: &str,
    ) -> Result<Option<RatedAnswer>, Refusal> {
        if let Some(conversation) = self.find(user, of).await? {
            let is_there = conversation.lock().turns.iter().any(|record| *record.message_id == *message_id);
            let session = &conversation.session;
            return Ok(is_there.then(|| RatedAnswer {
                root: conversation.root(),
                session_id: session.id().to_owned(),
                registry_version: session.snapshot().version().to_owned(),
            }));
        }
        let Some((session_id, listing, turns)) = self.load_ended(user, of).await? else { return Ok(None) };
        let is_there = turns.iter().any(|record| *record.message_id == *message_id);
        let (root, registry_version) = (listing.root, listing.registry_version);
        Ok(is_there.then_some(RatedAnswer { root, session_id, registry_version }))
    }

    fn given(&self, answer: &RatedAnswer, message_id: &str, feedback: &Feedback) -> GivenFeedback {
        GivenFeedback {
            message_id: message_id.to_owned(),
            session_id: answer.session_id.clone(),
            registry_version: answer.registry_version.clone(),
            at_ms: self.orchestrator.now_ms(),
            feedback: feedback.clone(),
        }
    }

    fn report_feedback(
        &self,
        user: &User,
        answer: &RatedAnswer,
        message_id: &str,
        previous: Option<&Feedback>,
        feedback: Option<&Feedback>,
    ) {
        let rating = |feedback: Option<&Feedback>| feedback.map(|feedback| feedback.rating.as_str());
        self.orchestrator.record_feedback(&FeedbackEvent {
            client_id: &user.client.id,
            session_id: &answer.session_id,
            registry_version: &answer.registry_version,
            message_id,
            previous: rating(previous),
            rating: rating(feedback),
            has_comment: feedback.is_some_and(|feedback| feedback.comment.is_some()),
        });
    }

    /// Adds what the user thinks of the answers to the view of a conversation.
    pub(super) async fn add_feedback(
        &self,
        client: &str,
        root: &str,
        view: &mut SessionView,
    ) -> Result<(), StoreError> {
        let mut given = load_of(&**self.orchestrator.store(), client, root).await?;
        for turn in &mut view.turns {
            turn.feedback = given.remove(&*turn.message_id);
        }
        Ok(())
    }
}

/// How the keys of the ratings in a conversation begin.
pub(super) fn prefix(client: &str, root: &str) -> String {
    format!("f/{client}/{root}/")
}

async fn load_of(
    store: &dyn Store,
    client: &str,
    root: &str,
) -> Result<HashMap<String, Feedback>, StoreError> {
    let scan = Scan::prefix(prefix(client, root), SCAN_PAGE_ROWS);
    let rows = store.scan(Table::History, scan).await?;
    let given =
        rows.into_iter().filter_map(|(_, row)| serde_json::from_value::<GivenFeedback>(row.value).ok());
    Ok(given.map(|given| (given.message_id, given.feedback)).collect())
}

/// The latest ratings of all clients, for operators, and whether these are all.
pub async fn list_feedback(store: &dyn Store, most: usize) -> Result<(Vec<GivenFeedback>, bool), StoreError> {
    let (mut given, mut is_complete, mut examined) = (Vec::new(), true, 0);
    let mut scan = Scan::prefix("f/", SCAN_PAGE_ROWS);
    loop {
        let page = store.scan(Table::History, scan.clone()).await?;
        let Some((last, _)) = page.last() else { return Ok((given, is_complete)) };
        if examined >= MAX_SCANNED_ROWS {
            return Ok((given, false));
        }
        scan.after = Some(last.clone());
        examined += page.len();
        let rows =
            page.into_iter().filter_map(|(_, row)| serde_json::from_value::<GivenFeedback>(row.value).ok());
        given.extend(rows);
        given.sort_by_key(|given| std::cmp::Reverse(given.at_ms));
        is_complete &= given.len() <= most;
        given.truncate(most);
    }
}
