//! TypeScript in, JavaScript out, at the same places.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod classes;
mod expressions;
mod hostile;
mod modules;
mod positions;
mod refusals;
mod statements;
mod world;
