//! The handshake: who is let in.

use quarterdeck_websocket::{Limits, WebSocket, receive_upgrade};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{ConnectionEnd, EndedBy};
use crate::live::desk::Desk;
use crate::live::scenario::Refusal;

/// The largest frame.
const MOST_BYTES: usize = 4 << 20;

/// The handshake.
pub(super) async fn welcome<S: AsyncRead + AsyncWrite + Unpin>(
    desk: &Desk,
    stream: S,
    end: &mut ConnectionEnd,
) -> Result<WebSocket<S>, String> {
    let waiting = receive_upgrade(stream).await.map_err(|error| error.to_string())?;
    if !is_served(waiting.request.path()) {
        let known = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";
        let _ = waiting.refuse("404 Not Found", &format!("only {known} is served here\n")).await;
        return Err("it asked for a path that is not served".into());
    }
    let number = {
        let mut books = desk.books();
        books.report.connections += 1;
        books.report.connections
    };
    end.connection = number;
    let refusal = desk.scenario().and_then(|it| it.rules(number).find_map(|rule| rule.refusal.clone()));
    if let Some(Refusal::Http(status, reason)) = refusal {
        let _ = waiting.refuse(&format!("{status} Refused"), &reason).await;
        end.by = EndedBy::Simulator;
        return Err(format!("refused with status {status}"));
    }
    waiting.accept(Limits { message: MOST_BYTES }).await.map_err(|error| error.to_string())
}

/// Whether it is one of the provider's paths. The JavaScript SDK begins them with two slashes.
fn is_served(path: &str) -> bool {
    let path = path.strip_prefix('/').filter(|path| path.starts_with('/')).unwrap_or(path);
    let Some(rest) = path.strip_prefix("/ws/google.ai.generativelanguage.") else { return false };
    let Some((version, method)) = rest.split_once('.') else { return false };
    matches!(version, "v1alpha" | "v1beta" | "v1")
        && matches!(
            method,
            "GenerativeService.BidiGenerateContent" | "GenerativeService.BidiGenerateContentConstrained"
        )
}
