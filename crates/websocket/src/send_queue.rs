//! Frames queued to be sent.

use std::collections::VecDeque;

use crate::frame::{FrameHeader, MAX_HEADER_BYTES, Opcode, apply_mask};
use crate::socket::Role;

/// A larger buffer is freed once it is empty.
const MAX_IDLE_BYTES: usize = 16 << 10;
/// Bytes already sent that may stay at the front of the buffer before it is moved.
const MAX_SENT_BYTES: usize = 32 << 10;
const MASKS_PER_DRAW: usize = 64;

/// Whether a queued frame may be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// May be dropped: it is worth nothing when it is old.
    Audio,
    /// Must arrive.
    Control,
}

#[derive(Debug)]
pub(crate) struct SendQueue {
    bytes: Vec<u8>,
    sent: usize,
    /// Where each frame ends that was not sent completely.
    frames: VecDeque<(usize, Class)>,
    /// Whether a part of the first of them was sent: then the rest must follow.
    is_partly_sent: bool,
    masks: Option<Masks>,
}

impl SendQueue {
    pub(crate) fn new(role: Role) -> Self {
        let masks = (role == Role::Client).then(Masks::default);
        Self { bytes: Vec::new(), sent: 0, frames: VecDeque::new(), is_partly_sent: false, masks }
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
        // In one step, because `fill` may append in small pieces.
        self.bytes.reserve(length + MAX_HEADER_BYTES);
        FrameHeader::write(&mut self.bytes, opcode, length, mask);
        let begin = self.bytes.len();
        fill(&mut self.bytes);
        debug_assert_eq!(self.bytes.len(), begin + length, "a frame is as long as it says");
        // A frame of another length would corrupt everything after it.
        self.bytes.resize(begin + length, b' ');
        if let Some(mask) = mask {
            apply_mask(&mut self.bytes[begin..], mask);
        }
        self.frames.push_back((self.bytes.len(), class));
    }

    pub(crate) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Says that `count` bytes of [`Self::unsent`] were sent.
    pub(crate) fn mark_sent(&mut self, count: usize) {
        self.sent += count;
        self.is_partly_sent |= count > 0;
        while let Some((end, _)) = self.frames.pop_front_if(|(end, _)| *end <= self.sent) {
            self.is_partly_sent = self.sent > end;
        }
        if self.sent == self.bytes.len() {
            self.sent = 0;
            if self.bytes.capacity() > MAX_IDLE_BYTES {
                self.bytes = Vec::new();
            }
            self.bytes.clear();
        } else if self.sent > MAX_SENT_BYTES {
            let moved = self.sent;
            self.bytes.drain(..moved);
            self.sent = 0;
            for (end, _) in &mut self.frames {
                *end -= moved;
            }
        }
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub(crate) fn queued_control_bytes(&self) -> usize {
        let (mut control, mut start) = (0, self.sent);
        for (end, class) in &self.frames {
            control += if *class == Class::Control { end - start } else { 0 };
            start = *end;
        }
        control
    }

    /// Drops queued audio of which nothing was sent, the oldest first, until at most `keep` bytes of it are left.
    pub(crate) fn drop_audio(&mut self, keep: usize) -> usize {
        let frames = std::mem::take(&mut self.frames);
        let mut queued: usize = 0;
        let mut start = self.sent;
        for (end, class) in &frames {
            queued += if *class == Class::Audio { end - start } else { 0 };
            start = *end;
        }
        let (mut kept, mut dropped) = (0, 0);
        let mut start = self.sent;
        for (place, (end, class)) in frames.into_iter().enumerate() {
            let length = end - start;
            let is_partly_sent = place == 0 && self.is_partly_sent;
            let is_dropped = class == Class::Audio && !is_partly_sent && queued > keep;
            if is_dropped {
                queued -= length;
                dropped += length;
            } else {
                self.bytes.copy_within(start..end, kept);
                kept += length;
                self.frames.push_back((kept, class));
            }
            start = end;
        }
        self.bytes.truncate(kept);
        self.bytes.shrink_to(MAX_IDLE_BYTES);
        self.sent = 0;
        dropped
    }
}

/// Unpredictable masks, drawn from the operating system several at a time.
#[derive(Debug, Default)]
struct Masks {
    drawn: Vec<[u8; 4]>,
}

impl Masks {
    fn next(&mut self) -> [u8; 4] {
        if self.drawn.is_empty() {
            let mut bytes = [0; 4 * MASKS_PER_DRAW];
            // Without random numbers frames still arrive; the mask protects proxies, not secrets.
            let _ = getrandom::fill(&mut bytes);
            self.drawn = bytes.as_chunks().0.to_vec();
        }
        self.drawn.pop().unwrap_or_default()
    }
}
