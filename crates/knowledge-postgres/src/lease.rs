//! Who builds. A row, not a lock of the server: a lock is freed when a connection is lost, and its holder goes on.
//!
//! The token is checked in the transaction that makes a new base the current one, so that a node which was paused can change
//! nothing once another has taken over. Waiting only avoids needless take-overs.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_postgres::types::Type;

use crate::schema::Param;
use crate::{KnowledgeDatabase, KnowledgeError};

/// How often the holder shows that it lives.
const RENEW_INTERVAL: Duration = Duration::from_secs(3);
/// A holder whose row did not change for so long, by the clock of the node that waits, counts as dead.
const DEAD_AFTER: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The right to build, until it is dropped or another node takes it.
pub(crate) struct BuildLease {
    pub(crate) token: i64,
    renewal: JoinHandle<()>,
}

impl Drop for BuildLease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// The row as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    holder: String,
    token: i64,
    beat: i64,
}

impl KnowledgeDatabase {
    /// Waits until no living node builds. `waiting` is told the holder's name, once for each.
    pub(crate) async fn take_lease(
        &self,
        holder: &str,
        waiting: &mut (dyn FnMut(&str) + Send),
    ) -> Result<BuildLease, KnowledgeError> {
        let mut last: Option<(Seen, Instant)> = None;
        let mut told = None;
        loop {
            let seen = self.read_lease().await?;
            let since = match &last {
                Some((before, since)) if *before == seen => *since,
                _ => Instant::now(),
            };
            if seen.holder.is_empty() || since.elapsed() >= DEAD_AFTER {
                if let Some(token) = self.try_take(holder, &seen).await? {
                    return Ok(BuildLease { token, renewal: self.renew(token) });
                }
                continue;
            }
            if told != Some(seen.token) {
                waiting(&seen.holder);
                told = Some(seen.token);
            }
            last = Some((seen, since));
            sleep(POLL_INTERVAL).await;
        }
    }

    pub(crate) async fn release_lease(&self, lease: BuildLease) -> Result<(), KnowledgeError> {
        let release = format!(
            "UPDATE {}.build_lease SET holder = '', beat = beat + 1 WHERE token = $1 RETURNING token",
            self.schema
        );
        self.query(release, vec![(Box::new(lease.token), Type::INT8)]).await?;
        Ok(())
    }

    async fn read_lease(&self) -> Result<Seen, KnowledgeError> {
        let read = format!("SELECT holder, token, beat FROM {}.build_lease", self.schema);
        let rows = self.query(read, vec![]).await?;
        let row = rows.first().ok_or_else(|| KnowledgeError::Damaged("its lease is not there".to_owned()))?;
        Ok(Seen { holder: row.get(0), token: row.get(1), beat: row.get(2) })
    }

    /// The token, unless another node was quicker or the holder lives after all.
    async fn try_take(&self, holder: &str, seen: &Seen) -> Result<Option<i64>, KnowledgeError> {
        let take = format!(
            "UPDATE {}.build_lease SET holder = $1, token = token + 1, beat = beat + 1
             WHERE token = $2 AND beat = $3 RETURNING token",
            self.schema
        );
        let params: Vec<Param> = vec![
            (Box::new(holder.to_owned()), Type::TEXT),
            (Box::new(seen.token), Type::INT8),
            (Box::new(seen.beat), Type::INT8),
        ];
        let rows = self.query(take, params).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    fn renew(&self, token: i64) -> JoinHandle<()> {
        let of = self.clone();
        tokio::spawn(async move {
            let renew = format!(
                "UPDATE {}.build_lease SET beat = beat + 1 WHERE token = $1 AND holder <> '' RETURNING token",
                of.schema
            );
            loop {
                sleep(RENEW_INTERVAL).await;
                match of.query(renew.clone(), vec![(Box::new(token), Type::INT8)]).await {
                    Ok(rows) if rows.is_empty() => {
                        tracing::warn!("another node has taken over the build of the knowledge base");
                        return;
                    }
                    Ok(_) => {}
                    Err(error) => tracing::warn!(%error, "the lease of the knowledge base was not renewed"),
                }
            }
        })
    }
}
