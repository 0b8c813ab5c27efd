//! A live model that echoes its input.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use quarterdeck_contracts::{
    Audio, LiveConnecting, LiveConnection, LiveError, LiveEvent, LiveInput, LiveModel, LiveSetup, Provider,
    TranscriptPiece, TranscriptStage,
};

/// Echoes audio and text. The text `speech <bytes>` makes it send that much audio.
pub(crate) struct EchoModel;

#[derive(Default)]
struct EchoConnection {
    says: VecDeque<LiveEvent<'static>>,
    /// Bytes left of a long speech, generated as they are read.
    speech: usize,
    waker: Option<Waker>,
}

const PIECE: [u8; 960] = [7; 960];

impl LiveModel for EchoModel {
    fn declarations(&self) -> Provider {
        Provider::GeminiJsonSchema
    }

    fn name(&self) -> &str {
        "echo/1"
    }

    fn connect(&self, _: LiveSetup) -> LiveConnecting {
        Box::pin(async { Ok(Box::new(EchoConnection::default()) as Box<dyn LiveConnection>) })
    }
}

impl LiveConnection for EchoConnection {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        if self.speech > 0 {
            self.says.extend((0..32).map(|_| LiveEvent::Audio(Audio::Pcm((&PIECE[..]).into()))));
            self.speech = self.speech.saturating_sub(32 * PIECE.len());
            if self.speech == 0 {
                self.says.push_back(LiveEvent::TurnComplete { more_follows: false });
            }
        }
        if self.says.is_empty() {
            self.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn next(&mut self) -> Option<LiveEvent<'_>> {
        self.says.pop_front()
    }

    fn send(&mut self, input: LiveInput<'_>) {
        match input {
            LiveInput::Audio(audio) => self.says.push_back(LiveEvent::Audio(audio).into_owned()),
            LiveInput::Text(text) => match text.strip_prefix("speech ") {
                Some(bytes) => self.speech = bytes.parse().unwrap(),
                None => {
                    let words =
                        TranscriptPiece { text: text.to_owned().into(), stage: TranscriptStage::Final };
                    self.says.extend([
                        LiveEvent::OutputTranscript(words),
                        LiveEvent::TurnComplete { more_follows: false },
                    ]);
                }
            },
            // An interrupted response is over, as with any provider.
            LiveInput::Interrupt { .. } => {
                self.says.push_back(LiveEvent::TurnComplete { more_follows: false });
            }
            _ => {}
        }
        self.waker.take().inspect(Waker::wake_by_ref);
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        Poll::Ready(Ok(()))
    }

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}
