//! A reply that is known beforehand, played as a stream.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use quarterdeck_contracts::{ChatError, ChatEvent, ModelReply};

/// One thing that happens in a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Beat {
    /// Words, in one piece.
    Text(String),
    /// A thought, in one piece.
    Thought(String),
    /// Words, cut after each word as they go out.
    Words(String),
    /// The same words many times, with a pause before each. Kept as a number, so that a flood costs no memory.
    Repeat { text: String, times: u64, every: Duration },
    /// A pause.
    Wait(Duration),
}

/// How a reply ends.
#[derive(Debug)]
pub(crate) enum End {
    Done(ModelReply),
    SocketError(ChatError),
}

/// Plays beats one after another and then the end. Needs a timer, and so a tokio runtime, only where there is a pause.
pub(crate) struct Play {
    beats: VecDeque<Beat>,
    end: Option<End>,
    /// Before each word of [`Beat::Words`].
    pace: Duration,
    /// How far the first beat has been said: bytes of its words, or times that it was repeated.
    said: u64,
    /// The pause before the next piece, once it has begun, and whether it is over.
    pause: Option<Pin<Box<tokio::time::Sleep>>>,
    rested: bool,
}

impl Play {
    pub(crate) fn new(beats: Vec<Beat>, pace: Duration, end: End) -> Self {
        Self { beats: beats.into(), end: Some(end), pace, said: 0, pause: None, rested: false }
    }

    /// Waits before a piece, once. A pause of nothing is none, so that no timer is needed.
    fn poll_rest(&mut self, pause: Duration, cx: &mut Context<'_>) -> Poll<()> {
        if self.rested || pause.is_zero() {
            return Poll::Ready(());
        }
        let sleep = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
        ready!(sleep.as_mut().poll(cx));
        self.pause = None;
        self.rested = true;
        Poll::Ready(())
    }

    fn next_beat(&mut self) {
        self.beats.pop_front();
        self.said = 0;
        self.rested = false;
    }

    /// The piece of the first beat that comes next, if there is more of it.
    fn piece(&mut self) -> Option<ChatEvent> {
        self.rested = false;
        match self.beats.front_mut()? {
            Beat::Text(text) if self.said == 0 && !text.is_empty() => {
                self.said = 1;
                Some(ChatEvent::Text(std::mem::take(text)))
            }
            Beat::Thought(thought) if self.said == 0 && !thought.is_empty() => {
                self.said = 1;
                Some(ChatEvent::Thought(std::mem::take(thought)))
            }
            Beat::Words(words) => {
                let rest = words.get(usize::try_from(self.said).ok()?..)?;
                let word = first_word(rest);
                self.said += word.len() as u64;
                (!word.is_empty()).then(|| ChatEvent::Text(word.to_owned()))
            }
            Beat::Repeat { text, times, .. } if self.said < *times && !text.is_empty() => {
                self.said += 1;
                Some(ChatEvent::Text(text.clone()))
            }
            _ => None,
        }
    }
}

impl Stream for Play {
    type Item = Result<ChatEvent, ChatError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let play = self.get_mut();
        while let Some(beat) = play.beats.front() {
            let pause = match beat {
                Beat::Wait(pause) => *pause,
                Beat::Words(words) if play.said < words.len() as u64 => play.pace,
                Beat::Repeat { every, times, .. } if play.said < *times => *every,
                _ => Duration::ZERO,
            };
            ready!(play.poll_rest(pause, cx));
            if matches!(play.beats.front(), Some(Beat::Repeat { .. })) && !play.rested {
                // A model's tokens come one at a time: each gets a turn of the scheduler of its own.
                play.rested = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some(event) = play.piece() {
                return Poll::Ready(Some(Ok(event)));
            }
            play.next_beat();
        }
        Poll::Ready(play.end.take().map(|end| match end {
            End::Done(reply) => Ok(ChatEvent::Done(reply)),
            End::SocketError(error) => Err(error),
        }))
    }
}

/// The longest piece that goes out at once, in bytes, for texts without spaces.
const LONGEST_PIECE: usize = 48;

/// The first word with the space after it.
fn first_word(text: &str) -> &str {
    let mut in_word = false;
    for (at, letter) in text.char_indices() {
        match letter.is_whitespace() {
            false if in_word && text[..at].ends_with(char::is_whitespace) => return &text[..at],
            false => in_word = true,
            true => {}
        }
        if at >= LONGEST_PIECE {
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
        assert!(pieces.len() > 5 && pieces.iter().all(|piece| piece.len() <= LONGEST_PIECE + 4));
        assert_eq!(pieces.concat(), long);
    }
}
