//! Compares what clients were told with the ledger and with the outside world. It knows nothing of how the product
//! works, only what it promises: no write twice, none acknowledged and lost, no answer to the wrong client, every call
//! answered or honestly unknown.

use std::collections::BTreeMap;
use std::fmt;

use crate::journal::{Ask, Told, owner_of};
use crate::ledger::LedgerCall;
use crate::outside::Effect;

/// Everything that is known when a run is over.
#[derive(Debug, Default, Clone)]
pub struct Evidence {
    /// By key.
    pub asks: BTreeMap<String, Ask>,
    /// What clients were sent that was not theirs.
    pub strays: Vec<String>,
    /// What was really done.
    pub effects: Vec<Effect>,
    /// The calls in the ledger.
    pub calls: Vec<LedgerCall>,
    /// The receipts that the tools have stored together with the record of their calls, by key.
    pub values: BTreeMap<String, u64>,
}

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// With those of its calls that the ledger has, and whether as done.
    Twice {
        key: String,
        times: usize,
        recorded: Vec<bool>,
    },
    /// It was acknowledged, and is missing here.
    Lost {
        key: String,
        missing: &'static str,
    },
    /// It was said not to be done, and was.
    Untrue {
        key: String,
        said: String,
    },
    /// Two answers that cannot both be right.
    Contradiction {
        key: String,
        told: Vec<Told>,
    },
    WrongClient(String),
    Unanswered {
        key: String,
    },
    /// The ledger has it done, and the outside world does not know of it, or the other way round.
    Ledger {
        key: String,
        what: &'static str,
    },
}

impl Violation {
    /// What was asked for, where it is about one thing.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Twice { key, .. }
            | Self::Lost { key, .. }
            | Self::Untrue { key, .. }
            | Self::Contradiction { key, .. }
            | Self::Unanswered { key }
            | Self::Ledger { key, .. } => Some(key),
            Self::WrongClient(_) => None,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice { key, times, recorded } => {
                write!(out, "{key} was done {times} times, and is recorded as {recorded:?}")
            }
            Self::Lost { key, missing } => write!(out, "{key} was acknowledged, but {missing}"),
            Self::Untrue { key, said } => write!(out, "{key} was done, but its client was told: {said}"),
            Self::Contradiction { key, told } => {
                write!(out, "{key} has answers that exclude each other: {told:?}")
            }
            Self::WrongClient(what) => write!(out, "wrong client: {what}"),
            Self::Unanswered { key } => write!(out, "{key} was never answered"),
            Self::Ledger { key, what } => write!(out, "{key}: {what}"),
        }
    }
}

/// How many answers of each kind there were.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub asked: usize,
    pub done: usize,
    pub unknown: usize,
    pub not_done: usize,
}

/// Counts the last answers.
pub fn count(evidence: &Evidence) -> Counts {
    let mut counts = Counts { asked: evidence.asks.len(), ..Counts::default() };
    for ask in evidence.asks.values() {
        match ask.told.last() {
            Some(Told::Done(_)) => counts.done += 1,
            Some(Told::Unknown) => counts.unknown += 1,
            Some(Told::NotDone(_)) => counts.not_done += 1,
            None => {}
        }
    }
    counts
}

/// Every promise that was not kept.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut effects: BTreeMap<&str, Vec<&Effect>> = BTreeMap::new();
    for effect in &evidence.effects {
        effects.entry(&effect.key).or_default().push(effect);
    }
    let mut found: Vec<_> = evidence.strays.iter().cloned().map(Violation::WrongClient).collect();
    for (key, done) in &effects {
        if done.len() > 1 {
            let rows = evidence.calls.iter().filter(|call| call.key == **key);
            let recorded = rows.map(|call| call.is_ok).collect();
            found.push(Violation::Twice { key: (*key).into(), times: done.len(), recorded });
        }
        if !evidence.asks.contains_key(*key) {
            let what = format!("{key} was done for {}, and no client asked for it", done[0].session);
            found.push(Violation::WrongClient(what));
        }
    }
    for (key, ask) in &evidence.asks {
        let done = effects.get(key.as_str()).map_or(&[][..], Vec::as_slice);
        check_ask(key, ask, done, evidence, &mut found);
    }
    for call in &evidence.calls {
        check_call(call, &effects, evidence, &mut found);
    }
    found
}

fn check_ask(key: &str, ask: &Ask, done: &[&Effect], evidence: &Evidence, found: &mut Vec<Violation>) {
    if ask.told.is_empty() {
        found.push(Violation::Unanswered { key: key.into() });
    }
    let has = |what: fn(&Told) -> bool| ask.told.iter().any(what);
    let is_done = has(|told| matches!(told, Told::Done(_)));
    // First unknown and later known is honest; the other way round something was lost on the way.
    let first_done = ask.told.iter().position(|told| matches!(told, Told::Done(_)));
    let is_retracted = first_done.is_some_and(|first| first + 1 < ask.told.len())
        && !matches!(ask.told.last(), Some(Told::Done(_)));
    if is_retracted || (is_done && has(|told| matches!(told, Told::NotDone(_)))) {
        found.push(Violation::Contradiction { key: key.into(), told: ask.told.clone() });
    }
    for told in &ask.told {
        match told {
            Told::NotDone(said) if !done.is_empty() => {
                found.push(Violation::Untrue { key: key.into(), said: said.clone() });
            }
            Told::Done(Some(receipt))
                if !done.is_empty() && done.iter().all(|effect| effect.receipt != *receipt) =>
            {
                let of = evidence.effects.iter().find(|effect| effect.receipt == *receipt);
                let of = of.map_or("nothing", |effect| effect.key.as_str());
                found.push(Violation::WrongClient(format!("{key} was answered with the receipt of {of}")));
            }
            _ => {}
        }
    }
    let mut lost = |missing| found.push(Violation::Lost { key: key.into(), missing });
    if is_done && done.is_empty() {
        lost("the outside world knows nothing of it");
    }
    if is_done && !evidence.values.contains_key(key) {
        lost("the value that is stored with its record is missing");
    }
    if is_done && !evidence.calls.iter().any(|call| call.key == key && call.is_ok) {
        lost("the ledger has no record of it");
    }
}

fn check_call(
    call: &LedgerCall,
    effects: &BTreeMap<&str, Vec<&Effect>>,
    evidence: &Evidence,
    found: &mut Vec<Violation>,
) {
    let key = &call.key;
    let ledger = |what| Violation::Ledger { key: key.clone(), what };
    if call.is_ok && !effects.contains_key(key.as_str()) {
        found.push(ledger("the ledger says that it was done, and the outside world knows nothing of it"));
    }
    if call.is_ok != evidence.values.contains_key(key)
        && evidence.calls.iter().filter(|other| other.key == *key).count() == 1
    {
        found.push(ledger("the record and the value that belongs to it are not both there"));
    }
    let sessions = effects.get(key.as_str()).into_iter().flatten().map(|effect| effect.session.as_str());
    if sessions.clone().any(|session| session != call.session) {
        found.push(Violation::WrongClient(format!(
            "{key} is recorded in {}, and was done in another session",
            call.session
        )));
    }
    let asked = evidence.asks.get(key).map(|ask| ask.session.as_str());
    if asked.is_some_and(|session| !session.is_empty() && session != call.session) {
        let client = owner_of(key);
        found.push(Violation::WrongClient(format!(
            "{client} asked for {key} in another session than {}",
            call.session
        )));
    }
}

#[cfg(test)]
mod tests;
