//! Queued commits that can be applied as one.

use std::collections::{HashMap, HashSet};

use quarterdeck_contracts::Table;

use super::QueuedCommit;
use crate::postgres::commit::EncodedCommit;

/// Bounds the locks that one commit holds, and the time that it takes.
const MAX_GROUP_ROWS: usize = 512;
const MAX_GROUP_BYTES: usize = 1 << 20;

/// Commits in their order. Applied as one they have the same outcome as one after the other, if none is refused.
pub(super) struct Group {
    members: Vec<QueuedCommit>,
    rows: usize,
    bytes: usize,
    written: HashSet<(Table, String)>,
    checked: HashMap<(Table, String), Option<i64>>,
}

impl Group {
    pub(super) fn new(first: QueuedCommit) -> Self {
        let mut group =
            Self { members: Vec::new(), rows: 0, bytes: 0, written: HashSet::new(), checked: HashMap::new() };
        group.push(first);
        group
    }

    /// Gives it back if it does not fit.
    pub(super) fn add(&mut self, queued: QueuedCommit) -> Result<(), QueuedCommit> {
        let commit = &queued.commit;
        let is_small = self.rows + commit.rows().count() <= MAX_GROUP_ROWS
            && self.bytes + commit.size() <= MAX_GROUP_BYTES;
        if !is_small || self.counts_rates(commit) || self.checks_its_own_writes(commit) {
            return Err(queued);
        }
        self.push(queued);
        Ok(())
    }

    pub(super) fn commits(&self) -> Vec<&EncodedCommit> {
        self.members.iter().map(|member| &member.commit).collect()
    }

    pub(super) fn last(&self) -> u64 {
        self.members.last().map_or(0, |member| member.number)
    }

    fn push(&mut self, queued: QueuedCommit) {
        self.rows += queued.commit.rows().count();
        self.bytes += queued.commit.size();
        for (table, key, version) in &queued.commit.checks {
            self.checked.insert((*table, key.clone()), *version);
        }
        for write in &queued.commit.writes {
            self.written.insert((write.table, write.key.clone()));
        }
        self.members.push(queued);
    }

    /// A rate limit without room refuses its own commit and no other.
    fn counts_rates(&self, commit: &EncodedCommit) -> bool {
        let first = self.members.first().map(|member| &member.commit);
        !commit.takes.is_empty() || first.is_some_and(|first| !first.takes.is_empty())
    }

    /// A check of a row that the group writes needs the version that it will have; two checks of one row must agree.
    fn checks_its_own_writes(&self, commit: &EncodedCommit) -> bool {
        commit.checks.iter().any(|(table, key, version)| {
            let row = (*table, key.clone());
            self.written.contains(&row) || self.checked.get(&row).is_some_and(|other| other != version)
        })
    }
}
