//! What must hold after every history.

use std::collections::{BTreeMap, BTreeSet};

use quarterdeck_contracts::Mode;
use quarterdeck_runtime::audit::verify;

use super::super::fixture::Run;
use super::{DELIVERED, Scenario};

impl Scenario {
    pub(super) async fn check_audit_log(&self) {
        if let Some(folder) = &self.folder {
            let verification =
                verify(&folder.path().join("audit.jsonl"), &self.chain(), &*self.store).await.unwrap();
            assert_eq!(verification.fault, None);
            assert!(verification.lines > 0);
        }
    }

    pub(super) fn check(&self) {
        let runs = std::mem::take(&mut *self.effects.runs.lock().unwrap());
        let ours: Vec<_> =
            runs.iter().filter(|run| run.what.starts_with(&format!("{}/", self.prefix))).collect();
        check_writes(&ours);
        self.check_budgets(&ours);
        self.check_confirmations(&ours);
        // An answer is given for the first time once; a crash may lose the receipt.
        for (call, times) in &self.delivered {
            assert!(*times <= 1 + self.crashes, "{call:?} was answered {times} times");
        }
    }

    fn check_budgets(&self, ours: &[&Run]) {
        // A process without its session finishes what it had admitted, in the name of no one.
        if self.has_zombies {
            return;
        }
        // Budgets hold in every turn. What the user approves was counted when it was requested.
        let (calls, retrieval) = if self.mode == Mode::Voice { (3, 2) } else { (10, 5) };
        let mut per_turn: BTreeMap<(u32, u64), (u32, u32)> = BTreeMap::new();
        let mut counted = BTreeSet::new();
        for run in ours.iter().filter(|run| !matches!(run.tool, "pay" | "hang_up" | DELIVERED)) {
            // A call whose rows were changed by another is run again on what is there; it is one call.
            if run.tool == "count" && !counted.insert((run.process, run.turn, &run.what)) {
                continue;
            }
            let counts = per_turn.entry((run.process, run.turn)).or_default();
            counts.0 += 1;
            counts.1 += u32::from(run.tool == "look");
        }
        assert!(per_turn.values().all(|counts| counts.0 <= calls && counts.1 <= retrieval), "{per_turn:?}");
        // A turn that was cut by a crash gets no second budget.
        assert!(
            self.resumed_in.iter().all(|(process, turn)| !per_turn.contains_key(&(*process, *turn))),
            "{per_turn:?}"
        );
    }

    fn check_confirmations(&self, ours: &[&Run]) {
        // A confirmed call runs at most once for each request.
        let mut asked: BTreeMap<&str, u32> = BTreeMap::new();
        for (_, what) in &self.tokens {
            *asked.entry(what).or_default() += 1;
        }
        let mut paid: BTreeMap<&str, u32> = BTreeMap::new();
        for run in ours.iter().filter(|run| run.tool == "pay") {
            *paid.entry(&run.what).or_default() += 1;
        }
        assert!(
            paid.iter().all(|(what, times)| times <= asked.get(what).unwrap_or(&0)),
            "{paid:?} {asked:?}"
        );
        assert!(self.approvals.values().all(|times| *times <= 1), "a token was redeemed twice");
    }
}

fn check_writes(ours: &[&Run]) {
    // No write runs twice in a turn, whatever is delivered twice.
    let mut seen = BTreeSet::new();
    for run in ours.iter().filter(|run| matches!(run.tool, "book" | "slow_book")) {
        assert!(seen.insert((run.tool, &run.what, run.turn)), "{} ran twice in turn {}", run.what, run.turn);
    }
    // A write is not repeated in a later turn while its answer was not delivered.
    for (place, run) in ours.iter().enumerate().filter(|(_, run)| matches!(run.tool, "book" | "slow_book")) {
        let before = ours[..place].iter().rposition(|other| other.tool == run.tool && other.what == run.what);
        let is_delivered = |other: &&&Run| other.tool == DELIVERED && run.what.starts_with(&other.what);
        assert!(
            before.is_none_or(|before| ours[before..place].iter().any(|other| is_delivered(&other))),
            "{} was repeated before it was delivered",
            run.what
        );
    }
}
