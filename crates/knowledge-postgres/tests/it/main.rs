//! The base in a real database, of both versions.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world fails")]

mod building;
mod damage;
mod following;
mod meaning;
mod world;
