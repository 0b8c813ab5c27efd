//! The text that comes out: the source, with spaces where something was erased.

use std::collections::BTreeMap;

use oxc_span::Span;

/// What is done to a source. Nothing is moved, so the order in which changes are noted does not matter.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    erased: Vec<(usize, usize)>,
    /// What stands in the place of a character, by its offset.
    placed: BTreeMap<usize, char>,
}

impl Changes {
    pub(crate) fn erase(&mut self, span: Span) {
        self.erased.push((span.start as usize, span.end as usize));
    }

    /// Puts a character where another one is erased.
    pub(crate) fn place(&mut self, offset: u32, character: char) {
        self.placed.insert(offset as usize, character);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.erased.is_empty()
    }

    pub(crate) fn apply(mut self, source: &str) -> String {
        self.erased.sort_unstable();
        let mut text = String::with_capacity(source.len());
        let mut done = 0;
        for (start, end) in self.erased {
            // What is erased may lie within something that is erased as well.
            let start = start.max(done);
            if start >= end {
                continue;
            }
            text.push_str(&source[done..start]);
            for (at, character) in source[start..end].char_indices() {
                text.push(match self.placed.get(&(start + at)) {
                    Some(placed) => *placed,
                    None if is_line_end(character) => character,
                    None => ' ',
                });
            }
            done = end;
        }
        text.push_str(&source[done..]);
        text
    }
}

pub(crate) fn has_line_end(text: &str) -> bool {
    text.contains(is_line_end)
}

/// JavaScript has four.
fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}
