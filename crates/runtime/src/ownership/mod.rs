//! Which node has a session, where several share one store.
//!
//! | part | file |
//! | --- | --- |
//! | this process among the nodes: its row, its renewal, whether it may write | `node.rs` |
//! | which of the others live | `peers.rs` |
//! | the lease of a session | `lease.rs` |
//! | how every commit of a session proves it | `fencing.rs` |
//! | whether a session may be taken, and taking it | `claim.rs` |
//! | giving a session away | `hand_over.rs` |
//! | tasks whose node is gone | `orphans.rs` |
//! | chores that one node does for all | `chores.rs` |
//!
//! A process that is alone on its store has no node: then nothing here costs a row or a commit.

mod chores;
mod claim;
mod fencing;
mod hand_over;
mod lease;
mod node;
mod orphans;
mod peers;

use std::time::Duration;

pub use node::{NodeParts, NodeView};
pub use peers::Holder;

pub(crate) use claim::Claim;
pub(crate) use fencing::is_lease_conflict;
pub(crate) use lease::Lease;
pub(crate) use node::Node;

/// How far the clocks of nodes may be apart. What one node has dated is not taken to be over by another before that much
/// more time has passed.
pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_secs(10 * 60);
