//! Several versions of the registry at once: which session gets which, and that it keeps it.

mod activating;
mod bundles;
mod following;
mod nodes;
mod pinning;
mod property;
mod restarting;
mod retiring;
mod under_load;
pub(crate) mod world;
