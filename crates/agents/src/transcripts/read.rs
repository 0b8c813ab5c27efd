//! Reads conversations for operators. The caller writes an audit line first.

use std::collections::{BTreeMap, HashMap};

use quarterdeck_contracts::{Mode, Row, Scan, Store, StoreError, Table};
use quarterdeck_runtime::find_session;
use serde::{Deserialize, Serialize};

use super::{AnswerOutcome, HeardWords, TranscriptTurn, index_key, session_prefix};
use crate::text::{Feedback, GivenFeedback, Rating};

const SCAN_PAGE_ROWS: usize = 200;
/// How many rows a list looks at.
const MAX_SCANNED_ROWS: usize = 50_000;
/// How many turns of one conversation are shown; the latest ones.
const MAX_TURNS: usize = 1_000;

/// A kept conversation, without its words.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationSummary {
    pub session_id: String,
    pub client_id: String,
    pub mode: Mode,
    pub turns: u64,
    /// Turns that gave no answer, or that the user did not like.
    pub unanswered: u64,
    /// When its first kept turn began, in milliseconds since 1970.
    pub began_ms: u64,
    pub last_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredConversations {
    /// The latest first.
    pub conversations: Vec<ConversationSummary>,
    /// Whether these are all.
    pub is_complete: bool,
}

/// Why a question is in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnansweredReason {
    NoEvidence,
    Refused,
    Error,
    /// It was answered, and the user did not like the answer.
    ThumbsDown,
}

impl UnansweredReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoEvidence => "no evidence",
            Self::Refused => "refused",
            Self::Error => "error",
            Self::ThumbsDown => "thumbs down",
        }
    }
}

/// A question that got no answer, or one that the user did not like.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnansweredQuestion {
    pub session_id: String,
    pub turn: u64,
    pub at_ms: u64,
    pub question: String,
    pub reason: UnansweredReason,
    /// What the user wrote about the answer.
    pub comment: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnansweredQuestions {
    /// The latest first.
    pub questions: Vec<UnansweredQuestion>,
    /// Whether these are all.
    pub is_complete: bool,
}

/// The latest conversations, of one client or of all.
pub async fn list_conversations(
    store: &dyn Store,
    client: Option<&str>,
    kept_since_ms: u64,
    most: usize,
) -> Result<StoredConversations, StoreError> {
    let ratings = load_ratings(store).await?;
    let prefix = client.map_or_else(|| "o/".to_owned(), super::client_prefix);
    let mut found: BTreeMap<String, ConversationSummary> = BTreeMap::new();
    let is_read = each_turn(store, prefix, kept_since_ms, |mut turn| {
        turn.feedback = turn.message_id.as_deref().and_then(|id| ratings.get(id).cloned());
        let at_ms = turn.at_ms;
        let summary = found.entry(turn.session_id.clone()).or_insert_with(|| ConversationSummary {
            session_id: turn.session_id.clone(),
            client_id: turn.client_id.clone(),
            mode: turn.mode,
            turns: 0,
            unanswered: 0,
            began_ms: at_ms,
            last_ms: at_ms,
        });
        summary.turns += 1;
        summary.unanswered += u64::from(reason_of(&turn).is_some());
        summary.began_ms = summary.began_ms.min(at_ms);
        summary.last_ms = summary.last_ms.max(at_ms);
    })
    .await?;
    let mut conversations: Vec<_> = found.into_values().collect();
    conversations.sort_by_key(|conversation| std::cmp::Reverse(conversation.last_ms));
    let is_complete = is_read && conversations.len() <= most;
    conversations.truncate(most);
    Ok(StoredConversations { conversations, is_complete })
}

/// The kept turns of a session, the oldest first; `None` when nothing of it is kept.
pub async fn find_conversation(
    store: &dyn Store,
    session: &str,
    kept_since_ms: u64,
) -> Result<Option<Vec<TranscriptTurn>>, StoreError> {
    let Some(client) = client_of(store, session).await? else { return Ok(None) };
    let prefix = session_prefix(&client, session);
    let mut scan = Scan::prefix(prefix, SCAN_PAGE_ROWS);
    let (mut turns, mut heard): (Vec<TranscriptTurn>, HashMap<u64, HeardWords>) = Default::default();
    loop {
        let page = store.scan(Table::History, scan.clone()).await?;
        let Some((last, _)) = page.last() else { break };
        scan.after = Some(last.clone());
        for (key, row) in page {
            match StoredRow::parse(&key, row) {
                Some(StoredRow::Turn(turn)) if turn.at_ms >= kept_since_ms => turns.push(*turn),
                Some(StoredRow::Heard(turn, words)) => drop(heard.insert(turn, words)),
                _ => {}
            }
        }
        turns.drain(..turns.len().saturating_sub(MAX_TURNS));
    }
    if turns.is_empty() {
        return Ok(None);
    }
    let ratings = load_ratings_of(store, &format!("f/{client}/")).await?;
    for turn in &mut turns {
        turn.heard = heard.remove(&turn.turn);
        turn.feedback = turn.message_id.as_deref().and_then(|id| ratings.get(id).cloned());
    }
    Ok(Some(turns))
}

/// The latest questions without a good answer.
pub async fn list_unanswered(
    store: &dyn Store,
    kept_since_ms: u64,
    most: usize,
) -> Result<UnansweredQuestions, StoreError> {
    let ratings = load_ratings(store).await?;
    let mut questions = Vec::new();
    let is_read = each_turn(store, "o/".to_owned(), kept_since_ms, |mut turn| {
        turn.feedback = turn.message_id.as_deref().and_then(|id| ratings.get(id).cloned());
        let Some(reason) = reason_of(&turn).filter(|_| !turn.user.trim().is_empty()) else { return };
        questions.push(UnansweredQuestion {
            session_id: turn.session_id,
            turn: turn.turn,
            at_ms: turn.at_ms,
            question: turn.user.trim().to_owned(),
            reason,
            comment: turn.feedback.and_then(|feedback| feedback.comment),
        });
    })
    .await?;
    questions.sort_by_key(|question| std::cmp::Reverse(question.at_ms));
    let is_complete = is_read && questions.len() <= most;
    questions.truncate(most);
    Ok(UnansweredQuestions { questions, is_complete })
}

fn reason_of(turn: &TranscriptTurn) -> Option<UnansweredReason> {
    let is_disliked = turn.feedback.as_ref().is_some_and(|feedback| feedback.rating == Rating::Down);
    match turn.outcome {
        AnswerOutcome::NoEvidence => Some(UnansweredReason::NoEvidence),
        AnswerOutcome::Refused => Some(UnansweredReason::Refused),
        AnswerOutcome::Error => Some(UnansweredReason::Error),
        AnswerOutcome::Answered => is_disliked.then_some(UnansweredReason::ThumbsDown),
    }
}

enum StoredRow {
    Turn(Box<TranscriptTurn>),
    Heard(u64, HeardWords),
}

impl StoredRow {
    fn parse(key: &str, row: Row) -> Option<Self> {
        if let Some(of) = key.strip_suffix("/heard") {
            let turn = of.rsplit_once('/')?.1.parse().ok()?;
            return Some(Self::Heard(turn, serde_json::from_value(row.value).ok()?));
        }
        serde_json::from_value(row.value).ok().map(|turn| Self::Turn(Box::new(turn)))
    }
}

/// Whose session it is, also when the session itself is forgotten.
async fn client_of(store: &dyn Store, session: &str) -> Result<Option<String>, StoreError> {
    if let Some(row) = store.get(Table::History, &index_key(session)).await? {
        return Ok(row.value["clientId"].as_str().map(str::to_owned));
    }
    Ok(find_session(store, session).await?.map(|session| session.client_id))
}

/// Goes through kept turns; `false` when there are more than a list looks at.
async fn each_turn(
    store: &dyn Store,
    prefix: String,
    kept_since_ms: u64,
    mut take: impl FnMut(TranscriptTurn),
) -> Result<bool, StoreError> {
    let (mut scan, mut examined) = (Scan::prefix(prefix, SCAN_PAGE_ROWS), 0);
    loop {
        let page = store.scan(Table::History, scan.clone()).await?;
        let Some((last, _)) = page.last() else { return Ok(true) };
        if examined >= MAX_SCANNED_ROWS {
            return Ok(false);
        }
        scan.after = Some(last.clone());
        examined += page.len();
        for (key, row) in page {
            if let Some(StoredRow::Turn(turn)) = StoredRow::parse(&key, row)
                && turn.at_ms >= kept_since_ms
            {
                take(*turn);
            }
        }
    }
}

/// What users think of answers, by the answers' ids.
async fn load_ratings(store: &dyn Store) -> Result<HashMap<String, Feedback>, StoreError> {
    load_ratings_of(store, "f/").await
}

async fn load_ratings_of(store: &dyn Store, prefix: &str) -> Result<HashMap<String, Feedback>, StoreError> {
    let (mut scan, mut ratings) = (Scan::prefix(prefix, SCAN_PAGE_ROWS), HashMap::new());
    loop {
        let page = store.scan(Table::History, scan.clone()).await?;
        let Some((last, _)) = page.last().filter(|_| ratings.len() < MAX_SCANNED_ROWS) else {
            return Ok(ratings);
        };
        scan.after = Some(last.clone());
        let given = page.into_iter().filter_map(|(_, row)| serde_json::from_value(row.value).ok());
        ratings.extend(given.map(|given: GivenFeedback| (given.message_id, given.feedback)));
    }
}
