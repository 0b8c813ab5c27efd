//! The decision about one call.

use quarterdeck_contracts::Mode;
use serde::Serialize;

/// A silence that is not worth a word: it is over before the word is.
const MIN_SOFT_LIMIT_MS: u64 = 250;

/// What is known about a call before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyFacts {
    pub mode: Mode,
    /// Whether another tool makes the call, and waits for it.
    pub is_nested: bool,
    /// Whether the tool controls the session. Such a call is never refused.
    pub is_control: bool,
    pub estimate: LatencyEstimate,
    /// How long the call should take.
    pub call_limit_ms: Option<u64>,
    /// How long all calls of the turn should take together.
    pub turn_limit_ms: Option<u64>,
    /// How long the user is kept waiting by the calls of a turn at the most.
    pub max_wait_ms: Option<u64>,
    /// How long calls of the turn have taken so far.
    pub used_ms: u64,
    /// After how long the call becomes a task; zero for one that always is, `None` for one that cannot be.
    pub background_after_ms: Option<u64>,
}

/// How long a call will probably take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyEstimate {
    pub p50_ms: u64,
    pub p95_ms: u64,
    pub source: EstimateSource,
}

/// Where an estimate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EstimateSource {
    /// The tool's last calls.
    Measured,
    /// Calls of the tool that are some time ago. It may have become faster since.
    Outdated,
    /// The latency budget in the tool's definition.
    Declared,
}

/// How a call is waited for, in the order in which users notice it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// The user waits.
    Inline,
    /// The user waits, and hears a short sentence at once.
    Filler,
    /// The call is answered at once, and its result is delivered later.
    Background,
    /// The call does not start.
    Refuse,
}

/// Why a call is waited for as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleReason {
    WithinSoftLimit,
    /// A few calls take longer, and get their filler when they do.
    UsuallyWithinSoftLimit,
    OverSoftLimit,
    /// The tool says so.
    AlwaysBackground,
    OverWait,
    /// It would be refused if it had been measured lately. So it runs, and is measured.
    NotMeasuredLately,
    /// Session control is never refused.
    Control,
}

/// A decision with the figures that it was made from, for the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledCall {
    pub schedule: Schedule,
    pub reason: ScheduleReason,
    pub p50_ms: u64,
    pub p95_ms: u64,
    pub estimate: EstimateSource,
    /// From here on the user notices the silence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_limit_ms: Option<u64>,
    /// How long the user can be kept waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
}

/// Whether it is decided how a call is waited for. Only a caller waits in silence: calls of text sessions, and those that a
/// tool makes, are not scheduled.
pub fn is_scheduled(mode: Mode, is_nested: bool) -> bool {
    mode == Mode::Voice && !is_nested
}

/// Decides how a call is waited for; nothing for one that is not scheduled.
pub fn schedule(facts: &LatencyFacts) -> Option<ScheduledCall> {
    if !is_scheduled(facts.mode, facts.is_nested) {
        return None;
    }
    let LatencyEstimate { p50_ms, p95_ms, source } = facts.estimate;
    let (soft_limit_ms, left_ms) = (facts.soft_limit_ms(), facts.left_ms());
    let (schedule, reason) = facts.decide(soft_limit_ms, left_ms);
    Some(ScheduledCall { schedule, reason, p50_ms, p95_ms, estimate: source, soft_limit_ms, left_ms })
}

impl LatencyFacts {
    fn decide(&self, soft_limit_ms: Option<u64>, left_ms: Option<u64>) -> (Schedule, ScheduleReason) {
        let LatencyEstimate { p50_ms, p95_ms, source } = self.estimate;
        let exceeds = |limit_ms: Option<u64>| limit_ms.is_some_and(|limit_ms| p50_ms > limit_ms);
        let is_noticed = exceeds(soft_limit_ms);
        match self.background_after_ms {
            Some(0) => return (Schedule::Background, ScheduleReason::AlwaysBackground),
            // It would become a task after that time anyway.
            Some(_) if exceeds(self.background_after_ms) || (is_noticed && exceeds(left_ms)) => {
                return (Schedule::Background, ScheduleReason::OverWait);
            }
            Some(_) | None => {}
        }
        if !is_noticed {
            let is_sure = soft_limit_ms.is_none_or(|limit_ms| p95_ms <= limit_ms);
            let reason = match is_sure {
                true => ScheduleReason::WithinSoftLimit,
                false => ScheduleReason::UsuallyWithinSoftLimit,
            };
            return (Schedule::Inline, reason);
        }
        match (exceeds(left_ms), source) {
            (false, _) => (Schedule::Filler, ScheduleReason::OverSoftLimit),
            (true, _) if self.is_control => (Schedule::Filler, ScheduleReason::Control),
            (true, EstimateSource::Measured) => (Schedule::Refuse, ScheduleReason::OverWait),
            (true, _) => (Schedule::Filler, ScheduleReason::NotMeasuredLately),
        }
    }

    /// From when on the user notices the silence.
    fn soft_limit_ms(&self) -> Option<u64> {
        let turn_left_ms = self.turn_limit_ms.map(|limit_ms| limit_ms.saturating_sub(self.used_ms));
        let limit_ms = [self.call_limit_ms, turn_left_ms, self.left_ms()].into_iter().flatten().min();
        limit_ms.map(|limit_ms| limit_ms.max(MIN_SOFT_LIMIT_MS))
    }

    /// How long the user can still be kept waiting in this turn.
    fn left_ms(&self) -> Option<u64> {
        self.max_wait_ms.map(|max_ms| max_ms.saturating_sub(self.used_ms))
    }
}

impl LatencyEstimate {
    /// What the author of a tool has said. A budget is what a call should not exceed, so half of it is what one takes.
    pub fn declared(latency_budget_ms: u64) -> Self {
        Self { p50_ms: latency_budget_ms / 2, p95_ms: latency_budget_ms, source: EstimateSource::Declared }
    }
}

impl Schedule {
    pub const ALL: [Self; 4] = [Self::Inline, Self::Filler, Self::Background, Self::Refuse];

    /// The name in metrics and traces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Filler => "filler",
            Self::Background => "background",
            Self::Refuse => "refuse",
        }
    }
}
