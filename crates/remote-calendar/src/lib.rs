//! Calendars that live elsewhere, behind the same trait as the one in our own store, and links to video calls.
//!
//! `http.rs` is the one way out: it limits time and sizes, follows no redirect, sends credentials over TLS only (or to
//! this machine), and tells a request that was never sent from one whose answer was lost.

mod caldav;
mod credential;
mod fault;
mod google;
mod http;
mod oauth;
mod zoom;

pub use caldav::{CalDavCalendar, CalDavConfig, SetUpError};
pub use credential::Credential;
pub use google::{
    CredentialsError, GOOGLE_BASE_URL, GoogleCalendar, GoogleConfig, GoogleConfigError, GoogleCredentials,
    SendUpdates,
};
pub use http::{AddressError, check_address};
pub use oauth::WallClock;
pub use zoom::{ZOOM_BASE_URL, ZOOM_TOKEN_URL, Zoom, ZoomConfig, ZoomConfigError};

#[cfg(feature = "fuzzing")]
pub use caldav::fuzz_multistatus;
