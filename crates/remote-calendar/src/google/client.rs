//! The requests: `freeBusy.query` and `events.get`, `list`, `insert`, `patch` and `delete`.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use reqwest::header::{CONTENT_TYPE, IF_MATCH};
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::wire::{
    BusyPeriod, CalendarItem, EventPage, EventResource, EventTime, FreeBusyReply, FreeBusyRequest,
};
use super::{SERVICE, SendUpdates, error_reply, failed};
use crate::http::{Effect, HttpAnswer, HttpClient};
use crate::oauth::{AuthorizedClient, NoReply, below};

/// Google gives no more on a page.
const PAGE_SIZE: &str = "2500";
const MAX_PAGES: usize = 8;
/// Only what we read, so that a page stays small.
const EVENT_FIELDS: &str = "id,etag,status,summary,description,location,start,end,transparency,sequence,\
     attendees(email,self,responseStatus,resource),extendedProperties/private,hangoutLink,conferenceData";

pub(super) struct GoogleClient {
    pub(super) service: AuthorizedClient,
    pub(super) base: Url,
    pub(super) calendar_id: String,
}

/// Why a change was not made, or not seen to be made.
#[derive(Debug)]
pub(super) enum WriteError {
    /// It was not made.
    Refused(CapabilityError),
    /// The service failed, perhaps after it had made the change.
    Failed(String),
    /// There is no answer: the change may have been made, or be made yet.
    Lost(String),
}

/// A request without its credentials, so that it can be sent again with other ones.
struct ApiRequest {
    method: Method,
    url: Url,
    body: Option<Value>,
    if_match: Option<String>,
}

impl GoogleClient {
    /// When the calendar is busy between two moments.
    pub(super) async fn free_busy(
        &self,
        time_min: &str,
        time_max: &str,
    ) -> Result<Vec<BusyPeriod>, CapabilityError> {
        let items = [CalendarItem { id: &self.calendar_id }];
        let body = FreeBusyRequest { time_min, time_max, items };
        let url = below(&self.base, ["freeBusy"]);
        let mut reply: FreeBusyReply = self.read(ApiRequest::new(Method::POST, url).json(&body)).await?;
        // Asked for `primary`, Google may answer with the address that it stands for.
        let calendar = match reply.calendars.remove(&self.calendar_id) {
            None if reply.calendars.len() == 1 => reply.calendars.pop_first().map(|(_, calendar)| calendar),
            found => found,
        };
        match calendar {
            Some(calendar) if calendar.errors.is_empty() => Ok(calendar.busy),
            Some(calendar) => Err(error_reply::free_busy_fault(&calendar.errors)),
            None => {
                Err(failed(CapabilityErrorCode::NotAvailable, "free/busy has no answer for the calendar"))
            }
        }
    }

    /// The events that touch a window, recurring ones expanded, in the order of their start.
    pub(super) async fn list(
        &self,
        time_min: &str,
        time_max: &str,
    ) -> Result<Vec<EventResource>, CapabilityError> {
        let fields = format!("nextPageToken,items({EVENT_FIELDS})");
        let mut events = Vec::new();
        let mut page_token: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let mut url = self.events_url();
            url.query_pairs_mut()
                .append_pair("singleEvents", "true")
                .append_pair("orderBy", "startTime")
                .append_pair("timeMin", time_min)
                .append_pair("timeMax", time_max)
                .append_pair("maxResults", PAGE_SIZE)
                .append_pair("fields", &fields);
            if let Some(token) = &page_token {
                url.query_pairs_mut().append_pair("pageToken", token);
            }
            let page: EventPage = self.read(ApiRequest::new(Method::GET, url)).await?;
            events.extend(page.items);
            page_token = page.next_page_token;
            if page_token.is_none() {
                return Ok(events);
            }
        }
        // An incomplete answer would show busy time as free.
        let message = "the calendar holds too much in this window; ask for a shorter one";
        Err(failed(CapabilityErrorCode::InvalidArgument, message))
    }

    pub(super) async fn get(&self, id: &str) -> Result<EventResource, CapabilityError> {
        let mut url = self.event_url(id);
        url.query_pairs_mut().append_pair("fields", EVENT_FIELDS);
        self.read(ApiRequest::new(Method::GET, url)).await
    }

    pub(super) async fn insert(
        &self,
        event: &EventResource,
        updates: SendUpdates,
    ) -> Result<EventResource, WriteError> {
        let mut url = self.events_url();
        let version = if event.conference_data.is_some() { "1" } else { "0" };
        url.query_pairs_mut()
            .append_pair("conferenceDataVersion", version)
            .append_pair("sendUpdates", updates.as_str());
        self.write(ApiRequest::new(Method::POST, url).json(event)).await
    }

    /// Gives an event another time, if it still is the version that was seen.
    pub(super) async fn patch_time(
        &self,
        id: &str,
        etag: Option<&str>,
        (start, end): (&str, &str),
        updates: SendUpdates,
    ) -> Result<EventResource, WriteError> {
        let mut url = self.event_url(id);
        url.query_pairs_mut().append_pair("sendUpdates", updates.as_str());
        // An event of whole days has `date`, which must go.
        let time = |date_time: &str| json!({ "date": null, "dateTime": date_time });
        let body = json!({ "start": time(start), "end": time(end) });
        self.write(ApiRequest::new(Method::PATCH, url).json(&body).if_match(etag)).await
    }

    pub(super) async fn delete(
        &self,
        id: &str,
        etag: Option<&str>,
        updates: SendUpdates,
    ) -> Result<(), WriteError> {
        let mut url = self.event_url(id);
        url.query_pairs_mut().append_pair("sendUpdates", updates.as_str());
        self.change(ApiRequest::new(Method::DELETE, url).if_match(etag)).await.map(|_| ())
    }

    fn events_url(&self) -> Url {
        below(&self.base, ["calendars", &self.calendar_id, "events"])
    }

    fn event_url(&self, id: &str) -> Url {
        below(&self.base, ["calendars", &self.calendar_id, "events", id])
    }

    async fn read<T: DeserializeOwned>(&self, request: ApiRequest) -> Result<T, CapabilityError> {
        let reply = self.service.send(Effect::Reads, |http| request.build(http)).await;
        let reply = reply.map_err(|no_reply| no_reply.into_fault(SERVICE))?;
        if reply.status != StatusCode::OK {
            return Err(error_reply::refusal(&reply));
        }
        serde_json::from_slice(&reply.body).map_err(|_| {
            failed(
                CapabilityErrorCode::NotAvailable,
                "the answer is not what the API sends; check the base URL",
            )
        })
    }

    async fn write<T: DeserializeOwned>(&self, request: ApiRequest) -> Result<T, WriteError> {
        let reply = self.change(request).await?;
        serde_json::from_slice(&reply.body)
            .map_err(|_| WriteError::Failed("the answer is not what the API sends".into()))
    }

    async fn change(&self, request: ApiRequest) -> Result<HttpAnswer, WriteError> {
        let reply = self.service.send(Effect::Writes, |http| request.build(http)).await;
        let reply = reply.map_err(|no_reply| match no_reply {
            NoReply::Lost(why) => WriteError::Lost(why),
            nothing_sent => WriteError::Refused(nothing_sent.into_fault(SERVICE)),
        })?;
        match reply.status.as_u16() {
            200..=299 => Ok(reply),
            status @ (408 | 500..=599) => {
                Err(WriteError::Failed(format!("the service failed (HTTP {status})")))
            }
            _ => Err(WriteError::Refused(error_reply::refusal(&reply))),
        }
    }
}

impl ApiRequest {
    fn new(method: Method, url: Url) -> Self {
        Self { method, url, body: None, if_match: None }
    }

    fn json(self, body: &impl Serialize) -> Self {
        Self { body: Some(serde_json::to_value(body).unwrap_or_default()), ..self }
    }

    fn if_match(self, etag: Option<&str>) -> Self {
        Self { if_match: etag.filter(|etag| !etag.is_empty()).map(str::to_owned), ..self }
    }

    fn build(&self, http: &HttpClient) -> RequestBuilder {
        let mut builder = http.request(self.method.clone(), self.url.clone());
        if let Some(etag) = &self.if_match {
            builder = builder.header(IF_MATCH, etag);
        }
        match &self.body {
            Some(body) => builder.header(CONTENT_TYPE, "application/json").body(body.to_string()),
            None => builder,
        }
    }
}

impl EventTime {
    pub(super) fn at(date_time: &str) -> Self {
        Self { date: None, date_time: Some(date_time.to_owned()) }
    }
}
