//! The requests: make, find, change and delete a meeting.

use std::time::SystemTime;

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Url};
use serde_json::Value;

use super::wire::{ErrorReply, Meeting, MeetingPage, MeetingRequest, NewMeeting};
use super::{SERVICE, failed};
use crate::credential::Credential;
use crate::fault::rate_limited;
use crate::http::{Effect, HttpAnswer, HttpClient, retry_after};
use crate::oauth::{AuthorizedClient, Grant, NoReply, TokenRequest, below};

const DEFAULT_RETRY_SECONDS: f64 = 5.0;
const MAX_PAGES: usize = 5;
/// The token lacks a scope; Zoom says so with status 400.
const MISSING_SCOPE: i64 = 4711;

pub(super) struct AccountCredentials {
    pub(super) account_id: String,
    pub(super) client_id: String,
    pub(super) client_secret: Credential,
}

impl Grant for AccountCredentials {
    fn request(&self, _: SystemTime) -> Result<TokenRequest, CapabilityError> {
        let form =
            vec![("grant_type", "account_credentials".to_owned()), ("account_id", self.account_id.clone())];
        Ok(TokenRequest { form, basic: Some((self.client_id.clone(), self.client_secret.clone())) })
    }
}

pub(super) struct ZoomClient {
    pub(super) service: AuthorizedClient,
    pub(super) base: Url,
    pub(super) user: String,
}

#[derive(Debug)]
pub(super) enum CreateError {
    Refused(CapabilityError),
    /// A meeting may have been made.
    Unknown(String),
}

impl ZoomClient {
    /// Makes a meeting, and returns the address for attendees.
    pub(super) async fn create(&self, meeting: &NewMeeting) -> Result<String, CreateError> {
        let url = below(&self.base, ["users", &self.user, "meetings"]);
        let body = serde_json::to_value(meeting).unwrap_or_default();
        let reply = self.send(Method::POST, url, Some(&body)).await.map_err(|no_reply| match no_reply {
            NoReply::Lost(why) => CreateError::Unknown(why),
            nothing_sent => CreateError::Refused(nothing_sent.into_fault(SERVICE)),
        })?;
        match reply.status.as_u16() {
            200..=299 => {
                let meeting: Meeting = serde_json::from_slice(&reply.body).unwrap_or_default();
                join_url(meeting).ok_or_else(|| CreateError::Unknown("the answer has no link".into()))
            }
            status @ (408 | 500..=599) => {
                Err(CreateError::Unknown(format!("the service failed (HTTP {status})")))
            }
            _ => Err(CreateError::Refused(refusal(&reply))),
        }
    }

    /// Finds a meeting to come by its agenda.
    pub(super) async fn find(&self, agenda: &str) -> Result<Option<String>, CapabilityError> {
        let mut next_page_token = String::new();
        for _ in 0..MAX_PAGES {
            let mut url = below(&self.base, ["users", &self.user, "meetings"]);
            url.query_pairs_mut().append_pair("type", "upcoming").append_pair("page_size", "300");
            if !next_page_token.is_empty() {
                url.query_pairs_mut().append_pair("next_page_token", &next_page_token);
            }
            let reply = self.ask(Method::GET, url, None).await?;
            let page: MeetingPage = serde_json::from_slice(&reply.body)
                .map_err(|_| transient("the answer is not what the API sends; check the base URL"))?;
            if let Some(found) = page.meetings.into_iter().find(|meeting| meeting.agenda == agenda) {
                return Ok(join_url(found));
            }
            next_page_token = page.next_page_token;
            if next_page_token.is_empty() {
                return Ok(None);
            }
        }
        Err(transient("there are too many meetings to look through"))
    }

    pub(super) async fn update(&self, id: u64, time: &MeetingRequest) -> Result<(), CapabilityError> {
        let body = serde_json::to_value(time).unwrap_or_default();
        let url = below(&self.base, ["meetings", &id.to_string()]);
        self.ask(Method::PATCH, url, Some(&body)).await.map(|_| ())
    }

    pub(super) async fn delete(&self, id: u64) -> Result<(), CapabilityError> {
        let url = below(&self.base, ["meetings", &id.to_string()]);
        self.ask(Method::DELETE, url, None).await.map(|_| ())
    }

    /// Asks for something that can be repeated without harm.
    async fn ask(
        &self,
        method: Method,
        url: Url,
        body: Option<&Value>,
    ) -> Result<HttpAnswer, CapabilityError> {
        let reply = self.send(method, url, body).await.map_err(|no_reply| no_reply.into_fault(SERVICE))?;
        if reply.status.is_success() { Ok(reply) } else { Err(refusal(&reply)) }
    }

    async fn send(&self, method: Method, url: Url, body: Option<&Value>) -> Result<HttpAnswer, NoReply> {
        let build = |http: &HttpClient| {
            let builder = http.request(method.clone(), url.clone());
            match body {
                Some(body) => builder.header(CONTENT_TYPE, "application/json").body(body.to_string()),
                None => builder,
            }
        };
        let effect = if method == Method::GET { Effect::Reads } else { Effect::Writes };
        self.service.send(effect, build).await
    }
}

/// The link, if it is one that a browser may be sent to.
fn join_url(meeting: Meeting) -> Option<String> {
    let url = Url::parse(&meeting.join_url).ok()?;
    (url.scheme() == "https" && meeting.join_url.len() <= 1_000).then_some(meeting.join_url)
}

fn refusal(reply: &HttpAnswer) -> CapabilityError {
    let code = serde_json::from_slice::<ErrorReply>(&reply.body).unwrap_or_default().code;
    let (kind, message) = match reply.status.as_u16() {
        429 => return rate_limited(SERVICE, retry_after(&reply.headers).unwrap_or(DEFAULT_RETRY_SECONDS)),
        400 if code == MISSING_SCOPE => (
            CapabilityErrorCode::AuthError,
            "the app lacks a scope; the operator must add the scopes of meetings to it".into(),
        ),
        401 | 403 => (
            CapabilityErrorCode::AuthError,
            format!("access was refused (code {code}); the operator must check the app"),
        ),
        404 => (CapabilityErrorCode::NotFound, "there is no such meeting or user".into()),
        status @ (408 | 500..=599) => {
            (CapabilityErrorCode::NotAvailable, format!("the service failed (HTTP {status}); try again"))
        }
        status => (
            CapabilityErrorCode::InvalidArgument,
            format!("the request was refused (HTTP {status}, code {code})"),
        ),
    };
    failed(kind, message)
}

fn transient(why: &str) -> CapabilityError {
    failed(CapabilityErrorCode::NotAvailable, format!("{why}; try again"))
}
