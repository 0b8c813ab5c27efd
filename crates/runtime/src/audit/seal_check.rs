//! Compares the ends of closed segments with those in the seal file, along with the chain.

use std::io;
use std::path::Path;

use super::chain::ChainHead;
use super::segment::{Seal, SealReader};
use super::verify::SealVerification;

pub(super) struct SealCheck {
    reader: SealReader,
    /// The next seal, which the chain has not come to.
    next: Option<Seal>,
    /// The last segment whose seal agrees.
    last: Option<u64>,
    sealed: u64,
}

impl SealCheck {
    pub(super) fn open(path: &Path, node: &str) -> io::Result<Self> {
        let mut reader = SealReader::open(path, node)?;
        let next = reader.next()?;
        Ok(Self { reader, next, last: None, sealed: 0 })
    }

    /// Compares the line that the chain has come to.
    pub(super) fn compare(&mut self, head: &ChainHead) -> Result<(), String> {
        // Seals before it are of segments that were cut, or were written twice.
        while let Some(seal) = self.next.take_if(|seal| seal.last <= head.seq) {
            self.next =
                self.reader.next().map_err(|error| format!("the seal file cannot be read: {error}"))?;
            if seal.last < head.seq {
                continue;
            }
            if seal.hash != head.hash {
                return Err(format!(
                    "line {} is not the one that the seal file has as the end of segment {}: the trail was rewritten",
                    head.seq, seal.segment
                ));
            }
            if let Some(last) = self.last.filter(|last| *last + 1 < seal.segment) {
                return Err(format!(
                    "segment {}, which ends before line {}, has no seal, and later ones have: the seal file was changed",
                    last + 1,
                    head.seq
                ));
            }
            self.last = Some(seal.segment);
            self.sealed += 1;
        }
        Ok(())
    }

    /// What the seal file has beyond the end of the log.
    pub(super) fn unseen(&self, head: &ChainHead) -> Option<String> {
        self.next.as_ref().map(|seal| {
            format!(
                "the trail ends at line {}, and the seal file has line {} as the end of segment {}: it was cut off or replaced",
                head.seq, seal.last, seal.segment
            )
        })
    }

    pub(super) fn summary(&self, closed_segments: u64) -> SealVerification {
        SealVerification { sealed: self.sealed, unsealed: closed_segments.saturating_sub(self.sealed) }
    }
}
