//! The SDK's HTTP client, on ours.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use quarterdeck_outbound::SecretText;
use reqwest::{Client, Method, RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::sse::{Event, EventReader, TooLarge};
use super::{dial, oauth::TokenSource};
use crate::server_config::HttpConfig;
use crate::upstream::inbound::{Inbound, Reading};

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
/// What is read of an answer that refuses the request.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

type HttpResult<T> = Result<T, StreamableHttpError<HttpFailure>>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Why a request has no answer. Texts are ours.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpFailure {
    /// Nothing is there.
    #[error("{0}")]
    Unreachable(String),
    /// The server did not get it, or refused it before it did anything.
    #[error("{0}")]
    NotAccepted(String),
    /// The connection broke under way.
    #[error("{0}")]
    Broken(String),
    /// The answer is none.
    #[error("{0}")]
    Invalid(String),
}

impl From<HttpFailure> for StreamableHttpError<HttpFailure> {
    fn from(failure: HttpFailure) -> Self {
        Self::Client(failure)
    }
}

/// One server. Clones share everything.
#[derive(Clone)]
pub(crate) struct HttpClient(Arc<Shared>);

struct Shared {
    client: Client,
    headers: HeaderMap,
    tokens: Option<TokenSource>,
    inbound: Arc<Inbound>,
}

impl HttpClient {
    pub(crate) fn new(config: &HttpConfig, inbound: Arc<Inbound>) -> Result<Self, String> {
        let client = dial::client(&config.url, &config.private_hosts)?;
        let tokens = config
            .oauth
            .clone()
            .map(|oauth| TokenSource::new(oauth, config.url.clone(), config.private_hosts.clone()));
        let mut headers = HeaderMap::new();
        for (name, value) in &config.headers {
            let parsed =
                HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::try_from(value.expose()).ok());
            let (name, mut value) = parsed.ok_or_else(|| format!("its header `{name}` is malformed"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Self(Arc::new(Shared { client, headers, tokens, inbound })))
    }

    /// Sends a request, and once more with a new token if that was refused and `may_repeat`.
    async fn send(&self, may_repeat: bool, make: impl Fn(&Client) -> RequestBuilder) -> HttpResult<Response> {
        let token = self.token().await?;
        let response = self.send_once(make(&self.0.client), token.as_ref()).await?;
        let (Some(tokens), Some(refused)) = (&self.0.tokens, &token) else { return Ok(response) };
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        tokens.forget(refused).await;
        let fresh = self.token().await?;
        match may_repeat {
            true => self.send_once(make(&self.0.client), fresh.as_ref()).await,
            false => Ok(response),
        }
    }

    async fn token(&self) -> HttpResult<Option<SecretText>> {
        match &self.0.tokens {
            Some(tokens) => {
                tokens.token().await.map(Some).map_err(|why| HttpFailure::NotAccepted(why).into())
            }
            None => Ok(None),
        }
    }

    async fn send_once(&self, request: RequestBuilder, token: Option<&SecretText>) -> HttpResult<Response> {
        let mut request = request.headers(self.0.headers.clone());
        if let Some(token) = token {
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
            let mut value = value.map_err(|_| HttpFailure::NotAccepted("its token is malformed".into()))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let response = request.send().await.map_err(|error| {
            let is_unreachable = error.is_connect();
            let why = super::describe_error(error);
            match is_unreachable {
                true => HttpFailure::Unreachable(why),
                false => HttpFailure::Broken(why),
            }
        })?;
        if response.status().is_redirection() {
            let why = "it redirects, which is not followed; configure the URL where it is";
            return Err(HttpFailure::NotAccepted(why.to_owned()).into());
        }
        Ok(response)
    }

    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session_id: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let body = serde_json::to_vec(message)?;
        let headers: HeaderMap = headers.into_iter().collect();
        let make = |client: &Client| {
            let mut request = client.request(Method::POST, uri).headers(headers.clone());
            request = request.header(ACCEPT, format!("{JSON}, {EVENT_STREAM}")).header(CONTENT_TYPE, JSON);
            if let Some(session_id) = session_id {
                request = request.header(SESSION_ID, session_id);
            }
            request.body(body.clone())
        };
        let response = self.send(!is_call(message), make).await?;
        let status = response.status();
        let session = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return self.read_refusal(response, message).await;
        }
        match (status, content_type(&response)) {
            (StatusCode::ACCEPTED | StatusCode::NO_CONTENT, _) => Ok(StreamableHttpPostResponse::Accepted),
            (_, Some(EVENT_STREAM)) => {
                let events = events(response, self.0.inbound.clone(), request_id(message).cloned());
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            (_, Some(JSON)) => self.read_answer(response, message, session).await,
            _ if request_id(message).is_none() => Ok(StreamableHttpPostResponse::Accepted),
            _ => Err(HttpFailure::Invalid("its answer is neither JSON nor a stream of events".into()).into()),
        }
    }

    async fn read_answer(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
        session: Option<String>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let id = request_id(message);
        let max_bytes = self.0.inbound.limits().bytes;
        let body = dial::read_body(response, max_bytes).await;
        let body = body.map_err(|error| HttpFailure::Broken(super::describe_error(error)))?;
        let reading = match body {
            Some(body) => self.0.inbound.read(&body),
            None => self.0.inbound.read_oversized(id.cloned()),
        };
        match reading {
            Reading::Message(answer) | Reading::Refused(answer) => {
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            Reading::Ignored if id.is_none() => Ok(StreamableHttpPostResponse::Accepted),
            Reading::Ignored => Err(HttpFailure::Invalid("it answered something else".into()).into()),
        }
    }

    /// What an answer other than success means: an error of the protocol if it holds one, else its status.
    async fn read_refusal(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let why = format!("HTTP {}: it does not accept our credentials", status.as_u16());
            return Err(HttpFailure::NotAccepted(why).into());
        }
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = retry_after.map(str::to_owned);
        let body = match content_type(&response) {
            Some(JSON) => dial::read_body(response, MAX_REFUSAL_BYTES).await.ok().flatten(),
            _ => None,
        };
        let error = body.and_then(|body| match serde_json::from_slice(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
            _ => None,
        });
        let opening = is_opening(message).then(|| {
            // Whatever it is, it refuses this opening; there is another.
            ErrorData::invalid_request(format!("HTTP {}", status.as_u16()), None)
        });
        match (request_id(message), error.or(opening.filter(|_| status.is_client_error()))) {
            (Some(id), Some(error)) => {
                let answer = ServerJsonRpcMessage::error(error, Some(id.clone()));
                Ok(StreamableHttpPostResponse::Json(answer, None))
            }
            _ => Err(HttpStatusError::new(status.as_u16(), retry_after).into()),
        }
    }

    async fn get(
        &self,
        uri: &str,
        session_id: Option<&str>,
        last_event_id: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<Events> {
        let headers: HeaderMap = headers.into_iter().collect();
        let optional = [(SESSION_ID, session_id), (LAST_EVENT_ID, last_event_id)];
        let make = |client: &Client| {
            let request = client.get(uri).headers(headers.clone()).header(ACCEPT, EVENT_STREAM);
            let given = optional.iter().filter_map(|(name, value)| value.map(|value| (*name, value)));
            given.fold(request, |request, (name, value)| request.header(name, value))
        };
        let response = self.send(true, make).await?;
        match (response.status(), content_type(&response)) {
            (StatusCode::METHOD_NOT_ALLOWED, _) => Err(StreamableHttpError::ServerDoesNotSupportSse),
            (status, Some(EVENT_STREAM)) if status.is_success() => {
                Ok(events(response, self.0.inbound.clone(), None))
            }
            // Without a stream of its own, the server's list of tools is still read from time to time.
            _ => Err(StreamableHttpError::ServerDoesNotSupportSse),
        }
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        self.0.inbound.expect_answer(&message);
        let posted = self.post(&uri, &message, session_id.as_deref(), headers).await;
        if let (Err(_), Some(id)) = (&posted, request_id(&message)) {
            self.0.inbound.forget(id);
        }
        posted
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<()> {
        let headers: HeaderMap = headers.into_iter().collect();
        let make = |client: &Client| {
            client.delete(uri.as_ref()).headers(headers.clone()).header(SESSION_ID, session_id.as_ref())
        };
        // A server that does not let sessions be deleted forgets them in its own time.
        self.send(false, make).await.map(|_| ())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<Events> {
        self.get(&uri, session_id.as_deref(), last_event_id.as_deref(), headers).await
    }
}

fn request_id(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some(&request.id),
        _ => None,
    }
}

/// Whether a message may do something, so that it is never sent twice.
fn is_call(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, ClientJsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::CallToolRequest(_)))
}

fn is_opening(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, ClientJsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_)))
}

/// The one of the two types that the protocol knows.
fn content_type(response: &Response) -> Option<&'static str> {
    let value = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let kind = value.split(';').next()?.trim().to_ascii_lowercase();
    [JSON, EVENT_STREAM].into_iter().find(|known| *known == kind)
}

/// The messages of a stream, each checked before the SDK parses it. A stream that goes over the limit ends, and the call
/// that it belongs to learns why.
fn events(response: Response, inbound: Arc<Inbound>, answers: Option<RequestId>) -> Events {
    let reader = EventReader::new(inbound.limits().bytes);
    let state = (response.bytes_stream().boxed(), reader, VecDeque::<Sse>::new(), inbound, answers, false);
    let stream = futures_util::stream::unfold(state, async |mut state| {
        let (bytes, reader, ready, inbound, answers, is_over) = &mut state;
        loop {
            if let Some(event) = ready.pop_front() {
                return Some((Ok(event), state));
            }
            if *is_over {
                return None;
            }
            let chunk = match bytes.next().await? {
                Ok(chunk) => chunk,
                Err(error) => {
                    *is_over = true;
                    return Some((Err(SseError::Body(Box::new(error.without_url()))), state));
                }
            };
            let mut whole = Vec::new();
            let read = reader.read(&chunk, &mut whole);
            for event in whole {
                match checked(inbound, event) {
                    Some(event) => ready.push_back(event),
                    None => inbound.slow_down().await,
                }
            }
            if read == Err(TooLarge) {
                *is_over = true;
                if let Reading::Refused(answer) = inbound.read_oversized(answers.take()) {
                    ready.extend(serde_json::to_string(&answer).ok().map(|text| Sse::default().data(text)));
                }
            }
        }
    });
    stream.boxed()
}

fn checked(inbound: &Inbound, event: Event) -> Option<Sse> {
    let data = match event.data.trim_ascii().is_empty() {
        // Such an event only carries the id from which a stream is taken up again.
        true => String::new(),
        false => match inbound.read(&event.data) {
            Reading::Message(_) => String::from_utf8(event.data).ok()?,
            Reading::Refused(answer) => serde_json::to_string(&answer).ok()?,
            Reading::Ignored => return None,
        },
    };
    Some(Sse { data: Some(data), id: event.id, ..Sse::default() })
}
