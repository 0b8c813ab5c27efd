//! Links to Zoom meetings, against a server of ours that speaks Zoom's documented wire format.

use std::sync::{Arc, Mutex, MutexGuard};

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{ConferenceProvider, ConferenceRequest, ToolError};
use quarterdeck_remote_calendar::{Credential, Zoom, ZoomConfig};
use serde_json::{Value, json};

use crate::google::world::clock;
use crate::http_server::{Answer, Request, serve};

#[derive(Default)]
struct State {
    meetings: Vec<Value>,
    requests: Vec<Request>,
    tokens: Vec<Request>,
    /// Answers to the next requests with a method, instead of doing what they ask.
    failures: Vec<(&'static str, Failure)>,
    revoked: bool,
}

#[derive(Clone, Copy)]
enum Failure {
    Status(u16, i64, Option<&'static str>),
    CutAfter,
    CutBefore,
}

#[derive(Clone)]
struct ZoomServer {
    url: String,
    state: Arc<Mutex<State>>,
}

impl ZoomServer {
    async fn start() -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = state.clone();
        let url = serve(move |request| shared.lock().unwrap().answer(request)).await;
        Self { url, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn fail(&self, method: &'static str, failure: Failure) {
        self.state().failures.push((method, failure));
    }

    fn zoom(&self) -> Zoom {
        let config = ZoomConfig {
            account_id: "account".into(),
            client_id: "app".into(),
            client_secret: Credential::new("planted-zoom-secret"),
            user: "me".into(),
            base_url: format!("{}/v2", self.url),
            token_url: format!("{}/oauth/token", self.url),
        };
        Zoom::new(&config, clock()).unwrap()
    }
}

impl State {
    fn answer(&mut self, request: Request) -> Answer {
        if request.path == "/oauth/token" {
            self.tokens.push(request);
            self.revoked = false;
            let token = format!("zoom-{}", self.tokens.len());
            let body = json!({
                "access_token": token, "token_type": "bearer", "expires_in": 3_599, "scope": "meeting:write:meeting:admin",
                "api_url": "https://api.zoom.us",
            });
            return Answer::json(200, body);
        }
        let expected = format!("Bearer zoom-{}", self.tokens.len());
        if self.revoked || request.header("authorization") != Some(&expected) {
            return Answer::json(401, json!({ "code": 124, "message": "Invalid access token." }));
        }
        self.requests.push(request.clone());
        let failure = self.failures.iter().position(|(method, _)| *method == request.method);
        match failure.map(|at| self.failures.remove(at).1) {
            Some(Failure::Status(status, code, retry_after)) => {
                let headers =
                    retry_after.map(|value| ("retry-after", value.to_owned())).into_iter().collect();
                let body = json!({ "code": code, "message": "planted-zoom-secret" }).to_string();
                Answer::Reply { status, headers, body }
            }
            Some(Failure::CutBefore) => Answer::Cut,
            Some(Failure::CutAfter) => {
                self.handle(&request);
                Answer::Cut
            }
            None => self.handle(&request),
        }
    }

    fn handle(&mut self, request: &Request) -> Answer {
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/v2/users/me/meetings") => {
                let id = 85_746_065_432_u64 + self.meetings.len() as u64;
                let mut meeting = request.json();
                meeting["id"] = json!(id);
                meeting["join_url"] = json!(format!("https://us02web.zoom.us/j/{id}?pwd=abc"));
                meeting["start_url"] = json!(format!("https://us02web.zoom.us/s/{id}?zak=host-key"));
                self.meetings.push(meeting.clone());
                Answer::json(201, meeting)
            }
            ("GET", "/v2/users/me/meetings") => Answer::json(
                200,
                json!({ "page_size": 300, "next_page_token": "", "meetings": self.meetings }),
            ),
            (method, path) => {
                let id: u64 = path.strip_prefix("/v2/meetings/").unwrap().parse().unwrap();
                let Some(at) = self.meetings.iter().position(|meeting| meeting["id"] == id) else {
                    return Answer::json(404, json!({ "code": 3001, "message": "Meeting does not exist." }));
                };
                match method {
                    "DELETE" => drop(self.meetings.remove(at)),
                    _ => self.meetings[at]["start_time"] = request.json()["start_time"].clone(),
                }
                Answer::empty(204)
            }
        }
    }
}

fn request(key: &str) -> ConferenceRequest {
    ConferenceRequest {
        key: key.into(),
        title: "Review\r\n, 2nd round".into(),
        start: "2026-01-13T10:00:00+01:00".into(),
        end: "2026-01-13T10:44:30+01:00".into(),
    }
}

async fn failed(server: &ZoomServer, failure: Failure) -> CapabilityError {
    server.fail("POST", failure);
    server.zoom().create(request("key")).await.unwrap_err()
}

#[tokio::test]
async fn a_meeting_is_made_and_only_the_link_for_attendees_is_passed_on() {
    let server = ZoomServer::start().await;
    let link = server.zoom().create(request("0123456789abcdef")).await.unwrap();
    assert_eq!(link, "https://us02web.zoom.us/j/85746065432?pwd=abc");
    let state = server.state();
    let token = &state.tokens[0];
    assert_eq!(token.form("grant_type").as_deref(), Some("account_credentials"));
    assert_eq!(token.form("account_id").as_deref(), Some("account"));
    // `app:planted-zoom-secret` in base64.
    assert_eq!(token.header("authorization"), Some("Basic YXBwOnBsYW50ZWQtem9vbS1zZWNyZXQ="));
    assert_eq!(
        state.requests[0].json(),
        json!({
            "topic": "Review, 2nd round", "type": 2, "start_time": "2026-01-13T09:00:00Z", "duration": 45,
            "timezone": "UTC", "agenda": "Booking 0123456789abcdef",
        })
    );
}

#[tokio::test]
async fn one_booking_has_one_meeting_however_often_it_is_asked_for() {
    let server = ZoomServer::start().await;
    let zoom = server.zoom();
    let (a, b) = tokio::join!(zoom.create(request("one")), zoom.create(request("one")));
    assert_eq!(a.unwrap(), b.unwrap());
    zoom.create(request("two")).await.unwrap();
    assert_eq!(server.state().meetings.len(), 2);
}

#[tokio::test]
async fn a_meeting_moves_and_goes_with_its_appointment() {
    let server = ZoomServer::start().await;
    let zoom = server.zoom();
    let link = zoom.create(request("one")).await.unwrap();
    let later = ConferenceRequest {
        start: "2026-01-14T09:00:00Z".into(),
        end: "2026-01-14T10:00:00Z".into(),
        ..request("one")
    };
    zoom.reschedule(link.clone(), later).await.unwrap();
    assert_eq!(server.state().meetings[0]["start_time"], "2026-01-14T09:00:00Z");
    zoom.cancel(link.clone()).await.unwrap();
    assert!(server.state().meetings.is_empty());
    zoom.cancel(link).await.unwrap();
    let error = zoom.cancel("https://meet.google.com/abc".into()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::InvalidArgument);
}

#[tokio::test]
async fn a_lost_answer_is_looked_for_before_it_is_given_up() {
    let server = ZoomServer::start().await;
    server.fail("POST", Failure::CutAfter);
    let link = server.zoom().create(request("one")).await.unwrap();
    assert_eq!(link, "https://us02web.zoom.us/j/85746065432?pwd=abc");
    assert_eq!(server.state().meetings.len(), 1);

    let error = failed(&server, Failure::CutBefore).await;
    assert_eq!(error.code, CapabilityErrorCode::NotAvailable);
    server.fail("GET", Failure::CutBefore);
    let error = failed(&server, Failure::CutAfter).await;
    assert_eq!(error.code, CapabilityErrorCode::OutcomeUnknown);
}

#[tokio::test]
async fn failures_say_what_can_be_done_and_repeat_nothing() {
    let server = ZoomServer::start().await;
    for (failure, code) in [
        (Failure::Status(400, 4711, None), CapabilityErrorCode::AuthError),
        (Failure::Status(400, 300, None), CapabilityErrorCode::InvalidArgument),
        (Failure::Status(403, 200, None), CapabilityErrorCode::AuthError),
        (Failure::Status(404, 1001, None), CapabilityErrorCode::NotFound),
        (Failure::Status(503, 0, None), CapabilityErrorCode::NotAvailable),
    ] {
        let error = failed(&server, failure).await;
        assert_eq!(error.code, code);
        assert!(!error.message.contains("planted"), "{}", error.message);
    }
    let error = failed(&server, Failure::Status(429, 429, Some("3"))).await;
    assert_eq!(error.code, CapabilityErrorCode::RateLimit);
    assert_eq!(ToolError::from(error).retry_after_ms, Some(3_000));
}

#[tokio::test]
async fn a_revoked_token_is_replaced() {
    let server = ZoomServer::start().await;
    let zoom = server.zoom();
    zoom.create(request("one")).await.unwrap();
    server.state().revoked = true;
    zoom.create(request("two")).await.unwrap();
    assert_eq!(server.state().tokens.len(), 2);
    assert_eq!(server.state().meetings.len(), 2);
}
