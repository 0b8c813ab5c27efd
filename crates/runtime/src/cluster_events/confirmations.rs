//! Decisions that a user has made through another node. A call that waits here gets what came of them.

use std::sync::Arc;

use quarterdeck_contracts::{StoreError, Table};

use crate::confirmation::{ConfirmationRow, Status, take_decision};
use crate::orchestrator::Orchestrator;
use crate::session::SessionCore;

impl Orchestrator {
    pub(super) async fn apply_decisions(&self, session: &str) -> Result<usize, StoreError> {
        match self.shared().find(session) {
            Some(core) => self.take_decisions(&core).await,
            None => Ok(0),
        }
    }

    pub(super) async fn apply_all_decisions(&self) -> Result<usize, StoreError> {
        let mut found = 0;
        for core in self.shared().live_sessions() {
            found += self.take_decisions(&core).await?;
        }
        Ok(found)
    }

    async fn take_decisions(&self, core: &Arc<SessionCore>) -> Result<usize, StoreError> {
        let open: Vec<String> = {
            let data = core.lock();
            let unclaimed = data.confirmations.iter().filter(|confirmation| !confirmation.is_claimed);
            unclaimed.map(|confirmation| confirmation.hash.clone()).collect()
        };
        let mut taken = 0;
        for hash in open {
            let row = self.store().get(Table::Confirmations, &hash).await?;
            let row = row.and_then(|row| serde_json::from_value::<ConfirmationRow>(row.value).ok());
            if let Some(status @ (Status::Approved | Status::Denied)) = row.map(|row| row.status)
                && take_decision(core, &hash, status).await
            {
                taken += 1;
            }
        }
        Ok(taken)
    }
}
