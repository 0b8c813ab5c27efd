//! What all sessions share.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use quarterdeck_contracts::handler::{CapabilityProvider, ToolFacts};
use quarterdeck_contracts::telemetry::Tracer;
use quarterdeck_contracts::{Calendar, Capability, Knowledge, Mode, Store};

use crate::audit::{AuditSink, NoAudit};
use crate::capabilities::Capabilities;
use crate::claim::RequiredClaim;
use crate::clock::{Clock, SteadyClock, SystemClock};
use crate::cluster_events::ClusterEvents;
use crate::confirmation::Deadlines;
use crate::metrics::Metrics;
use crate::ownership::{CLOCK_TOLERANCE, Node, NodeParts};
use crate::policy::Policy;
use crate::session::SessionCore;
use crate::tasks::Tasks;
use crate::topics::Topics;
use crate::voice_sessions::VoiceSessions;

/// Gets a copy of what handlers log, for an operator at a terminal.
pub type LogSink = Arc<dyn Fn(&str) + Send + Sync>;

/// What an [`crate::Orchestrator`] is made of.
pub struct RuntimeParts {
    /// Keeps what outlives a process.
    pub store: Arc<dyn Store>,
    /// Limits and times.
    pub policy: Policy,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Takes audit events.
    pub audit: Arc<dyn AuditSink>,
    /// Counts calls and sessions.
    pub metrics: Arc<Metrics>,
    /// Takes spans; switched off unless it is given.
    pub tracer: Tracer,
    /// The site's calendar, if it has one.
    pub calendar: Option<Arc<dyn Calendar>>,
    /// The claim that a client needs to see the details of events that it has not booked. Absent: no client sees them.
    pub calendar_details_claim: Option<RequiredClaim>,
    /// The claim that a client needs to move and cancel events that it has not booked. Absent: no client does.
    pub calendar_manage_claim: Option<RequiredClaim>,
    /// The knowledge base, if there is one.
    pub knowledge: Option<Arc<dyn Knowledge>>,
    /// What answers for further capabilities, or for built-in ones in another way.
    pub capabilities: Vec<Arc<dyn CapabilityProvider>>,
    /// Configuration keys that tools may require.
    pub config_keys: BTreeSet<String>,
    /// Lists of topics that need the user's approval, where a tool names one.
    pub topics: Topics,
    /// Gets a copy of what handlers log.
    pub log_sink: Option<LogSink>,
    /// This process among those that share the store. Absent: it is alone on its store.
    pub node: Option<NodeParts>,
}

impl RuntimeParts {
    /// The defaults around a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            policy: Policy::default(),
            clock: Arc::new(SystemClock),
            audit: Arc::new(NoAudit),
            metrics: Arc::default(),
            tracer: Tracer::default(),
            calendar: None,
            calendar_details_claim: None,
            calendar_manage_claim: None,
            knowledge: None,
            capabilities: Vec::new(),
            config_keys: BTreeSet::new(),
            topics: Topics::default(),
            log_sink: None,
            node: None,
        }
    }
}

/// What all sessions share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) policy: Policy,
    pub(crate) clock: Arc<dyn Clock>,
    /// The same clock for everything that expires.
    pub(crate) steady: SteadyClock,
    pub(crate) deadlines: Deadlines,
    pub(crate) audit: Arc<dyn AuditSink>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) capabilities: Capabilities,
    pub(crate) site: SiteFacts,
    pub(crate) voice_sessions: VoiceSessions,
    pub(crate) tasks: Tasks,
    pub(crate) events: ClusterEvents,
    pub(crate) blank_tool: BlankTool,
    /// Absent where this process is alone on its store.
    pub(crate) node: Option<Node>,
    live: Mutex<HashMap<Arc<str>, Weak<SessionCore>>>,
}

/// What differs between servers: what the gates are told of this one, and who reads along.
pub(crate) struct SiteFacts {
    /// Capabilities and configuration keys that are there.
    pub(crate) present: Arc<BTreeSet<String>>,
    pub(crate) topics: Arc<Topics>,
    pub(crate) log_sink: Option<LogSink>,
    pub(crate) tracer: Tracer,
}

/// The tool's part of a call's facts before the registry has filled it in.
pub(crate) struct BlankTool {
    pub(crate) facts: Arc<ToolFacts>,
    pub(crate) capabilities: Arc<[Capability]>,
}

impl Shared {
    pub(crate) fn new(parts: RuntimeParts) -> Self {
        let claims = (parts.calendar_details_claim, parts.calendar_manage_claim);
        let mut capabilities = Capabilities::new(parts.calendar, claims.0, claims.1, parts.knowledge);
        parts.capabilities.into_iter().for_each(|provider| capabilities.register(provider));
        let mut present = parts.config_keys;
        present.extend(capabilities.names().chain(["tools", "moderation"]).map(str::to_owned));
        let no_tool = ToolFacts { id: "".into(), version: "".into(), idempotent: false };
        let node = parts.node.map(|node| Node::new(node, &*parts.clock));
        parts.metrics.follow_audit(parts.audit.lost_lines());
        if let Some(node) = &node {
            parts.metrics.name_node(&node.name);
        }
        Self {
            store: parts.store,
            policy: parts.policy,
            steady: SteadyClock::new(parts.clock.clone()),
            deadlines: Deadlines::default(),
            clock: parts.clock,
            audit: parts.audit,
            metrics: parts.metrics,
            capabilities,
            site: SiteFacts {
                present: Arc::new(present),
                topics: Arc::new(parts.topics),
                log_sink: parts.log_sink,
                tracer: parts.tracer,
            },
            voice_sessions: VoiceSessions::default(),
            tasks: Tasks::default(),
            events: ClusterEvents::default(),
            blank_tool: BlankTool { facts: Arc::new(no_tool), capabilities: Arc::new([]) },
            node,
            live: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Weak<SessionCore>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<SessionCore>> {
        self.lock().get(id).and_then(Weak::upgrade)
    }

    /// Lists a session, unless there is one of its id, which is returned.
    pub(crate) fn register(&self, core: &Arc<SessionCore>) -> Option<Arc<SessionCore>> {
        let mut live = self.lock();
        let first = live.get(&core.id).and_then(Weak::upgrade);
        if first.is_none() {
            live.insert(core.id.clone(), Arc::downgrade(core));
        }
        first
    }

    pub(crate) fn live_sessions(&self) -> Vec<Arc<SessionCore>> {
        self.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Forgets a session that has ended or is another node's, unless another one of its id is listed.
    pub(crate) fn forget(&self, core: &SessionCore) {
        let mut live = self.lock();
        if live.get(&core.id).is_some_and(|listed| std::ptr::eq(listed.as_ptr(), core)) {
            live.remove(&core.id);
        }
    }

    /// Forgets a session that was dropped, unless it was resumed in the meantime.
    pub(crate) fn forget_dropped(&self, id: &str) {
        let mut live = self.lock();
        if live.get(id).is_some_and(|core| core.strong_count() == 0) {
            live.remove(id);
        }
    }

    /// How long after its time something counts as over that another node may have dated.
    pub(crate) fn clock_tolerance_ms(&self) -> u64 {
        self.node.as_ref().map_or(0, |_| CLOCK_TOLERANCE.as_millis() as u64)
    }

    /// Whether a session of this process was left for too long. One with a task waits for it.
    pub(crate) fn has_timed_out(&self, core: &SessionCore, now_ms: u64) -> bool {
        if self.tasks.has_any_of(&core.id) {
            return false;
        }
        let idle = now_ms.saturating_sub(core.seen_ms());
        let gone = core.disconnected_since().map(|since| now_ms.saturating_sub(since));
        idle > self.policy.idle_timeout.as_millis() as u64
            || gone.is_some_and(|gone| gone > self.resume_timeout_ms(core.mode))
    }

    /// How long a session without a client is kept open.
    pub(crate) fn resume_timeout_ms(&self, mode: Mode) -> u64 {
        let timeout = match mode {
            Mode::Voice => self.policy.resume_timeout,
            Mode::Text => self.policy.idle_timeout,
        };
        timeout.as_millis() as u64
    }
}
