//! Calendars that live elsewhere, behind the same trait as the one in our own store.
//!
//! `http.rs` is the one way out: it limits time and sizes, follows no redirect, sends credentials over TLS only (or to
//! this machine), and tells a request that was never sent from one whose answer was lost.

mod caldav;
mod credential;
mod http;

pub use caldav::{CalDavCalendar, CalDavConfig, SetUpError};
pub use credential::Credential;
pub use http::{AddressError, check_address};

#[cfg(feature = "fuzzing")]
pub use caldav::fuzz_multistatus;
