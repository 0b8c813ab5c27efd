//! From an upgraded connection to a call.

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

use super::line::{BrowserLine, First, LIMITS, Ties};
use super::said::Start;
use crate::app::App;
use crate::places::Place;

/// How long a page may take to say what it begins with.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a token for resuming is signed for.
const PURPOSE: &str = "voice-resume";
/// The longest request that a page may hand over, in characters.
const LONGEST_REQUEST: usize = 500;
/// The longest name of a time zone or a language.
const LONGEST_NAME: usize = 64;

/// A caller whose connection is about to become a WebSocket.
pub(crate) struct Caught {
    pub(crate) app: Arc<App>,
    pub(crate) agent: VoiceAgent,
    pub(crate) visitor: User,
    pub(crate) place: Place,
}

impl Caught {
    /// Waits for the connection, and answers it.
    pub(crate) async fn put_through(self, upgrade: OnUpgrade) {
        let upgraded = match upgrade.await {
            Ok(upgraded) => upgraded,
            Err(error) => return tracing::debug!(error = %error, "a line was lost before it stood"),
        };
        // The stream itself, so that nothing stands between a call and its bytes.
        let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>() else {
            return tracing::error!("a connection is not what the listener made it from");
        };
        let socket = WebSocket::new(parts.io.into_inner(), Role::Server, LIMITS, &parts.read_buf);
        self.answer(socket).await;
    }

    /// Waits for what the page begins with, and puts it through.
    async fn answer<S>(self, socket: WebSocket<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { app, agent, mut visitor, place } = self;
        let client = visitor.client.id.clone();
        let mut line = Box::new(BrowserLine::new(socket, ties(app.clone(), client.clone(), place)));
        let first = tokio::select! {
            first = tokio::time::timeout(PATIENCE, line.first()) => first,
            () = app.drained() => return line.close(CloseReason::Stopping).await,
        };
        let start = match first {
            Err(_) => return line.close(CloseReason::Idle).await,
            // Whoever was sent away has been told why.
            Ok(First::Disconnect) => return line.close(CloseReason::Refused).await,
            Ok(First::Other(fault)) => return refuse(line, fault).await,
            Ok(First::Start(start)) => *start,
        };
        let said = |name: &Option<String>| name.clone().filter(|name| name.len() <= LONGEST_NAME);
        visitor.situation.time_zone = said(&start.time_zone).or(visitor.situation.time_zone);
        visitor.situation.locale = said(&start.locale).or(visitor.situation.locale);
        match opening(start, |session, token| app.identity.is_sealed(PURPOSE, &[&client, session], token)) {
            Ok(opening) => agent.start_call(&visitor, opening, line).await,
            Err(fault) => refuse(line, fault).await,
        }
    }
}

/// Answers a call on a WebSocket that was made elsewhere, for programs that listen themselves. Everything that `/voice`
/// holds a page to holds here, but for what is judged by its request.
pub async fn answer_call<S>(app: Arc<App>, visitor: User, stream: S, arrived: &[u8])
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let place = app.admit_call(&visitor.client.id, None);
    let (Some(agent), Ok(place)) = (app.voice.clone(), place) else {
        return tracing::warn!("a call was not answered: there is no room for it, or nobody to speak with");
    };
    let socket = WebSocket::new(stream, Role::Server, LIMITS, arrived);
    Caught { app, agent, visitor, place }.answer(socket).await;
}

fn ties(app: Arc<App>, client: String, place: Place) -> Ties {
    let clock = app.orchestrator.clone();
    Ties {
        resume_token: Box::new(move |session| app.identity.seal(PURPOSE, &[&client, session])),
        now_ms: Box::new(move || clock.now_ms()),
        _place: Some(place),
    }
}

async fn refuse(mut line: Box<dyn ClientLink>, fault: String) {
    line.send(ServerMessage::Error(&ToolError::new(ErrorType::Validation, fault)));
    line.close(CloseReason::Refused).await;
}

/// What a page begins with, as far as it is believed.
fn opening(start: Start, is_proved: impl Fn(&str, &str) -> bool) -> Result<CallRequest, String> {
    let Start { session_id, resume_token, pending_request, .. } = start;
    if session_id.as_deref().is_some_and(|id| !is_valid_id(id)) {
        return Err(
            "A `sessionId` has 1 to 128 letters, digits and `-_.:@`. Leave it out for a new session.".into(),
        );
    }
    if pending_request.as_ref().is_some_and(|request| request.chars().count() > LONGEST_REQUEST) {
        return Err(format!("A `pendingRequest` has at most {LONGEST_REQUEST} characters."));
    }
    let may_resume = match (&session_id, &resume_token) {
        (Some(session), Some(token)) => is_proved(session, token),
        _ => false,
    };
    let pending_request = pending_request.filter(|request| !request.trim().is_empty());
    Ok(CallRequest { session_id: session_id.map(Into::into), may_resume, pending_request })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(start: Start) -> Result<CallRequest, String> {
        opening(start, |session, token| (session, token) == ("ses_1", "seal"))
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_session_goes_on_only_for_whoever_proves_it() {
        let start = |id: &str, token| Start { session_id: some(id), resume_token: token, ..Start::default() };
        let may_resume = |start| begun(start).unwrap().may_resume;
        assert!(may_resume(start("ses_1", some("seal"))));
        assert!(!may_resume(start("ses_1", some("other"))));
        assert!(!may_resume(start("ses_2", some("seal"))));
        assert!(!may_resume(start("ses_1", None)));
        let opening = begun(Start { resume_token: some("seal"), ..Start::default() });
        assert_eq!(opening, Ok(CallRequest::default()));
    }

    #[test]
    fn what_a_page_hands_over_is_limited() {
        let with_id = |id: String| begun(Start { session_id: Some(id), ..Start::default() });
        let asking = |request: String| begun(Start { pending_request: Some(request), ..Start::default() });
        assert!(with_id("a".repeat(128)).is_ok());
        for bad in [String::new(), "a".repeat(129), "a b".into(), "ä".into(), "a\n".into(), "../x".into()] {
            assert!(with_id(bad.clone()).is_err(), "{bad}");
        }
        let longest = "ä".repeat(500);
        assert_eq!(asking(longest.clone()).unwrap().pending_request, Some(longest));
        assert!(asking("ä".repeat(501)).is_err());
        assert_eq!(asking(" ".into()).unwrap().pending_request, None);
    }
}
