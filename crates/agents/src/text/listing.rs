//! The list of a client's conversations: one small row for each, written with its messages.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use quarterdeck_contracts::{Commit, Scan, Store, StoreError, Table, visible_line};
use quarterdeck_runtime::Client;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::conversation::Conversation;
use super::{TextAgent, TextCore};

/// How many conversations of a client are listed. Older ones are forgotten by the list, and by the store in their time.
pub const MAX_LISTED_CONVERSATIONS: usize = 200;
pub const MAX_TITLE_CHARS: usize = 80;
/// A longer name of the client's is not repeated in the list; the session's id stands there instead.
const MAX_CHAT_ID_CHARS: usize = 200;
/// How many sessions a conversation may have been continued from and still be shown whole.
const MAX_EARLIER_SESSIONS: usize = 20;

/// What the list knows of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listing {
    pub(super) title: String,
    /// The client's own name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) chat: Option<String>,
    /// The sessions that it was continued from after they had ended, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) earlier: Vec<String>,
    /// Its first session. What is kept of the conversation as a whole is kept under it.
    pub(super) root: String,
    pub(super) registry_version: String,
    pub(super) created_ms: u64,
    pub(super) updated_ms: u64,
}

impl Listing {
    /// The same conversation after its session has ended and another continues it.
    fn continued_from(mut self, ended: &str) -> Self {
        self.earlier.push(ended.to_owned());
        let excess = self.earlier.len().saturating_sub(MAX_EARLIER_SESSIONS);
        self.earlier.drain(..excess);
        self
    }
}

/// A conversation in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationSummary {
    /// The client's own name for it, or else the session's id.
    pub id: String,
    pub session_id: String,
    /// The beginning of the first message.
    pub title: String,
    /// When it began, in milliseconds since 1970.
    pub created_ms: u64,
    /// When its last message came.
    pub updated_ms: u64,
}

/// Conversations, the latest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationList {
    pub conversations: Vec<ConversationSummary>,
    /// Where the next page begins, if there is one.
    pub next: Option<ListCursor>,
}

/// A place in the list: after this conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListCursor {
    updated_ms: u64,
    session_id: String,
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.updated_ms, self.session_id)
    }
}

/// The text is no place in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a place in the list")]
pub struct NotACursor;

impl FromStr for ListCursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let (time, session_id) = text.split_once('.').ok_or(NotACursor)?;
        let is_time = (1..=15).contains(&time.len()) && time.bytes().all(|byte| byte.is_ascii_digit());
        let updated_ms = time.parse().ok().filter(|_| is_time).ok_or(NotACursor)?;
        match quarterdeck_runtime::is_valid_id(session_id) {
            true => Ok(Self { updated_ms, session_id: session_id.to_owned() }),
            false => Err(NotACursor),
        }
    }
}

impl TextAgent {
    /// The conversations of a client, the latest first, from a place on.
    pub async fn list(
        &self,
        client: &str,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<ConversationList, StoreError> {
        let mut rows = load_all(&**self.core.orchestrator.store(), client).await?;
        rows.sort_by_key(|(session_id, listing)| std::cmp::Reverse(cursor(session_id, listing)));
        let mut rest = rows
            .into_iter()
            .filter(|(session_id, listing)| after.is_none_or(|after| cursor(session_id, listing) < *after));
        let page: Vec<_> = rest.by_ref().take(limit).collect();
        let last = page.last().map(|(session_id, listing)| cursor(session_id, listing));
        let next = last.filter(|_| rest.next().is_some());
        let conversations = page.into_iter().map(|(session_id, listing)| ConversationSummary {
            id: listing.chat.unwrap_or_else(|| session_id.clone()),
            session_id,
            title: listing.title,
            created_ms: listing.created_ms,
            updated_ms: listing.updated_ms,
        });
        Ok(ConversationList { conversations: conversations.collect(), next })
    }
}

impl TextCore {
    /// Enters a message of a conversation into the list, to be stored with the message.
    pub(super) fn list_message(
        self: &Arc<Self>,
        conversation: &Conversation,
        client: &Client,
        text: &str,
        chat: Option<&str>,
    ) -> Commit {
        let (session, now_ms) = (&conversation.session, self.orchestrator.now_ms());
        let mut state = conversation.lock();
        let first_text = state.turns.iter().map(|record| &*record.said).find(|said| !said.is_empty());
        let title = title_of(first_text.unwrap_or(text));
        let is_new = state.listing.is_none();
        let listing = state.listing.get_or_insert_with(|| Listing {
            title,
            chat: None,
            earlier: Vec::new(),
            root: session.id().to_owned(),
            registry_version: String::new(),
            created_ms: now_ms,
            updated_ms: now_ms,
        });
        listing.updated_ms = now_ms;
        listing.registry_version = session.snapshot().version().to_owned();
        // A session's id in place of a name leads to the session by itself.
        let name = chat.filter(|chat| *chat != session.id() && chat.chars().count() <= MAX_CHAT_ID_CHARS);
        listing.chat = name.map(str::to_owned).or(listing.chat.take());
        if is_new && !client.is_new {
            let (core, client) = (self.clone(), session.client().to_owned());
            tokio::spawn(async move { core.prune_list(&client).await });
        }
        put(session.client(), session.id(), listing, self.expiry_ms())
    }

    /// The place in the list of a session that has ended goes over to the session that continues it.
    pub(super) async fn continue_listing(
        &self,
        conversation: &Conversation,
        ended: &str,
    ) -> Result<Vec<String>, StoreError> {
        let (client, id) = (conversation.session.client(), conversation.session.id());
        let store = self.orchestrator.store();
        let Some(listing) = load(&**store, client, ended).await? else { return Ok(vec![ended.to_owned()]) };
        let listing = listing.continued_from(ended);
        let commit = put(client, id, &listing, self.expiry_ms()).delete(Table::History, key(client, ended));
        if let Err(error) = store.commit(commit).await {
            tracing::warn!(session = id, error = %error, "list of conversations was not updated");
        }
        let sessions = listing.earlier.clone();
        conversation.lock().listing = Some(listing);
        Ok(sessions)
    }

    /// Takes the oldest conversations off a list that has become too long.
    async fn prune_list(&self, client: &str) {
        let store = self.orchestrator.store();
        let Ok(mut rows) = load_all(&**store, client).await else { return };
        let Some(excess) = rows.len().checked_sub(MAX_LISTED_CONVERSATIONS + 1) else { return };
        rows.sort_by_key(|(session_id, listing)| cursor(session_id, listing));
        let oldest = rows.into_iter().take(excess + 1);
        let commit = oldest.fold(Commit::default(), |commit, (session_id, _)| {
            commit.delete(Table::History, key(client, &session_id))
        });
        if store.queue(commit).is_err() {
            tracing::warn!(client, "list of conversations was not pruned");
        }
    }
}

fn cursor(session_id: &str, listing: &Listing) -> ListCursor {
    ListCursor { updated_ms: listing.updated_ms, session_id: session_id.to_owned() }
}

/// The first words of a message, on one line.
fn title_of(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(MAX_TITLE_CHARS).collect();
    let line = visible_line(&words.join(" "));
    let Some((end, _)) = line.char_indices().nth(MAX_TITLE_CHARS - 1) else { return line };
    if line[end..].chars().count() == 1 {
        return line;
    }
    // Cut between words where there are any.
    let head = &line[..end];
    let head = head.rsplit_once(' ').map_or(head, |(head, _)| head);
    format!("{head}…")
}

pub(super) fn key(client: &str, session: &str) -> String {
    format!("t/{client}/{session}")
}

fn put(client: &str, session: &str, listing: &Listing, expires_ms: u64) -> Commit {
    Commit::default().put_until(Table::History, key(client, session), json!(listing), Some(expires_ms))
}

pub(super) async fn load(
    store: &dyn Store,
    client: &str,
    session: &str,
) -> Result<Option<Listing>, StoreError> {
    let row = store.get(Table::History, &key(client, session)).await?;
    Ok(row.and_then(|row| serde_json::from_value(row.value).ok()))
}

/// Every listed conversation of a client. The list is pruned when one begins, so there are hardly more than it may have.
async fn load_all(store: &dyn Store, client: &str) -> Result<Vec<(String, Listing)>, StoreError> {
    let prefix = key(client, "");
    let rows = store.scan(Table::History, Scan::prefix(prefix.clone(), 2 * MAX_LISTED_CONVERSATIONS)).await?;
    let rows = rows.into_iter().filter_map(|(key, row)| {
        Some((key.strip_prefix(&prefix)?.to_owned(), serde_json::from_value(row.value).ok()?))
    });
    Ok(rows.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_title_is_the_beginning_of_the_message_on_one_line() {
        assert_eq!(title_of("Who designed\n  the Fram?"), "Who designed the Fram?");
        let long =
            "Tell me everything about the voyage of the Fram from Christiania to the Arctic Ocean and back";
        let title = title_of(long);
        assert_eq!(title, "Tell me everything about the voyage of the Fram from Christiania to the Arctic…");
        assert_eq!(title_of(&"x".repeat(MAX_TITLE_CHARS)).chars().count(), MAX_TITLE_CHARS);
    }

    proptest! {
        #[test]
        fn a_title_is_never_long_and_never_has_a_second_line(text in "\\PC{0,300}|[\\s\\S]{0,300}") {
            let title = title_of(&text);
            prop_assert!(!title.contains(['\n', '\r']));
            // A character that is made visible is written as its code.
            prop_assert!(title.chars().count() <= MAX_TITLE_CHARS, "{title}");
        }

        #[test]
        fn a_place_in_the_list_is_read_as_it_was_written(updated_ms in 0_u64..1 << 45, id in "[a-z0-9_.]{1,40}") {
            let cursor = ListCursor { updated_ms, session_id: id };
            prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
    }
}
