//! Runs tools: an artifact is loaded and verified once, then each call passes the gates, is executed and answered.
//!
//! It knows no HTTP, no JavaScript engine and no model: hosts, stores and calendars come in as trait objects, and
//! nothing here knows text from voice beyond the mode of a session.

pub mod audit;
mod blocks;
mod call;
mod claim;
mod clock;
mod confirmation;
mod envelope;
mod execute;
pub mod gates;
mod guard;
mod hosts;
mod judging;
mod ledger;
mod metrics;
mod native;
mod operate;
mod orchestrator;
mod policy;
mod rates;
mod redact;
mod registry;
mod session;
mod state;
mod voices;

pub use blocks::{Block, block_of, blocks, lift_block};
pub use call::Call;
pub use claim::{NotAClaim, RequiredClaim};
pub use clock::{Clock, SystemClock};
pub use ledger::Phase;
pub use metrics::{Figures, Metrics, Moment, Spread, ToolFigures, host_health_json, host_health_prometheus};
pub use native::NativeHost;
pub use operate::{
    ClientSummary, Recent, SessionSummary, clients, end_stored_session, erase_client, recent_sessions,
    session, session_ids, sessions,
};
pub use orchestrator::{Client, Orchestrator, Parts, SessionError, Watch, is_id, random_hex};
pub use policy::{Budgets, Policy};
pub use registry::{Hosts, LoadError, LoadProblem, LoadedTool, NotBuilt, Registry, ReloadError, Snapshot};
pub use session::{
    Answer, Asking, Batch, ClientEvent, Connection, Delivered, Reply, Session, TurnStart, Why,
};
pub use state::{PendingEnd, SessionState};
