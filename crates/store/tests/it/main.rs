//! Both engines, by what every store promises and by what each promises besides.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod memory;
mod model;
mod overlay;
#[cfg(all(feature = "postgres", unix))]
mod postgres;
mod sealed;
mod sqlite;
