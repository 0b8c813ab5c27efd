//! The handshake.

use quarterdeck_websocket::{Limits, WebSocket, receive_upgrade};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{ConnectionEnd, EndedBy};
use crate::live::scenario::Refusal;
use crate::live::simulation::Simulation;

const MAX_FRAME_BYTES: usize = 4 << 20;

pub(super) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
    simulation: &Simulation,
    stream: S,
    end: &mut ConnectionEnd,
) -> Result<WebSocket<S>, String> {
    let pending = receive_upgrade(stream).await.map_err(|error| error.to_string())?;
    if !is_served(pending.request.path()) {
        let known = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";
        let _ = pending.refuse("404 Not Found", &format!("only {known} is served here\n")).await;
        return Err("it asked for a path that is not served".into());
    }
    let number = {
        let mut state = simulation.state();
        state.report.connections += 1;
        state.report.connections
    };
    end.connection = number;
    let refusal = simulation.scenario().and_then(|it| it.rules(number).find_map(|rule| rule.refusal.clone()));
    if let Some(Refusal::Http(status, reason)) = refusal {
        let _ = pending.refuse(&format!("{status} Refused"), &reason).await;
        end.by = EndedBy::Simulator;
        return Err(format!("refused with status {status}"));
    }
    pending.accept(Limits { max_message_bytes: MAX_FRAME_BYTES }).await.map_err(|error| error.to_string())
}

/// Whether it is one of the provider's paths. The JavaScript SDK starts them with two slashes.
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
