//! Turns an upgraded connection into a call.

use std::sync::Arc;
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use quarterdeck_agents::text::User;
use quarterdeck_agents::voice::{CallRequest, ClientLink, CloseReason, ServerMessage, VoiceAgent};
use quarterdeck_contracts::{ErrorType, ToolError};
use quarterdeck_runtime::is_valid_id;
use quarterdeck_websocket::{Role, WebSocket};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::client_frame::Start;
use super::counted_stream::CountedStream;
use super::websocket_link::{FirstMessage, LIMITS, LinkContext, WebSocketLink};
use crate::app::App;
use crate::nodes::NoCall;
use crate::quota::Permit;
use crate::request_log::RequestLine;

/// How long a client may take to send `start`.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The purpose that resume tokens are signed for.
const PURPOSE: &str = "voice-resume";
const MAX_PENDING_REQUEST_CHARS: usize = 500;
/// Of a time zone or a language.
const MAX_NAME_BYTES: usize = 64;

/// A call whose connection is about to become a WebSocket.
pub(crate) struct IncomingCall {
    pub(crate) app: Arc<App>,
    pub(crate) agent: VoiceAgent,
    pub(crate) user: User,
    pub(crate) permit: Permit,
    pub(crate) line: RequestLine,
}

impl IncomingCall {
    pub(crate) async fn run_after(self, upgrade: OnUpgrade) {
        let upgraded = match upgrade.await {
            Ok(upgraded) => upgraded,
            Err(error) => return tracing::debug!(error = %error, "connection lost before the upgrade"),
        };
        // The raw stream, so that nothing buffers between a call and its bytes.
        let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>() else {
            return tracing::error!("unexpected connection type");
        };
        let stream = CountedStream { stream: parts.io.into_inner(), log: self.line.log().clone() };
        let socket = WebSocket::new(stream, Role::Server, LIMITS, &parts.read_buf);
        self.run(socket).await;
    }

    /// Waits for `start`, then hands the call to the agent.
    async fn run<S>(self, socket: WebSocket<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { app, agent, mut user, permit, line } = self;
        let client = user.client.id.clone();
        let context = LinkContext { line, ..context(app.clone(), client.clone(), permit) };
        let mut link = Box::new(WebSocketLink::new(socket, context));
        let first = tokio::select! {
            first = tokio::time::timeout(START_TIMEOUT, link.first()) => first,
            () = app.admission.wait_for_drain() => return link.close(CloseReason::Stopping).await,
        };
        let start = match first {
            Err(_) => return link.close(CloseReason::Idle).await,
            // A rejected client has received the reason.
            Ok(FirstMessage::Disconnect) => return link.close(CloseReason::Refused).await,
            Ok(FirstMessage::Other(error)) => return refuse(link, error).await,
            Ok(FirstMessage::Start(start)) => *start,
        };
        let short = |name: &Option<String>| name.clone().filter(|name| name.len() <= MAX_NAME_BYTES);
        user.situation.time_zone = short(&start.time_zone).or(user.situation.time_zone);
        user.situation.locale = short(&start.locale).or(user.situation.locale);
        match call_request(start, |session, token| {
            app.identity.is_signed_for(PURPOSE, &[&client, session], token)
        }) {
            Ok(mut request) => {
                if let Some(session) = request.session_id.as_deref().filter(|_| request.may_resume) {
                    request.dead_holder = app.bring_call_here(session).await;
                }
                match app.claim_call(&client, request.dead_holder.as_ref()).await {
                    Ok(call) => {
                        link.hold_call(call);
                        agent.start_call(&user, request, link).await;
                    }
                    Err(error) => refuse_call(link, &error).await,
                }
            }
            Err(error) => refuse(link, error).await,
        }
    }
}

/// Runs a call on a WebSocket that was accepted elsewhere, for programs with their own listener. The limits of `/voice`
/// apply, except those on its HTTP request.
pub async fn answer_call<S>(app: Arc<App>, user: User, stream: S, arrived: &[u8])
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let permit = app.admission.admit_call(&user.client.id, None);
    let (Some(agent), Ok(permit)) = (app.voice.clone(), permit) else {
        return tracing::warn!("call refused: voice is off or at capacity");
    };
    let socket = WebSocket::new(stream, Role::Server, LIMITS, arrived);
    // It was no request of ours.
    let line = RequestLine::default();
    IncomingCall { app, agent, user, permit, line }.run(socket).await;
}

fn context(app: Arc<App>, client: String, permit: Permit) -> LinkContext {
    let clock = app.orchestrator.clone();
    let show = app.settings.page.load().show;
    LinkContext {
        show,
        resume_token: Box::new(move |session| app.identity.sign_for(PURPOSE, &[&client, session])),
        now_ms: Box::new(move || clock.now_ms()),
        line: RequestLine::default(),
        _permit: Some(permit),
    }
}

async fn refuse(mut link: Box<dyn ClientLink>, error: String) {
    link.send(ServerMessage::Error(&ToolError::new(ErrorType::Validation, error)));
    link.close(CloseReason::Refused).await;
}

async fn refuse_call(mut link: Box<dyn ClientLink>, error: &NoCall) {
    let (message, reason) = match error {
        NoCall::InCall => ("You are in a call already. End it first.", CloseReason::Refused),
        NoCall::Store(error) => {
            tracing::warn!(error = %error, "call refused: the store failed");
            // The page tries again by itself.
            ("The database cannot be reached. The call is tried again.", CloseReason::Stopping)
        }
    };
    link.send(ServerMessage::Error(&ToolError::new(ErrorType::Unavailable, message)));
    link.close(reason).await;
}

/// Checks `start`; a session is resumed only with its token.
fn call_request(start: Start, is_token_valid: impl Fn(&str, &str) -> bool) -> Result<CallRequest, String> {
    let Start { session_id, resume_token, pending_request, .. } = start;
    if session_id.as_deref().is_some_and(|id| !is_valid_id(id)) {
        return Err(
            "`sessionId` has 1 to 128 letters, digits and `-_.:@`. Leave it out for a new session.".into()
        );
    }
    if pending_request.as_ref().is_some_and(|request| request.chars().count() > MAX_PENDING_REQUEST_CHARS) {
        return Err(format!("`pendingRequest` has at most {MAX_PENDING_REQUEST_CHARS} characters."));
    }
    let may_resume = match (&session_id, &resume_token) {
        (Some(session), Some(token)) => is_token_valid(session, token),
        _ => false,
    };
    let pending_request = pending_request.filter(|request| !request.trim().is_empty());
    Ok(CallRequest { session_id: session_id.map(Into::into), may_resume, pending_request, dead_holder: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(start: Start) -> Result<CallRequest, String> {
        call_request(start, |session, token| (session, token) == ("ses_1", "token"))
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_session_is_resumed_only_with_its_token() {
        let start = |id: &str, token| Start { session_id: some(id), resume_token: token, ..Start::default() };
        let may_resume = |start| request(start).unwrap().may_resume;
        assert!(may_resume(start("ses_1", some("token"))));
        assert!(!may_resume(start("ses_1", some("other"))));
        assert!(!may_resume(start("ses_2", some("token"))));
        assert!(!may_resume(start("ses_1", None)));
        let new = request(Start { resume_token: some("token"), ..Start::default() });
        assert_eq!(new, Ok(CallRequest::default()));
    }

    #[test]
    fn the_fields_of_start_are_limited() {
        let with_id = |id: String| request(Start { session_id: Some(id), ..Start::default() });
        let with_request = |text: String| request(Start { pending_request: Some(text), ..Start::default() });
        assert!(with_id("a".repeat(128)).is_ok());
        for bad in [String::new(), "a".repeat(129), "a b".into(), "ä".into(), "a\n".into(), "../x".into()] {
            assert!(with_id(bad.clone()).is_err(), "{bad}");
        }
        let max = "ä".repeat(500);
        assert_eq!(with_request(max.clone()).unwrap().pending_request, Some(max));
        assert!(with_request("ä".repeat(501)).is_err());
        assert_eq!(with_request(" ".into()).unwrap().pending_request, None);
    }
}
