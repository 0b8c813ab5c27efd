//! Speech on its way from an engine to its listener.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use quarterdeck_contracts::{SPOKEN_RATE, SpeechError, SpeechErrorKind};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Three minutes: more than [`super::text::MAX_TEXT_BYTES`] take to say.
const MAX_SPEECH_SAMPLES: usize = 3 * 60 * SPOKEN_RATE as usize;

type Piece = Result<Vec<i16>, SpeechError>;

/// The engine's end. It never waits for the listener: the samples are bounded, not the pieces.
pub(super) struct Output {
    sender: UnboundedSender<Piece>,
    samples: usize,
}

/// The listener's end. Dropping it tells the engine.
pub(super) struct SpeechReceiver(UnboundedReceiver<Piece>);

/// Why an engine did not say a sentence.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: SpeechErrorKind,
    pub(super) detail: String,
}

impl Fault {
    pub(super) fn new(kind: SpeechErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

pub(super) fn channel() -> (Output, SpeechReceiver) {
    let (sender, receiver) = unbounded_channel();
    (Output { sender, samples: 0 }, SpeechReceiver(receiver))
}

impl Output {
    /// Hands samples on. A listener who has gone is no fault: see [`Output::closed`].
    pub(super) fn send(&mut self, samples: Vec<i16>) -> Result<(), Fault> {
        self.samples += samples.len();
        if self.samples > MAX_SPEECH_SAMPLES {
            return Err(Fault::new(SpeechErrorKind::Malformed, "it does not stop speaking"));
        }
        if !samples.is_empty() {
            let _ = self.sender.send(Ok(samples));
        }
        Ok(())
    }

    pub(super) fn has_sent(&self) -> bool {
        self.samples > 0
    }

    pub(super) fn fail(&self, error: SpeechError) {
        let _ = self.sender.send(Err(error));
    }

    /// Ends when the listener has gone.
    pub(super) async fn closed(&self) {
        self.sender.closed().await;
    }
}

impl Stream for SpeechReceiver {
    type Item = Piece;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        self.0.poll_recv(context)
    }
}
