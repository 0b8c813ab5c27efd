//! Asks the user through a client that has shaken hands.

use std::time::Duration;

use quarterdeck_contracts::{ConfirmationAnswer, ConfirmationRequest};
use rmcp::RoleServer;
use rmcp::model::{ClientResult, ElicitResult, ServerRequest};
use rmcp::service::{PeerRequestOptions, RequestContext, ServiceError};

use super::question;

/// What the user has decided; nothing when the question has expired. A client that cancels the call has not approved it. Either
/// way it is told that the question does not stand any more.
pub(super) async fn elicit(
    context: &RequestContext<RoleServer>,
    request: &ConfirmationRequest,
    time_left: Duration,
) -> Option<ConfirmationAnswer> {
    let form = ServerRequest::ElicitRequest(question::form(request));
    // Sent from the task of the call: where there are several streams, the question belongs on the one of its call.
    let sent = context.peer.send_cancellable_request(form, PeerRequestOptions::no_options()).await;
    let mut sent = match sent {
        Ok(sent) => sent,
        Err(error) => {
            tracing::warn!(error = %error, "confirmation could not be requested from the client");
            return Some(ConfirmationAnswer::Deny);
        }
    };
    let (reason, decided) = tokio::select! {
        biased;
        () = context.ct.cancelled() => ("The call was cancelled.", Some(ConfirmationAnswer::Deny)),
        response = &mut sent.rx => {
            return Some(decision(response.unwrap_or(Err(ServiceError::TransportClosed))));
        }
        () = tokio::time::sleep(time_left) => ("The question has expired.", None),
    };
    if let Err(error) = sent.cancel(Some(reason.to_owned())).await {
        tracing::debug!(error = %error, "client was not told that its question does not stand any more");
    }
    decided
}

fn decision(response: Result<ClientResult, ServiceError>) -> ConfirmationAnswer {
    match response {
        Ok(ClientResult::ElicitResult(ElicitResult { action, content, .. })) => {
            let action = serde_json::to_value(action).unwrap_or_default();
            question::decision(&action, content.as_ref())
        }
        Ok(_) => ConfirmationAnswer::Deny,
        Err(error) => {
            tracing::warn!(error = %error, "client did not answer a confirmation");
            ConfirmationAnswer::Deny
        }
    }
}
