//! Google Calendar as a backend (API v3).
//!
//! An event is inserted under an id that is made from its call, so that a booking whose answer was lost is found instead of
//! made again. The client who booked it is a private property of the event. Google tells attendees itself, and makes links
//! to Meet when it is asked to.

mod calendar;
mod change;
mod client;
mod convert;
mod credentials;
mod error_reply;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use tokio::sync::Mutex;

use crate::fault::fault;
use crate::http::{AddressError, HttpClient, check_address};
use crate::oauth::{AuthorizedClient, TokenSource, WallClock};
use client::GoogleClient;

pub use credentials::{CredentialsError, GoogleCredentials};

pub(crate) const SERVICE: &str = "Google Calendar";
pub const GOOGLE_BASE_URL: &str = "https://www.googleapis.com/calendar/v3";

/// A page of events has a few hundred kilobytes.
const MAX_BODY_BYTES: usize = 8 << 20;

#[derive(Debug, Clone)]
pub struct GoogleConfig {
    /// What the calendar is called here: `primary`.
    pub name: String,
    /// What Google calls it: `primary`, or an address like `…@group.calendar.google.com`.
    pub calendar_id: String,
    pub base_url: String,
    pub credentials: GoogleCredentials,
    /// IANA name of the zone in which whole days are meant.
    pub time_zone: String,
    /// For one request and its whole answer.
    pub timeout: Duration,
    pub send_updates: SendUpdates,
    /// Whether a booking that asks for a video call gets a link to Google Meet.
    pub meet: bool,
}

/// Whether Google tells attendees of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SendUpdates {
    #[default]
    All,
    None,
}

impl SendUpdates {
    fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::None => "none",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum GoogleConfigError {
    #[error("the base URL cannot be used: {0}")]
    BaseUrl(#[from] AddressError),
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error("{0:?} is not a known IANA time zone; write it like Europe/Berlin")]
    TimeZone(String),
    #[error("name the calendar as Google does: `primary`, or its address")]
    CalendarId,
    #[error("no HTTP client could be built")]
    Client(#[source] reqwest::Error),
}

/// One calendar of a Google account.
#[derive(Clone)]
pub struct GoogleCalendar(Arc<GoogleCore>);

struct GoogleCore {
    name: String,
    client: GoogleClient,
    zone: TimeZone,
    send_updates: SendUpdates,
    meet: bool,
    /// Held from the check that a time is free to the change, so that of two bookings of one hour only one is made.
    changes: Mutex<()>,
}

impl GoogleCalendar {
    pub fn new(config: &GoogleConfig, clock: WallClock) -> Result<Self, GoogleConfigError> {
        let base = check_address(&config.base_url)?;
        if matches!(config.calendar_id.trim(), "" | "." | "..") {
            return Err(GoogleConfigError::CalendarId);
        }
        let zone = TimeZone::get(&config.time_zone)
            .map_err(|_| GoogleConfigError::TimeZone(config.time_zone.clone()))?;
        let (token_url, grant) = config.credentials.grant()?;
        let token_url = check_address(&token_url).map_err(CredentialsError::TokenUrl)?;
        let token_http = HttpClient::new(&config.name, config.timeout, MAX_BODY_BYTES)
            .map_err(GoogleConfigError::Client)?;
        let http = HttpClient::new(&config.name, config.timeout, MAX_BODY_BYTES)
            .map_err(GoogleConfigError::Client)?;
        let tokens = TokenSource::new(SERVICE, token_http, token_url, grant, clock);
        let calendar_id = config.calendar_id.trim().to_owned();
        Ok(Self(Arc::new(GoogleCore {
            name: config.name.clone(),
            client: GoogleClient { service: AuthorizedClient::new(http, tokens), base, calendar_id },
            zone,
            send_updates: config.send_updates,
            meet: config.meet,
            changes: Mutex::new(()),
        })))
    }
}

fn failed(code: CapabilityErrorCode, message: impl std::fmt::Display) -> CapabilityError {
    fault(SERVICE, code, message)
}
