//! Zoom meetings for appointments, through a server-to-server OAuth app.
//!
//! Zoom takes no key that would make a request unique. So a meeting carries the key of its booking in its agenda, links that
//! were made a moment ago are remembered, and a request whose answer was lost is looked for before it is given up.

mod client;
mod wire;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use quarterdeck_contracts::handler::{BoxFuture, CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{ConferenceProvider, ConferenceRequest};
use tokio::sync::Mutex;

use crate::credential::Credential;
use crate::fault::fault;
use crate::http::{AddressError, HttpClient, check_address};
use crate::oauth::{AuthorizedClient, TokenSource, WallClock};
use client::{AccountCredentials, CreateError, ZoomClient};
use wire::{MeetingRequest, NewMeeting};

pub(crate) const SERVICE: &str = "Zoom";
pub const ZOOM_BASE_URL: &str = "https://api.zoom.us/v2";
pub const ZOOM_TOKEN_URL: &str = "https://zoom.us/oauth/token";
/// For one request and its whole answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_BODY_BYTES: usize = 2 << 20;
/// A scheduled meeting, not a recurring one.
const SCHEDULED: u8 = 2;
const MAX_TOPIC_CHARS: usize = 200;
/// Enough for every attempt of the calls that run at one time.
const MAX_REMEMBERED: usize = 256;

#[derive(Debug, Clone)]
pub struct ZoomConfig {
    pub account_id: String,
    pub client_id: String,
    pub client_secret: Credential,
    /// Whose meetings they are: `me` is the owner of the app, others are named by their e-mail address.
    pub user: String,
    pub base_url: String,
    pub token_url: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ZoomConfigError {
    #[error("the address cannot be used: {0}")]
    Address(#[from] AddressError),
    #[error("name the user whose meetings they are: `me`, or an e-mail address")]
    User,
    #[error("no HTTP client could be built")]
    Client(#[source] reqwest::Error),
}

#[derive(Clone)]
pub struct Zoom(Arc<ZoomCore>);

struct ZoomCore {
    client: ZoomClient,
    /// Links by the key of their booking. Held while one is made, so that a second attempt waits for the first.
    made: Mutex<VecDeque<(Arc<str>, String)>>,
}

impl Zoom {
    pub fn new(config: &ZoomConfig, clock: WallClock) -> Result<Self, ZoomConfigError> {
        let base = check_address(&config.base_url)?;
        let token_url = check_address(&config.token_url)?;
        if matches!(config.user.trim(), "" | "." | "..") {
            return Err(ZoomConfigError::User);
        }
        let grant = Box::new(AccountCredentials {
            account_id: config.account_id.clone(),
            client_id: config.client_id.clone(),
            client_secret: config.client_secret.clone(),
        });
        let token_http =
            HttpClient::new(SERVICE, REQUEST_TIMEOUT, MAX_BODY_BYTES).map_err(ZoomConfigError::Client)?;
        let http =
            HttpClient::new(SERVICE, REQUEST_TIMEOUT, MAX_BODY_BYTES).map_err(ZoomConfigError::Client)?;
        let tokens = TokenSource::new(SERVICE, token_http, token_url, grant, clock);
        let service = AuthorizedClient::new(http, tokens);
        let client = ZoomClient { service, base, user: config.user.trim().to_owned() };
        Ok(Self(Arc::new(ZoomCore { client, made: Mutex::default() })))
    }
}

impl ConferenceProvider for Zoom {
    fn create(&self, request: ConferenceRequest) -> BoxFuture<Result<String, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move { core.create(request).await })
    }

    fn reschedule(&self, url: String, request: ConferenceRequest) -> BoxFuture<Result<(), CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move {
            let time = meeting_time(&request)?;
            core.client.update(meeting_id(&url)?, &time).await
        })
    }

    fn cancel(&self, url: String) -> BoxFuture<Result<(), CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move {
            match core.client.delete(meeting_id(&url)?).await {
                Err(fault) if fault.code == CapabilityErrorCode::NotFound => Ok(()),
                result => result,
            }
        })
    }
}

impl ZoomCore {
    async fn create(&self, request: ConferenceRequest) -> Result<String, CapabilityError> {
        let mut made = self.made.lock().await;
        if let Some((_, url)) = made.iter().find(|(key, _)| *key == request.key) {
            return Ok(url.clone());
        }
        let agenda = format!("Booking {}", request.key);
        let meeting = NewMeeting {
            topic: request.title.chars().filter(|c| !c.is_control()).take(MAX_TOPIC_CHARS).collect(),
            r#type: SCHEDULED,
            time: meeting_time(&request)?,
            agenda: agenda.clone(),
        };
        let url = match self.client.create(&meeting).await {
            Ok(url) => url,
            Err(CreateError::Refused(fault)) => return Err(fault),
            Err(CreateError::Unknown(why)) => match self.client.find(&agenda).await {
                Ok(Some(url)) => url,
                Ok(None) => {
                    let message = format!("{why}; no meeting was made, try again");
                    return Err(failed(CapabilityErrorCode::NotAvailable, message));
                }
                Err(_) => {
                    let message = format!("{why}; a meeting may have been made, which no event refers to");
                    return Err(failed(CapabilityErrorCode::OutcomeUnknown, message));
                }
            },
        };
        if made.len() == MAX_REMEMBERED {
            made.pop_front();
        }
        made.push_back((request.key, url.clone()));
        Ok(url)
    }
}

/// The number of a meeting in its address: `https://us02web.zoom.us/j/85746065432?pwd=…`.
fn meeting_id(url: &str) -> Result<u64, CapabilityError> {
    let id = url.split_once("/j/").map(|(_, rest)| rest.split(['?', '/', '#']).next().unwrap_or(rest));
    id.and_then(|id| id.parse().ok()).ok_or_else(|| {
        failed(
            CapabilityErrorCode::InvalidArgument,
            "the event's link is not one of a Zoom meeting; change it there",
        )
    })
}

fn meeting_time(request: &ConferenceRequest) -> Result<MeetingRequest, CapabilityError> {
    let rejected = |message: &str| failed(CapabilityErrorCode::InvalidArgument, message);
    let instant = |text: &str| {
        text.parse::<Timestamp>().map_err(|_| rejected("a time is not an RFC 3339 time with an offset"))
    };
    let (start, end) = (instant(&request.start)?, instant(&request.end)?);
    let seconds = end.duration_since(start).as_secs();
    if seconds <= 0 {
        return Err(rejected("start must be before end"));
    }
    let start = Timestamp::from_second(start.as_second()).unwrap_or(start);
    Ok(MeetingRequest {
        start_time: start.to_string(),
        // Begun minutes count.
        duration: (seconds as u64).div_ceil(60),
        timezone: "UTC",
    })
}

fn failed(code: CapabilityErrorCode, message: impl std::fmt::Display) -> CapabilityError {
    fault(SERVICE, code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_meeting_is_read_from_its_address() {
        assert_eq!(meeting_id("https://us02web.zoom.us/j/85746065432?pwd=abc").unwrap(), 85_746_065_432);
        assert_eq!(meeting_id("https://zoom.us/j/1").unwrap(), 1);
        for other in ["https://meet.example.com/abc", "https://zoom.us/j/../users", "https://zoom.us/j/", ""]
        {
            assert_eq!(meeting_id(other).unwrap_err().code, CapabilityErrorCode::InvalidArgument, "{other}");
        }
    }
}
