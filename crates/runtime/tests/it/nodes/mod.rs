//! Several nodes on one store: who has a session, and what the others may not do.

mod fencing;
mod hand_over;
mod limits;
mod membership;
mod postgres;
mod takeover_points;
mod tasks;
mod world;
