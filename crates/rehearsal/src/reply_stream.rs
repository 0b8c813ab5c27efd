//! A reply that is known beforehand, as a stream.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use quarterdeck_contracts::{ChatError, ChatEvent, ModelReply};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ReplyStep {
    /// One piece of text.
    Text(String),
    /// One piece of a thought.
    Thought(String),
    /// A text that is emitted word by word.
    Words(String),
    /// The same text many times, with a pause before each. Kept as a number, so that a flood costs no memory.
    Repeat {
        text: String,
        times: u64,
        every: Duration,
    },
    Wait(Duration),
}

/// How a reply ends.
#[derive(Debug)]
pub(crate) enum End {
    Done(ModelReply),
    Failed(ChatError),
}

/// Emits the steps and then the end. Needs a timer, and so a tokio runtime, only where there is a pause.
pub(crate) struct ReplyStream {
    steps: VecDeque<ReplyStep>,
    end: Option<End>,
    /// Before each word of [`ReplyStep::Words`].
    pace: Duration,
    /// How far the first step has been emitted: bytes of its words, or repetitions.
    sent: u64,
    /// The timer of all pauses, made for the first.
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
    /// The pause before the next piece.
    pause: Pause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    Ahead,
    Begun,
    Over,
}

impl ReplyStream {
    pub(crate) fn new(steps: Vec<ReplyStep>, pace: Duration, end: End) -> Self {
        Self { steps: steps.into(), end: Some(end), pace, sent: 0, timer: None, pause: Pause::Ahead }
    }

    /// Waits before a piece, once. A pause of zero needs no timer.
    fn poll_pause(&mut self, pause: Duration, cx: &mut Context<'_>) -> Poll<()> {
        if self.pause == Pause::Over || pause.is_zero() {
            return Poll::Ready(());
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
        if self.pause == Pause::Ahead {
            timer.as_mut().reset(tokio::time::Instant::now() + pause);
            self.pause = Pause::Begun;
        }
        ready!(timer.as_mut().poll(cx));
        self.pause = Pause::Over;
        Poll::Ready(())
    }

    fn next_step(&mut self) {
        self.steps.pop_front();
        self.sent = 0;
        self.pause = Pause::Ahead;
    }

    /// The next piece of the first step, if there is more of it.
    fn piece(&mut self) -> Option<ChatEvent> {
        self.pause = Pause::Ahead;
        match self.steps.front_mut()? {
            ReplyStep::Text(text) if self.sent == 0 && !text.is_empty() => {
                self.sent = 1;
                Some(ChatEvent::Text(std::mem::take(text)))
            }
            ReplyStep::Thought(thought) if self.sent == 0 && !thought.is_empty() => {
                self.sent = 1;
                Some(ChatEvent::Thought(std::mem::take(thought)))
            }
            ReplyStep::Words(words) => {
                let rest = words.get(usize::try_from(self.sent).ok()?..)?;
                let word = first_word(rest);
                self.sent += word.len() as u64;
                (!word.is_empty()).then(|| ChatEvent::Text(word.to_owned()))
            }
            ReplyStep::Repeat { text, times, .. } if self.sent < *times && !text.is_empty() => {
                self.sent += 1;
                Some(ChatEvent::Text(text.clone()))
            }
            _ => None,
        }
    }
}

impl Stream for ReplyStream {
    type Item = Result<ChatEvent, ChatError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = self.get_mut();
        while let Some(step) = stream.steps.front() {
            let pause = match step {
                ReplyStep::Wait(pause) => *pause,
                ReplyStep::Words(words) if stream.sent < words.len() as u64 => stream.pace,
                ReplyStep::Repeat { every, times, .. } if stream.sent < *times => *every,
                _ => Duration::ZERO,
            };
            ready!(stream.poll_pause(pause, cx));
            if matches!(stream.steps.front(), Some(ReplyStep::Repeat { .. })) && stream.pause != Pause::Over {
                // A model's tokens come one at a time: each gets its own poll.
                stream.pause = Pause::Over;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some(event) = stream.piece() {
                return Poll::Ready(Some(Ok(event)));
            }
            stream.next_step();
        }
        Poll::Ready(stream.end.take().map(|end| match end {
            End::Done(reply) => Ok(ChatEvent::Done(reply)),
            End::Failed(error) => Err(error),
        }))
    }
}

/// For texts without spaces.
const MAX_PIECE_BYTES: usize = 48;

/// The first word with the space after it.
fn first_word(text: &str) -> &str {
    let mut in_word = false;
    for (at, letter) in text.char_indices() {
        match letter.is_whitespace() {
            false if in_word && text[..at].ends_with(char::is_whitespace) => return &text[..at],
            false => in_word = true,
            true => {}
        }
        if at >= MAX_PIECE_BYTES {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(mut text: &str) -> Vec<&str> {
        let mut pieces = Vec::new();
        while !text.is_empty() {
            let word = first_word(text);
            pieces.push(word);
            text = &text[word.len()..];
        }
        pieces
    }

    #[test]
    fn text_is_cut_after_each_word_and_nothing_is_lost() {
        assert_eq!(pieces("She was built  in Larvik."), ["She ", "was ", "built  ", "in ", "Larvik."]);
        assert_eq!(pieces("  two"), ["  two"]);
        assert_eq!(pieces(""), Vec::<&str>::new());
    }

    #[test]
    fn a_text_without_spaces_goes_out_in_pieces_too() {
        let long = "氷".repeat(200);
        let pieces = pieces(&long);
        assert!(pieces.len() > 5 && pieces.iter().all(|piece| piece.len() <= MAX_PIECE_BYTES + 4));
        assert_eq!(pieces.concat(), long);
    }
}
