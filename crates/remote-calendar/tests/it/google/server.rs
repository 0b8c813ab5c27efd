//! Google's calendar API and token endpoint as they are documented, with one calendar and faults on demand.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::http_server::{Answer, Request, serve};

/// What goes wrong with the next request of a kind.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// An answer instead of doing it.
    Status(u16, &'static str, Option<&'static str>),
    /// This one is answered as usual.
    Nothing,
    /// The connection is cut and nothing is done.
    CutBefore,
    /// It is done, and then the connection is cut.
    CutAfter,
    /// It is done, and then the service fails.
    FailAfter(u16),
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) events: BTreeMap<String, Value>,
    /// By method and the end of the path: `POST events`.
    failures: VecDeque<(&'static str, Failure)>,
    pub(crate) requests: Vec<Request>,
    pub(crate) tokens: Vec<Request>,
    /// The last one that was granted is valid.
    granted: usize,
    revoked: bool,
    changes: u64,
    /// How often a new link is still pending when it is looked at.
    pub(crate) pending_links: u32,
    pub(crate) page_size: Option<usize>,
    pub(crate) expires_in: Option<u64>,
}

#[derive(Clone)]
pub(crate) struct GoogleServer {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

impl GoogleServer {
    pub(crate) async fn start() -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = state.clone();
        let url = serve(move |request| shared.lock().unwrap().answer(request)).await;
        Self { url, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Lets the next request of a kind fail.
    pub(crate) fn fail(&self, kind: &'static str, failure: Failure) {
        self.state().failures.push_back((kind, failure));
    }

    /// The token that was granted last is not taken any more.
    pub(crate) fn revoke_token(&self) {
        self.state().revoked = true;
    }

    /// Adds an event as it stands in the calendar.
    pub(crate) fn add(&self, mut event: Value) {
        let mut state = self.state();
        let id = event["id"].as_str().unwrap().to_owned();
        event["etag"] = json!(state.next_etag());
        if event["status"].is_null() {
            event["status"] = json!("confirmed");
        }
        state.events.insert(id, event);
    }

    /// Requests of a kind so far.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.state().requests.iter().filter(|request| kind_of(request) == kind).count()
    }

    pub(crate) fn last(&self, kind: &str) -> Request {
        let state = self.state();
        state.requests.iter().rfind(|request| kind_of(request) == kind).cloned().unwrap()
    }

    /// Events that take place.
    pub(crate) fn confirmed(&self) -> Vec<Value> {
        let state = self.state();
        state.events.values().filter(|event| event["status"] != "cancelled").cloned().collect()
    }
}

/// `POST events`, `GET event`, `POST freeBusy`.
fn kind_of(request: &Request) -> String {
    let last = request.path.rsplit('/').next().unwrap_or_default();
    let what = match last {
        "events" | "freeBusy" => last,
        _ => "event",
    };
    format!("{} {what}", request.method)
}

impl State {
    fn answer(&mut self, request: Request) -> Answer {
        if request.path == "/token" {
            return self.grant(request);
        }
        let expected = format!("Bearer token-{}", self.granted);
        if self.revoked || request.header("authorization") != Some(&expected) {
            self.requests.push(request);
            return error(401, "authError", "Invalid Credentials");
        }
        let kind = kind_of(&request);
        self.requests.push(request.clone());
        let failure = self.failures.iter().position(|(of, _)| *of == kind);
        match failure.and_then(|at| self.failures.remove(at)).map(|(_, failure)| failure) {
            None | Some(Failure::Nothing) => self.handle(&request),
            Some(Failure::Status(status, reason, retry_after)) => {
                let Answer::Reply { status, mut headers, body } = error(status, reason, "refused") else {
                    unreachable!("an error is an answer")
                };
                headers.extend(retry_after.map(|value| ("retry-after", value.to_owned())));
                Answer::Reply { status, headers, body }
            }
            Some(Failure::CutBefore) => Answer::Cut,
            Some(Failure::CutAfter) => {
                self.handle(&request);
                Answer::Cut
            }
            Some(Failure::FailAfter(status)) => {
                self.handle(&request);
                error(status, "backendError", "Backend Error")
            }
        }
    }

    fn grant(&mut self, request: Request) -> Answer {
        self.tokens.push(request);
        let failure = self.failures.iter().position(|(of, _)| *of == "POST token");
        if let Some((_, Failure::Status(status, code, _))) = failure.and_then(|at| self.failures.remove(at)) {
            let description = "Bad Request: 1//planted-refresh";
            return Answer::json(status, json!({ "error": code, "error_description": description }));
        }
        self.granted += 1;
        self.revoked = false;
        let lifetime = self.expires_in.unwrap_or(3_599);
        let token = format!("token-{}", self.granted);
        Answer::json(200, json!({ "access_token": token, "expires_in": lifetime, "token_type": "Bearer" }))
    }

    fn handle(&mut self, request: &Request) -> Answer {
        let base = "/calendar/v3/calendars/team@group.calendar.google.com/events";
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/calendar/v3/freeBusy") => self.free_busy(request),
            ("GET", path) if path == base => self.list(request),
            ("POST", path) if path == base => self.insert(request),
            (method, path) => match (method, path.strip_prefix(base).and_then(|path| path.strip_prefix('/')))
            {
                ("GET", Some(id)) => self.get(id),
                ("PATCH", Some(id)) => self.patch(id, request),
                ("DELETE", Some(id)) => self.delete(id, request),
                _ => error(404, "notFound", "Not Found"),
            },
        }
    }

    fn free_busy(&self, request: &Request) -> Answer {
        let body = request.json();
        let id = body["items"][0]["id"].as_str().unwrap();
        if id != "team@group.calendar.google.com" {
            let errors = json!([{ "domain": "global", "reason": "notFound" }]);
            return Answer::json(200, json!({ "calendars": { id: { "errors": errors, "busy": [] } } }));
        }
        let window = (body["timeMin"].as_str().unwrap(), body["timeMax"].as_str().unwrap());
        let busy: Vec<Value> = self
            .touching(window)
            .filter(|event| event["transparency"] != "transparent")
            .map(|event| json!({ "start": event["start"]["dateTime"], "end": event["end"]["dateTime"] }))
            .collect();
        let calendars = json!({ id: { "busy": busy } });
        Answer::json(
            200,
            json!({ "kind": "calendar#freeBusy", "timeMin": window.0, "timeMax": window.1, "calendars": calendars }),
        )
    }

    fn list(&self, request: &Request) -> Answer {
        if request.query("orderBy") == Some("startTime") && request.query("singleEvents") != Some("true") {
            return error(
                400,
                "badRequest",
                "The requested ordering is not available for the particular query.",
            );
        }
        let window = (request.query("timeMin").unwrap(), request.query("timeMax").unwrap());
        let events: Vec<&Value> = self.touching(window).collect();
        let size = self.page_size.unwrap_or(2_500);
        let from: usize = request.query("pageToken").map_or(0, |token| token.parse().unwrap());
        let items: Vec<&&Value> = events.iter().skip(from).take(size).collect();
        let mut page = json!({ "kind": "calendar#events", "timeZone": "Europe/Berlin", "items": items });
        if from + size < events.len() {
            page["nextPageToken"] = json!((from + size).to_string());
        }
        Answer::json(200, page)
    }

    /// Instances of series are events of their own here, as `singleEvents` gives them.
    fn touching<'a>(&'a self, (min, max): (&'a str, &'a str)) -> impl Iterator<Item = &'a Value> {
        let mut found: Vec<&Value> = self
            .events
            .values()
            .filter(move |event| {
                event["status"] != "cancelled"
                    && instant(&event["end"]) > at(min)
                    && instant(&event["start"]) < at(max)
            })
            .collect();
        found.sort_by_key(|event| instant(&event["start"]));
        found.into_iter()
    }

    fn get(&mut self, id: &str) -> Answer {
        let Some(event) = self.events.get_mut(id) else { return error(404, "notFound", "Not Found") };
        if event["conferenceData"]["createRequest"]["status"]["statusCode"] == "pending" {
            self.pending_links = self.pending_links.saturating_sub(1);
            if self.pending_links == 0 {
                add_link(event);
            }
        }
        Answer::json(200, event.clone())
    }

    fn insert(&mut self, request: &Request) -> Answer {
        let mut event = request.json();
        let id = event["id"].as_str().unwrap_or("generated").to_owned();
        if !id.bytes().all(|byte| matches!(byte, b'a'..=b'v' | b'0'..=b'9')) {
            return error(400, "invalid", "Invalid resource id value.");
        }
        if self.events.contains_key(&id) {
            return error(409, "duplicate", "The requested identifier already exists.");
        }
        event["kind"] = json!("calendar#event");
        event["status"] = json!("confirmed");
        event["iCalUID"] = json!(format!("{id}@google.com"));
        event["sequence"] = json!(0);
        event["etag"] = json!(self.next_etag());
        if request.query("conferenceDataVersion") != Some("1") {
            event.as_object_mut().unwrap().remove("conferenceData");
        } else if self.pending_links > 0 {
            event["conferenceData"]["createRequest"]["status"] = json!({ "statusCode": "pending" });
        } else {
            add_link(&mut event);
        }
        self.events.insert(id, event.clone());
        Answer::json(200, event)
    }

    fn patch(&mut self, id: &str, request: &Request) -> Answer {
        let etag = self.next_etag();
        let Some(event) = self.events.get_mut(id) else { return error(404, "notFound", "Not Found") };
        if request.header("if-match").is_some_and(|wanted| event["etag"] != wanted) {
            return error(412, "conditionNotMet", "Precondition Failed");
        }
        for (name, value) in request.json().as_object().unwrap() {
            for (key, value) in value.as_object().unwrap() {
                match value {
                    Value::Null => drop(event[name].as_object_mut().unwrap().remove(key)),
                    value => event[name][key] = value.clone(),
                }
            }
        }
        event["sequence"] = json!(event["sequence"].as_u64().unwrap_or(0) + 1);
        event["etag"] = json!(etag);
        Answer::json(200, event.clone())
    }

    fn delete(&mut self, id: &str, request: &Request) -> Answer {
        let etag = self.next_etag();
        let Some(event) = self.events.get_mut(id) else { return error(404, "notFound", "Not Found") };
        if event["status"] == "cancelled" {
            return error(410, "deleted", "Resource has been deleted");
        }
        if request.header("if-match").is_some_and(|wanted| event["etag"] != wanted) {
            return error(412, "conditionNotMet", "Precondition Failed");
        }
        event["status"] = json!("cancelled");
        event["etag"] = json!(etag);
        Answer::empty(204)
    }

    fn next_etag(&mut self) -> String {
        self.changes += 1;
        format!("\"{}\"", 3_181_161_784_712_000 + self.changes)
    }
}

fn add_link(event: &mut Value) {
    let link = "https://meet.google.com/abc-mnop-xyz";
    event["conferenceData"]["createRequest"]["status"] = json!({ "statusCode": "success" });
    event["conferenceData"]["entryPoints"] = json!([
        { "entryPointType": "phone", "uri": "tel:+1-555-0100" },
        { "entryPointType": "video", "uri": link },
    ]);
    event["hangoutLink"] = json!(link);
}

fn at(text: &str) -> jiff::Timestamp {
    text.parse().unwrap()
}

fn instant(time: &Value) -> jiff::Timestamp {
    match time["dateTime"].as_str() {
        Some(date_time) => at(date_time),
        None => at(&format!("{}T00:00:00+01:00", time["date"].as_str().unwrap())),
    }
}

fn error(status: u16, reason: &str, message: &str) -> Answer {
    let errors = json!([{ "domain": "global", "reason": reason, "message": message }]);
    Answer::json(status, json!({ "error": { "errors": errors, "code": status, "message": message } }))
}
