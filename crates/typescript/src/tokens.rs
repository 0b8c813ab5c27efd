//! The tokens of a source. The tree does not tell where a comma, a `?` or a modifier stands; they do.

use oxc_parser::{Kind, Token};

/// All tokens of a file, in order.
#[derive(Clone, Copy)]
pub(crate) struct Tokens<'t>(&'t [Token]);

impl<'t> Tokens<'t> {
    pub(crate) fn new(tokens: &'t [Token]) -> Self {
        Self(tokens)
    }

    /// The first token that begins at an offset or after it.
    pub(crate) fn next(self, offset: u32) -> Option<Token> {
        self.0.get(self.index(offset)).copied()
    }

    /// The first token at an offset or after it, if it is of one kind.
    pub(crate) fn next_if(self, offset: u32, kind: Kind) -> Option<Token> {
        self.next(offset).filter(|token| token.kind() == kind)
    }

    /// The last token that begins before an offset.
    pub(crate) fn previous(self, offset: u32) -> Option<Token> {
        self.0[..self.index(offset)].last().copied()
    }

    /// The tokens that begin between two offsets.
    pub(crate) fn between(self, start: u32, end: u32) -> &'t [Token] {
        let (start, end) = (self.index(start), self.index(end));
        &self.0[start..end.max(start)]
    }

    fn index(self, offset: u32) -> usize {
        self.0.partition_point(|token| token.start() < offset)
    }
}
