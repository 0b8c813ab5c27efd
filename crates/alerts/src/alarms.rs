//! Rules that hold, and since when.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::history::History;
use crate::rule::{Rule, Rules, Severity};
use crate::samples::Labels;

/// How many alarms there may be at a time. Beyond that the first ones say enough.
const MAX_ALARMS: usize = 500;

/// Evaluates the rules of a server.
#[derive(Debug)]
pub struct Alarms {
    rules: Vec<Rule>,
    evaluation: Mutex<Evaluation>,
}

#[derive(Debug)]
struct Evaluation {
    history: History,
    /// By rule, in their order, and labels.
    held: BTreeMap<(usize, Labels), Held>,
}

/// A rule that holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    since_ms: u64,
    value: f64,
    state: AlarmState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AlarmState {
    /// It holds, but not for long enough.
    Pending,
    Firing,
    /// An operator has seen it. It is told no more until it has ended and holds again.
    Lifted,
}

/// One alarm.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Alarm {
    /// The rule and its labels: `tool_errors`, or `tool_errors:tool=kb_search`.
    pub id: String,
    pub rule: String,
    pub severity: Severity,
    pub summary: String,
    pub remedy: String,
    pub labels: BTreeMap<String, String>,
    /// What was compared, as it is now.
    pub value: f64,
    /// Milliseconds since 1970.
    pub since_ms: u64,
    pub state: AlarmState,
}

/// What has become of an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AlarmEvent {
    Fired,
    /// It does not hold any more.
    Resolved,
    /// An operator has lifted it.
    Lifted,
}

impl AlarmEvent {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Resolved => "resolved",
            Self::Lifted => "lifted",
        }
    }
}

/// An alarm that has changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AlarmChange {
    pub event: AlarmEvent,
    pub alarm: Alarm,
}

impl Default for Alarms {
    fn default() -> Self {
        Self::new(Rules::default())
    }
}

impl Alarms {
    pub fn new(rules: Rules) -> Self {
        let rules = rules.rules;
        let history = History::new(&rules);
        Self { rules, evaluation: Mutex::new(Evaluation { history, held: BTreeMap::new() }) }
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Takes the text of `/metrics` at a time, and tells which alarms have begun and ended.
    pub fn evaluate(&self, at_ms: u64, metrics: &str) -> Vec<AlarmChange> {
        let mut evaluation = self.lock();
        evaluation.history.add(at_ms, metrics);
        let mut changes = Vec::new();
        for (place, rule) in self.rules.iter().enumerate() {
            let holding = evaluation.history.holding(&rule.when);
            evaluation.end(place, rule, &holding, &mut changes);
            for (labels, value) in holding {
                changes.extend(evaluation.hold(place, rule, labels, value, at_ms));
            }
        }
        changes
    }

    /// All alarms, pending ones too: the worst first, then by age.
    pub fn list(&self) -> Vec<Alarm> {
        let evaluation = self.lock();
        let held = evaluation.held.iter();
        let mut alarms: Vec<_> =
            held.map(|((place, labels), held)| alarm(&self.rules[*place], labels, *held)).collect();
        alarms.sort_by_key(|alarm| (alarm.severity == Severity::Warning, alarm.since_ms));
        alarms
    }

    /// Lifts an alarm that fires; `None` if there is none with this id.
    pub fn lift(&self, id: &str) -> Option<AlarmChange> {
        let mut evaluation = self.lock();
        let mut held = evaluation.held.iter_mut();
        let ((place, labels), held) = held.find(|((place, labels), held)| {
            held.state == AlarmState::Firing && alarm_id(&self.rules[*place], labels) == id
        })?;
        held.state = AlarmState::Lifted;
        Some(AlarmChange { event: AlarmEvent::Lifted, alarm: alarm(&self.rules[*place], labels, *held) })
    }

    fn lock(&self) -> MutexGuard<'_, Evaluation> {
        self.evaluation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Evaluation {
    /// Ends the alarms of a rule that does not hold any more.
    fn end(
        &mut self,
        place: usize,
        rule: &Rule,
        holding: &BTreeMap<Labels, f64>,
        changes: &mut Vec<AlarmChange>,
    ) {
        self.held.retain(|(of, labels), held| {
            if *of != place || holding.contains_key(labels) {
                return true;
            }
            if held.state == AlarmState::Firing {
                changes.push(AlarmChange { event: AlarmEvent::Resolved, alarm: alarm(rule, labels, *held) });
            }
            false
        });
    }

    fn hold(
        &mut self,
        place: usize,
        rule: &Rule,
        labels: Labels,
        value: f64,
        at_ms: u64,
    ) -> Option<AlarmChange> {
        let key = (place, labels);
        if self.held.len() >= MAX_ALARMS && !self.held.contains_key(&key) {
            return None;
        }
        let labels = key.1.clone();
        let held =
            self.held.entry(key).or_insert(Held { since_ms: at_ms, value, state: AlarmState::Pending });
        held.value = value;
        let is_long_enough = at_ms.saturating_sub(held.since_ms) >= rule.for_seconds * 1_000;
        if held.state != AlarmState::Pending || !is_long_enough {
            return None;
        }
        held.state = AlarmState::Firing;
        Some(AlarmChange { event: AlarmEvent::Fired, alarm: alarm(rule, &labels, *held) })
    }
}

fn alarm(rule: &Rule, labels: &Labels, held: Held) -> Alarm {
    Alarm {
        id: alarm_id(rule, labels),
        rule: rule.id.clone(),
        severity: rule.severity,
        summary: rule.summary.clone(),
        remedy: rule.remedy.clone(),
        labels: labels.clone(),
        value: held.value,
        since_ms: held.since_ms,
        state: held.state,
    }
}

fn alarm_id(rule: &Rule, labels: &Labels) -> String {
    let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if labels.is_empty() { rule.id.clone() } else { format!("{}:{}", rule.id, labels.join(",")) }
}

#[cfg(test)]
mod tests;
