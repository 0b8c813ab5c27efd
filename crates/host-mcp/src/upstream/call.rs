//! One `tools/call`, from the moment it is sent. It is sent once, whatever happens.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::UpstreamOutcome;
use quarterdeck_contracts::handler::{CancelReason, Context};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ErrorData, JsonObject,
    ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use tokio::time::Instant;

use super::connection::Connection;
use super::http::{self, SendFailure};
use super::message::Refusal;

/// How long a note that a call is not wanted any more may take to be written.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// The server did not get it, and will get nothing more on this connection.
    Gone(String),
    /// The server did not get it, or refused it before it did anything.
    NotAccepted(String),
    /// The server has too much to do, and says so.
    Busy { retry_after: Option<Duration> },
    /// The connection was lost under way.
    Lost(String),
    /// There was no answer in time.
    TimedOut,
    /// The caller does not want it any more.
    Cancelled(CancelReason),
    /// The answer is beyond a limit, or none.
    Invalid(String),
    /// The server wants to ask the user or a model something first.
    AsksForInput,
    /// The server answered with an error of the protocol.
    Protocol(ErrorData),
}

impl CallFailure {
    pub(crate) fn outcome(&self) -> UpstreamOutcome {
        match self {
            Self::Gone(_) | Self::NotAccepted(_) => UpstreamOutcome::Unavailable,
            Self::Busy { .. } | Self::AsksForInput | Self::Protocol(_) => UpstreamOutcome::Error,
            Self::Lost(_) => UpstreamOutcome::Lost,
            Self::TimedOut => UpstreamOutcome::TimedOut,
            Self::Cancelled(_) => UpstreamOutcome::Cancelled,
            Self::Invalid(_) => UpstreamOutcome::Invalid,
        }
    }
}

/// Sends a call and waits for its answer, until the deadline, its cancellation or the end of the connection.
pub(crate) async fn call(
    connection: &Connection,
    tool: &str,
    arguments: JsonObject,
    context: Option<&Arc<dyn Context>>,
    deadline: Instant,
) -> Result<CallToolResult, CallFailure> {
    if let Some(reason) = connection.lost.reason() {
        return Err(CallFailure::NotAccepted(reason.to_string()));
    }
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let sending = connection.peer.send_cancellable_request(request, options(context));
    // From here on the call may have been sent.
    let handle = tokio::select! {
        sent = sending => sent.map_err(read_failure)?,
        () = tokio::time::sleep_until(deadline) => return Err(CallFailure::TimedOut),
    };
    let open_route =
        |context: &Arc<dyn Context>| connection.progress.open(handle.progress_token.clone(), context.clone());
    let _route = context.map(open_route);
    let mut pending = PendingCall(Some(handle));
    let signal = context.map(|context| context.signal()).unwrap_or_default();
    let failure = tokio::select! {
        biased;
        answer = pending.answer() => return read_answer(answer),
        reason = connection.lost.wait() => CallFailure::Lost(reason.to_string()),
        reason = stopped(&signal) => CallFailure::Cancelled(reason),
        () = tokio::time::sleep_until(deadline) => CallFailure::TimedOut,
    };
    if matches!(failure, CallFailure::Lost(_)) {
        pending.forget();
    }
    Err(failure)
}

/// Lets the server go on with the trace of the call.
fn options(context: Option<&Arc<dyn Context>>) -> PeerRequestOptions {
    let mut options = PeerRequestOptions::no_options();
    if let Some(span) = context.and_then(|context| context.span()) {
        let meta = JsonObject::from_iter([("traceparent".to_owned(), span.to_traceparent().into())]);
        options.meta = Some(meta.into());
    }
    options
}

/// Ends when the call should stop before its time. That its time is nearly up is no news: the deadline is known.
async fn stopped(signal: &quarterdeck_contracts::handler::CancellationToken) -> CancelReason {
    match signal.cancelled().await {
        CancelReason::Deadline => std::future::pending().await,
        reason => reason,
    }
}

/// A call that was sent. Dropped without an answer, the server is told that none is wanted any more.
struct PendingCall(Option<RequestHandle<RoleClient>>);

impl PendingCall {
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.0 else { return Err(ServiceError::TransportClosed) };
        let answer = (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed));
        self.forget();
        answer
    }

    fn forget(&mut self) {
        self.0 = None;
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        let Some(handle) = self.0.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let cancelling = handle.cancel(Some("the call is not wanted any more".to_owned()));
            runtime.spawn(tokio::time::timeout(CANCEL_TIMEOUT, cancelling));
        }
    }
}

fn read_answer(answer: Result<ServerResult, ServiceError>) -> Result<CallToolResult, CallFailure> {
    match answer.map_err(read_failure)? {
        ServerResult::CallToolResult(result) => Ok(result),
        ServerResult::InputRequiredResult(_) => Err(CallFailure::AsksForInput),
        ServerResult::EmptyResult(_) => Ok(CallToolResult::success(Vec::new())),
        _ => Err(CallFailure::Invalid("its answer is no result of a call".to_owned())),
    }
}

fn read_failure(error: ServiceError) -> CallFailure {
    match error {
        ServiceError::McpError(error) if Refusal::is_in(&error) => {
            let why = error.data.as_ref().and_then(|data| data["refused"].as_str()).unwrap_or("refused");
            CallFailure::Invalid(format!("its answer is {why}"))
        }
        ServiceError::McpError(error) => CallFailure::Protocol(error),
        ServiceError::TransportSend(error) => match http::classify(&error) {
            SendFailure::Gone(why) => CallFailure::Gone(why),
            SendFailure::NotAccepted(why) => CallFailure::NotAccepted(why),
            SendFailure::Unknown(why) => CallFailure::Lost(why),
            SendFailure::Busy { retry_after } => CallFailure::Busy { retry_after },
            SendFailure::Invalid(why) => CallFailure::Invalid(why),
        },
        ServiceError::UnexpectedResponse => CallFailure::Invalid("its answer is none".to_owned()),
        // Also a server that cancels what it was asked: it has not said what it did.
        _ => CallFailure::Lost("the connection ended".to_owned()),
    }
}
