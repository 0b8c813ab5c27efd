//! What waits to be sent.

use std::collections::VecDeque;

use crate::frame::{Head, LONGEST_HEAD, Opcode, apply_mask};
use crate::socket::Role;

/// From this size on the buffer is given back when it is empty.
const LARGE: usize = 16 << 10;
/// How much that was sent may lie in front of what was not.
const MOST_SENT: usize = 32 << 10;
/// How many masks are drawn at once.
const MASKS: usize = 64;

/// Whether a frame may be thrown away while it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It is worth nothing when it is old.
    Audio,
    /// It must arrive.
    Control,
}

#[derive(Debug)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
    /// Where each frame ends that was not sent whole.
    frames: VecDeque<(usize, Class)>,
    /// Whether some of the first of them was sent: then the rest must follow.
    is_begun: bool,
    masks: Option<Masks>,
}

impl Outbox {
    pub(crate) fn new(role: Role) -> Self {
        let masks = (role == Role::Client).then(Masks::default);
        Self { bytes: Vec::new(), sent: 0, frames: VecDeque::new(), is_begun: false, masks }
    }

    /// Appends a frame whose payload has exactly this length and is written by `fill`.
    pub(crate) fn push(
        &mut self,
        opcode: Opcode,
        class: Class,
        length: usize,
        fill: impl FnOnce(&mut Vec<u8>),
    ) {
        let mask = self.masks.as_mut().map(Masks::next);
        // At once, so that whoever fills it by exact amounts does not have it copied each time.
        self.bytes.reserve(length + LONGEST_HEAD);
        Head::write(&mut self.bytes, opcode, length, mask);
        let begin = self.bytes.len();
        fill(&mut self.bytes);
        debug_assert_eq!(self.bytes.len(), begin + length, "a frame is as long as it says");
        // A frame of another length would make nonsense of everything after it.
        self.bytes.resize(begin + length, b' ');
        if let Some(mask) = mask {
            apply_mask(&mut self.bytes[begin..], mask);
        }
        self.frames.push_back((self.bytes.len(), class));
    }

    /// What is to be sent next.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// That much was sent.
    pub(crate) fn sent(&mut self, count: usize) {
        self.sent += count;
        self.is_begun |= count > 0;
        while let Some((end, _)) = self.frames.pop_front_if(|(end, _)| *end <= self.sent) {
            self.is_begun = self.sent > end;
        }
        if self.sent == self.bytes.len() {
            self.sent = 0;
            if self.bytes.capacity() > LARGE {
                self.bytes = Vec::new();
            }
            self.bytes.clear();
        } else if self.sent > MOST_SENT {
            let begun = self.sent;
            self.bytes.drain(..begun);
            self.sent = 0;
            for (end, _) in &mut self.frames {
                *end -= begun;
            }
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// How much of it may not be thrown away.
    pub(crate) fn queued_control_bytes(&self) -> usize {
        let (mut control, mut start) = (0, self.sent);
        for (end, class) in &self.frames {
            control += if *class == Class::Control { end - start } else { 0 };
            start = *end;
        }
        control
    }

    /// Throws away audio that was not begun, the oldest first, until at most `keep` bytes of it wait.
    pub(crate) fn drop_audio(&mut self, keep: usize) -> usize {
        let frames = std::mem::take(&mut self.frames);
        let mut waiting: usize = 0;
        let mut start = self.sent;
        for (end, class) in &frames {
            waiting += if *class == Class::Audio { end - start } else { 0 };
            start = *end;
        }
        let (mut kept, mut dropped) = (0, 0);
        let mut start = self.sent;
        for (place, (end, class)) in frames.into_iter().enumerate() {
            let length = end - start;
            let is_begun = place == 0 && self.is_begun;
            let goes = class == Class::Audio && !is_begun && waiting > keep;
            if goes {
                waiting -= length;
                dropped += length;
            } else {
                self.bytes.copy_within(start..end, kept);
                kept += length;
                self.frames.push_back((kept, class));
            }
            start = end;
        }
        self.bytes.truncate(kept);
        self.bytes.shrink_to(LARGE);
        self.sent = 0;
        dropped
    }
}

/// Masks that nobody can foresee, drawn from the operating system some at a time.
#[derive(Debug, Default)]
struct Masks {
    drawn: Vec<[u8; 4]>,
}

impl Masks {
    fn next(&mut self) -> [u8; 4] {
        if self.drawn.is_empty() {
            let mut bytes = [0; 4 * MASKS];
            // Without random numbers frames still arrive; the mask protects proxies, not secrets.
            let _ = getrandom::fill(&mut bytes);
            self.drawn = bytes.as_chunks().0.to_vec();
        }
        self.drawn.pop().unwrap_or_default()
    }
}
