//! A model that gives back what it hears.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use quarterdeck_contracts::{
    Audio, LiveConnecting, LiveConnection, LiveError, LiveEvent, LiveInput, LiveModel, LiveSetup, Provider,
    TranscriptPiece, TranscriptStage,
};

/// Says audio back as audio and text back as words. Told `speech <bytes>`, it speaks for that long.
pub(crate) struct Parrot;

#[derive(Default)]
struct Perch {
    says: VecDeque<LiveEvent<'static>>,
    /// How much is left of a long speech. It is made as it is read, and takes no room.
    speech: usize,
    waker: Option<Waker>,
}

const PIECE: [u8; 960] = [7; 960];

impl LiveModel for Parrot {
    fn declarations(&self) -> Provider {
        Provider::GeminiJsonSchema
    }

    fn name(&self) -> &str {
        "parrot/1"
    }

    fn connect(&self, _: LiveSetup) -> LiveConnecting {
        Box::pin(async { Ok(Box::new(Perch::default()) as Box<dyn LiveConnection>) })
    }
}

impl LiveConnection for Perch {
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
            // What it is cut off in the middle of is over, as with any provider.
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
