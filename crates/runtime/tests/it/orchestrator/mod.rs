//! The orchestrator, from a transport's side.

mod blocks;
mod budgets;
mod calls;
mod chaos;
mod confirmations;
mod crashing_store;
mod expiry;
pub(crate) mod fixture;
mod interruptions;
mod isolation;
mod log;
mod lost_answers;
mod messages;
mod other_nodes;
mod other_nodes_postgres;
mod policy;
mod records;
mod resumption;
mod resumption_reads;
mod scheduling;
mod secrets;
mod slow_arguments;
mod slow_store;
mod spoken;
mod tasks;
mod upstreams;
mod warnings;
