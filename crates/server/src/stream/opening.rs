//! The beginning of an answer in a protocol with statuses: a model that fails before its first output is told of by the
//! status, not inside of a stream that began well.

use std::time::Duration;

use quarterdeck_agents::text::{Failure, Reader, StreamEvent};

use super::StreamEncoder;

/// How long a response may wait for the model's first output. Then the stream begins, because proxies give up on a server
/// that is silent, and a failure is told of inside of it.
const OPENING_TIMEOUT: Duration = Duration::from_secs(45);

/// Reads until there is something of the answer. Returns what is encoded so far, or the failure that came first.
pub(crate) async fn read_opening(
    reader: &mut Reader,
    encoder: &mut impl StreamEncoder,
) -> Result<Vec<u8>, Failure> {
    let mut opening = Opening::default();
    // At the timeout, what is there is the beginning.
    let _ = tokio::time::timeout(OPENING_TIMEOUT, async {
        while !opening.is_decided() {
            let Some(events) = reader.next().await else { break };
            for event in &events {
                opening.see(event);
                encoder.encode(event, &mut opening.encoded);
            }
        }
    })
    .await;
    match opening.failure {
        Some(failure) => Err(failure),
        None => Ok(opening.encoded),
    }
}

#[derive(Default)]
struct Opening {
    encoded: Vec<u8>,
    has_begun: bool,
    /// Only one that came before anything else.
    failure: Option<Failure>,
}

impl Opening {
    fn is_decided(&self) -> bool {
        self.has_begun || self.failure.is_some()
    }

    fn see(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Failed(failure) if !self.is_decided() => self.failure = Some(failure.clone()),
            StreamEvent::Text(_)
            | StreamEvent::ToolCall(_)
            | StreamEvent::ConfirmationRequest { .. }
            | StreamEvent::Lagged { .. }
            | StreamEvent::Finished { .. } => self.has_begun |= self.failure.is_none(),
            _ => {}
        }
    }
}
