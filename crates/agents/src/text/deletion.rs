//! Deletes a conversation: ends its session, and erases what was said in it.

use quarterdeck_contracts::{Commit, CommitError, Scan, Store, StoreError, Table};
use quarterdeck_runtime::{PendingEnd, erase_files};

use super::listing::{self, Listing};
use super::{Address, Refusal, TextAgent, TextCore, User, feedback, history};
use crate::transcripts::erase_conversation;

/// How many rows are erased in one commit.
const BATCH_ROWS: usize = 500;

impl TextAgent {
    /// Ends a conversation of this client and erases its messages, files and ratings, also what operators keep of it; `false` when there is none. What its
    /// calls did stays done and on the record.
    pub async fn delete(&self, user: &User, which: Address<'_>) -> Result<bool, Refusal> {
        let core = &self.core;
        let client = &user.client.id;
        let Some(id) = core.session_id(user, which).await? else { return Ok(false) };
        let conversation = core.find_held(user, Address::Session(&id)).await?;
        let listing = listing::load(&**core.orchestrator.store(), client, &id).await?;
        if let Some(conversation) = &conversation {
            conversation.mark_deleted();
            conversation.session.end(PendingEnd::with_reason("user_requested")).await;
            core.lock().remove(&id);
        } else if listing.is_none() {
            return Ok(false);
        }
        core.erase(client, &id, listing.as_ref()).await?;
        if let Address::Chat(chat) = which {
            core.commit(Commit::default().delete(Table::History, history::chat_key(client, chat))).await?;
        }
        // A turn that is still running may have been about to store something.
        let running = conversation.and_then(|conversation| conversation.lock().running.clone());
        if let Some(running) = running {
            let (core, client) = (core.clone(), client.clone());
            tokio::spawn(async move {
                running.stream.closed().await;
                if let Err(error) = core.erase(&client, &id, listing.as_ref()).await {
                    tracing::error!(session = id, error = %error, "conversation was not erased");
                }
            });
        }
        Ok(true)
    }
}

impl TextCore {
    async fn erase(&self, client: &str, id: &str, listing: Option<&Listing>) -> Result<(), StoreError> {
        let store = &**self.orchestrator.store();
        let earlier = listing.map_or(&[][..], |listing| &listing.earlier);
        let mut keys = Vec::new();
        for session in earlier.iter().map(String::as_str).chain([id]) {
            keys.extend(keys_with_prefix(store, &history::session_prefix(session)).await?);
            erase_files(store, session).await.map_err(CommitError::into_store_error)?;
            erase_conversation(store, client, session).await?;
        }
        let root = listing.map_or(id, |listing| &listing.root);
        keys.extend(keys_with_prefix(store, &feedback::prefix(client, root)).await?);
        let chat = listing.and_then(|listing| listing.chat.as_deref());
        keys.extend(chat.map(|chat| history::chat_key(client, chat)));
        keys.push(listing::key(client, id));
        for portion in keys.chunks(BATCH_ROWS) {
            let commit =
                portion.iter().fold(Commit::default(), |commit, key| commit.delete(Table::History, key));
            self.commit(commit).await?;
        }
        Ok(())
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        self.orchestrator.store().commit(commit).await.map(drop).map_err(CommitError::into_store_error)
    }
}

async fn keys_with_prefix(store: &dyn Store, prefix: &str) -> Result<Vec<String>, StoreError> {
    let mut keys = Vec::new();
    let mut scan = Scan::prefix(prefix, BATCH_ROWS);
    loop {
        let page = store.scan(Table::History, scan.clone()).await?;
        let Some((last, _)) = page.last() else { return Ok(keys) };
        scan.after = Some(last.clone());
        keys.extend(page.into_iter().map(|(key, _)| key));
    }
}
