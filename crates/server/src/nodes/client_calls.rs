//! The one active call of a client, over all nodes.
//!
//! A row names the node that a client's call is connected to. It is a hint: whether the client is in that call is asked
//! from the node itself, so that a row which was left behind does no harm.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use bytes::Bytes;
use quarterdeck_contracts::{Commit, CommitError, StoreError, Table};
use quarterdeck_runtime::Holder;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use super::{ALIVE_TIMEOUT, Nodes};
use crate::app::App;

pub(crate) const CALLS_PATH: &str = "/api/nodes/calls";
/// How long a new call waits for an older one of the same client whose page was just closed.
const OLDER_CALL_TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Rows that a process left behind are forgotten then.
const ROW_RETENTION_MS: u64 = 24 * 3_600_000;

/// Where the call of a client is.
#[derive(Debug, Serialize, Deserialize)]
struct CallRow {
    node: String,
    boot: String,
}

/// A question about the call of a client, and its answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallQuestion {
    pub(crate) client: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallStatus {
    pub(crate) is_in_call: bool,
}

/// Why a client cannot have a call.
#[derive(Debug)]
pub(crate) enum NoCall {
    /// It is in one at another node.
    InCall,
    Store(StoreError),
}

/// The place of a client's call. It is given back when the client's connection is gone.
pub(crate) struct ClientCall {
    app: Arc<App>,
    client: String,
    /// Of the row.
    version: u64,
}

/// A row of another node.
struct CallElsewhere {
    version: u64,
    is_in_call: bool,
}

impl App {
    /// Whether a client is in a call at any node.
    pub(crate) async fn is_in_call(&self, client: &str) -> Result<bool, StoreError> {
        // A call without a connection does not count.
        if self.voice.as_ref().is_some_and(|voice| voice.is_in_call(client)) {
            return Ok(true);
        }
        let Some(nodes) = &self.nodes else { return Ok(false) };
        let Some(found) = self.find_call_elsewhere(nodes, client, None).await? else { return Ok(false) };
        if !found.is_in_call {
            forget(self, client, found.version).await;
        }
        Ok(found.is_in_call)
    }

    /// Takes the place of a client's call for this node; `None` where it is alone. A node that was found dead is not asked
    /// again.
    pub(crate) async fn claim_call(
        self: &Arc<Self>,
        client: &str,
        dead: Option<&Holder>,
    ) -> Result<Option<ClientCall>, NoCall> {
        let Some(nodes) = &self.nodes else { return Ok(None) };
        let dead = dead.map(|dead| dead.boot.as_str());
        let began = Instant::now();
        loop {
            let seen = match self.find_call_elsewhere(nodes, client, dead).await.map_err(NoCall::Store)? {
                Some(found) if found.is_in_call && began.elapsed() > OLDER_CALL_TIMEOUT => {
                    return Err(NoCall::InCall);
                }
                Some(found) if found.is_in_call => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                    continue;
                }
                Some(found) => Some(found.version),
                None => self.call_version(client).await.map_err(NoCall::Store)?,
            };
            let row = CallRow { node: nodes.name().to_owned(), boot: nodes.boot().to_owned() };
            let expires = Some(self.orchestrator.now_ms() + ROW_RETENTION_MS);
            let claim = Commit::default().check(Table::Leases, key(client), seen).put_until(
                Table::Leases,
                key(client),
                json!(row),
                expires,
            );
            match self.orchestrator.store().commit(claim).await {
                Ok(version) => {
                    let (app, client) = (self.clone(), client.to_owned());
                    return Ok(Some(ClientCall { app, client, version }));
                }
                // Another call of the client was quicker.
                Err(CommitError::Conflict { .. }) if began.elapsed() <= OLDER_CALL_TIMEOUT => {}
                Err(CommitError::Conflict { .. }) => return Err(NoCall::InCall),
                Err(error) => return Err(NoCall::Store(error.into_store_error())),
            }
        }
    }

    async fn call_version(&self, client: &str) -> Result<Option<u64>, StoreError> {
        Ok(self.orchestrator.store().get(Table::Leases, &key(client)).await?.map(|row| row.version))
    }

    /// The row of another node, and whether the client is in a call there.
    async fn find_call_elsewhere(
        &self,
        nodes: &Nodes,
        client: &str,
        dead: Option<&str>,
    ) -> Result<Option<CallElsewhere>, StoreError> {
        let Some(stored) = self.orchestrator.store().get(Table::Leases, &key(client)).await? else {
            return Ok(None);
        };
        let version = stored.version;
        let row = serde_json::from_value::<CallRow>(stored.value).ok();
        let Some(row) = row.filter(|row| row.boot != nodes.boot()) else { return Ok(None) };
        if dead == Some(&row.boot) {
            return Ok(Some(CallElsewhere { version, is_in_call: false }));
        }
        let known = self.orchestrator.nodes().await?;
        let holder = known.into_iter().find(|node| node.name == row.node && node.boot == row.boot);
        let is_in_call = match holder {
            Some(node) => {
                let holder = Holder { node: node.name, address: node.address, boot: node.boot };
                nodes.asks_in_call(&holder, client).await
            }
            None => false,
        };
        Ok(Some(CallElsewhere { version, is_in_call }))
    }
}

impl Nodes {
    /// Whether a client is in a call at a node. One that does not answer in time is dead.
    async fn asks_in_call(&self, node: &Holder, client: &str) -> bool {
        let question = json!(CallQuestion { client: client.to_owned() }).to_string();
        let asked = self.ask_json(node, Method::POST, CALLS_PATH, Bytes::from(question), ALIVE_TIMEOUT);
        asked.await.is_ok_and(|CallStatus { is_in_call }| is_in_call)
    }
}

impl Drop for ClientCall {
    fn drop(&mut self) {
        let (app, client, version) = (self.app.clone(), std::mem::take(&mut self.client), self.version);
        // Without a runtime the process ends, and its rows mean nothing.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            // Another connection of the client may have the call.
            if !app.voice.as_ref().is_some_and(|voice| voice.is_in_call(&client)) {
                forget(&app, &client, version).await;
            }
        });
    }
}

/// Deletes the row, if it is still the one that was seen.
async fn forget(app: &App, client: &str, version: u64) {
    let key = key(client);
    let gone = Commit::default().check(Table::Leases, key.clone(), Some(version)).delete(Table::Leases, key);
    if let Err(error) = app.orchestrator.store().commit(gone).await {
        tracing::debug!(error = %error, "row of a call stays");
    }
}

/// No id of a session holds a slash.
fn key(client: &str) -> String {
    format!("call/{client}")
}
