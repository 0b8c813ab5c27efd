//! Sets of characters.

use super::PatternError;
use crate::excerpt;

const LAST: u32 = 0x10_FFFF;

/// Ranges that are looked at before a set under construction is put in order: a class may name large sets often.
const MAX_UNSORTED_RANGES: usize = 8_192;

/// A set of code points, as ranges in ascending order that do not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct CharSet {
    ranges: Vec<(u32, u32)>,
    /// The first 128 code points as bits: most texts need no more.
    ascii: u128,
}

impl CharSet {
    pub(super) fn of(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut loose = CharSetBuilder::default();
        ranges.into_iter().for_each(|range| loose.add(range));
        loose.finish()
    }

    pub(super) fn one(code: u32) -> Self {
        Self::of([(code, code)])
    }

    /// `.`: everything but the ends of lines.
    pub(super) fn dot() -> Self {
        Self::of([(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)]).negated()
    }

    /// The set of `\d`, `\w` or `\s`; a capital letter means all others.
    pub(super) fn escape(letter: char) -> Option<Self> {
        let set = match letter.to_ascii_lowercase() {
            'd' => Self::of([(0x30, 0x39)]),
            'w' => Self::of([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]),
            's' => Self::of([
                (0x09, 0x0D),
                (0x20, 0x20),
                (0xA0, 0xA0),
                (0x1680, 0x1680),
                (0x2000, 0x200A),
                (0x2028, 0x2029),
                (0x202F, 0x202F),
                (0x205F, 0x205F),
                (0x3000, 0x3000),
                (0xFEFF, 0xFEFF),
            ]),
            _ => return None,
        };
        Some(if letter.is_ascii_uppercase() { set.negated() } else { set })
    }

    /// The set of `\p{name}`.
    pub(super) fn property(name: &str) -> Result<Self, PatternError> {
        use regex_syntax::hir::{Class, HirKind};
        let unknown = || PatternError::Unsupported(format!("the property \\p{{{}}}", excerpt::cut(name)));
        let parsed = regex_syntax::parse(&format!("\\p{{{name}}}")).map_err(|_| unknown())?;
        match parsed.kind() {
            HirKind::Class(Class::Unicode(class)) => {
                Ok(Self::of(class.ranges().iter().map(|range| (range.start() as u32, range.end() as u32))))
            }
            HirKind::Literal(literal) => std::str::from_utf8(&literal.0)
                .ok()
                .and_then(|text| text.chars().next())
                .map(|only| Self::one(only as u32))
                .ok_or_else(unknown),
            _ => Err(unknown()),
        }
    }

    pub(super) fn negated(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut start = 0;
        for (first, last) in &self.ranges {
            if *first > start {
                ranges.push((start, first - 1));
            }
            start = last + 1;
        }
        if start <= LAST {
            ranges.push((start, LAST));
        }
        Self::of(ranges)
    }

    pub(super) fn contains(&self, character: char) -> bool {
        let code = character as u32;
        if code < 128 {
            return self.ascii >> code & 1 == 1;
        }
        let after = self.ranges.partition_point(|(first, _)| *first <= code);
        after > 0 && self.ranges[after - 1].1 >= code
    }

    pub(super) fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }
}

/// A set under construction.
#[derive(Default)]
pub(super) struct CharSetBuilder {
    ranges: Vec<(u32, u32)>,
}

impl CharSetBuilder {
    pub(super) fn add(&mut self, range: (u32, u32)) {
        self.ranges.push(range);
        if self.ranges.len() > MAX_UNSORTED_RANGES {
            self.tidy();
        }
    }

    pub(super) fn add_all(&mut self, set: &CharSet) {
        set.ranges.iter().for_each(|range| self.add(*range));
    }

    pub(super) fn finish(mut self) -> CharSet {
        self.tidy();
        let mut ascii = 0;
        for (first, last) in &self.ranges {
            for code in *first..=(*last).min(127) {
                ascii |= 1 << code;
            }
        }
        CharSet { ranges: self.ranges, ascii }
    }

    fn tidy(&mut self) {
        self.ranges.sort_unstable();
        let mut kept: Vec<(u32, u32)> = Vec::with_capacity(self.ranges.len());
        for (first, last) in self.ranges.drain(..) {
            match kept.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => kept.push((first, last)),
            }
        }
        self.ranges = kept;
    }
}
