//! Tasks whose node is gone, and who may say what became of them.

use quarterdeck_contracts::{Commit, StoreError, Table};
use serde_json::json;

use super::claim::Access;
use super::lease::{LeaseRow, LeaseState};
use super::peers::Liveness;
use crate::orchestrator::Orchestrator;
use crate::tasks::TaskRunner;

impl Orchestrator {
    /// Whether the process that ran a task of a session is gone, and this one may say what became of it: not where another
    /// node has the session, which will do so itself. What must be so, and is stored with what is said.
    pub(crate) async fn may_recover(
        &self,
        runner: Option<&TaskRunner>,
        session: &str,
    ) -> Result<Option<Commit>, StoreError> {
        let Some(node) = &self.shared().node else { return Ok(Some(Commit::default())) };
        let store = &**self.store();
        if let Some(runner) = runner {
            let now = self.shared().clock.monotonic();
            let is_alive = runner.boot == node.boot
                || runner.node != node.name
                    && matches!(
                        node.liveness(store, &runner.node, &runner.boot, now).await?,
                        Liveness::Alive { .. }
                    );
            if is_alive {
                return Ok(None);
            }
        }
        if self.shared().find(session).is_some() {
            return Ok(Some(Commit::default()));
        }
        let stored = store.get(Table::Leases, session).await?;
        let lease = stored.as_ref().and_then(LeaseRow::parse);
        let token = stored.as_ref().map(|stored| stored.version);
        Ok(match self.access(node, stored.as_ref(), None).await? {
            Access::HeldBy(_) => None,
            Access::Free(_) => Some(Commit::default().check(Table::Leases, session, token)),
            // It is being given away at this moment.
            Access::Abandoned(_) if lease.is_some_and(|lease| lease.boot == node.boot) => None,
            Access::Abandoned(checks) => {
                let free = LeaseRow {
                    node: node.name.clone(),
                    boot: node.boot.clone(),
                    hold: node.next_hold(),
                    state: LeaseState::Free,
                    turn: None,
                };
                let until = self.keep_until();
                let checked = checks.check(Table::Leases, session, token);
                Some(checked.put_until(Table::Leases, session, json!(free), until))
            }
        })
    }
}
