//! Runs tools: an artifact is loaded and verified once, then each call passes the gates, is executed and answered.
//!
//! It knows no HTTP, no JavaScript engine and no model: hosts, stores and calendars come in as trait objects, and
//! nothing here knows text from voice beyond the mode of a session.

mod admin;
pub mod audit;
mod audit_quota;
mod blocks;
mod call;
mod capabilities;
mod claim;
mod clock;
mod cluster_events;
mod confirmation;
mod envelope;
mod feedback;
mod files;
pub mod gates;
mod guarded_context;
mod host_events;
mod ids;
pub mod latency;
mod ledger;
mod metrics;
mod native;
mod orchestrator;
mod ownership;
mod pipeline;
mod policy;
mod rate_limit;
mod recovery;
mod redact;
mod registry;
mod repin;
mod session;
mod shared;
mod state;
mod store_keys;
mod stored_values;
mod tasks;
mod topics;
mod upstream_events;
mod validation;
mod version_admin;
mod version_holders;
mod voice_sessions;

pub use admin::{
    ClientSummary, RecentSessions, SessionSummary, end_stored_session, erase_client, find_holder,
    find_session, list_clients, list_recent_sessions, list_session_ids, list_sessions,
};
pub use blocks::{Block, find_address_block, find_block, lift_block, list_blocks};
pub use call::Call;
pub use capabilities::{FileLimits, Images};
pub use claim::{NotAClaim, RequiredClaim};
pub use clock::{Clock, SystemClock};
pub use cluster_events::{NotificationHealth, topic};
pub use confirmation::{
    ConfirmationDecision, ConfirmationId, DecisionSource, MIN_SPOKEN_CONFIDENCE, OpenConfirmation,
    SpokenRefusal, SpokenWords, call_content,
};
pub use feedback::FeedbackEvent;
pub use files::{SessionFile, erase_files, find_file, read_file};
pub use ids::{is_valid_id, random_hex};
pub use ledger::{Phase, is_empty_result};
pub use metrics::{
    Counters, FirstAudioLatency, ForwardOutcome, LeaseEvent, McpOutcome, Metrics, MetricsSnapshot,
    ModelEvent, Percentiles, ToolCounters, UpstreamLatency, VersionCounters,
};
pub use native::NativeHost;
pub use orchestrator::{Client, Orchestrator, SessionError, ToolSource};
pub use ownership::{Holder, NodeParts, NodeView};
pub use pipeline::Batch;
pub use policy::{Budgets, Listen, Policy, SpokenConfirmation};
pub use registry::{
    Bundle, BundleError, BundleFolder, Candidate, ClaimRule, Hosts, LoadError, LoadProblem, LoadedTool,
    MAX_BUNDLE_BYTES, NotAPercentage, NotBuilt, OrganisationRule, Percent, Pin, PinReason, Registry,
    ReloadError, RequestedVersion, Rollout, RolloutError, Share, Snapshot, VersionError, VersionState,
    VersionView,
};
pub use session::{
    Answer, ClientEvent, ConfirmationMode, Connection, DeliveryReason, DeliveryReceipt, HeardReceipt, Reply,
    Session, TurnStart,
};
pub use shared::{LogSink, RuntimeParts};
pub use state::{PendingEnd, SessionState};
pub use stored_values::{StoredValue, StoredValues, ValueFilter, find_value, list_values};
pub use tasks::{
    RecoveredTasks, TaskCancellation, TaskList, TaskStatus, TaskSummary, find_stored_task, list_stored_tasks,
};
pub use topics::Topics;
pub use version_admin::{AllowedDigests, Audience, Retired, VersionAdmin, VersionSettings};
