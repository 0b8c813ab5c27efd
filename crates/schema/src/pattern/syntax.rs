//! Parses a pattern whose grammar was found to be right, with groups that capture as groups that do not.

use super::PatternError;
use super::charset::{CharSet, CharSetBuilder};

/// Groups nested deeper than this are refused: parsing recurses.
const MAX_GROUP_DEPTH: usize = 100;

/// A pattern.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) root: Node,
    /// The look-arounds, inner ones before those around them.
    pub(super) looks: Vec<Look>,
}

/// A part of a pattern.
#[derive(Debug)]
pub(super) enum Node {
    Empty,
    Set(CharSet),
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    Repeat { inner: Box<Node>, min: u32, max: Option<u32> },
    Assert(Assertion),
}

/// What must hold at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assertion {
    Start,
    End,
    WordBoundary,
    NotWordBoundary,
    /// The look-around of that number.
    Look(usize),
}

/// A look-around.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) direction: Direction,
    pub(super) is_negated: bool,
    pub(super) inner: Node,
}

/// Where a look-around looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Ahead,
    Behind,
}

pub(super) fn parse(source: &str) -> Result<Parsed, PatternError> {
    let characters: Vec<char> = source.chars().collect();
    let mut parser = Parser { characters: &characters, at: 0, depth: 0, looks: Vec::new() };
    let root = parser.choice()?;
    if parser.at < characters.len() {
        return Err(parser.unexpected());
    }
    Ok(Parsed { root, looks: parser.looks })
}

struct Parser<'p> {
    characters: &'p [char],
    at: usize,
    depth: usize,
    looks: Vec<Look>,
}

impl Parser<'_> {
    fn choice(&mut self) -> Result<Node, PatternError> {
        let mut branches = vec![self.sequence()?];
        while self.eat("|") {
            branches.push(self.sequence()?);
        }
        Ok(single_or(branches, Node::Choice))
    }

    fn sequence(&mut self) -> Result<Node, PatternError> {
        let mut parts = Vec::new();
        while let Some(next) = self.peek() {
            if matches!(next, '|' | ')') {
                break;
            }
            let part = self.atom()?;
            parts.push(self.repeated(part)?);
        }
        Ok(if parts.is_empty() { Node::Empty } else { single_or(parts, Node::Sequence) })
    }

    fn atom(&mut self) -> Result<Node, PatternError> {
        let Some(next) = self.peek() else { return Err(self.unexpected()) };
        match next {
            '(' => return self.group(),
            '[' => return self.class(),
            '\\' => return self.escape(),
            '*' | '+' | '?' | '{' => return Err(self.unexpected()),
            _ => self.at += 1,
        }
        Ok(match next {
            '^' => Node::Assert(Assertion::Start),
            '$' => Node::Assert(Assertion::End),
            '.' => Node::Set(CharSet::dot()),
            literal => Node::Set(CharSet::one(literal as u32)),
        })
    }

    fn repeated(&mut self, inner: Node) -> Result<Node, PatternError> {
        let (min, max) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.at += 1;
                let bounds = self.bounds();
                return self.repeat(inner, bounds.ok_or_else(|| self.unexpected())?);
            }
            _ => return Ok(inner),
        };
        self.at += 1;
        self.repeat(inner, (min, max))
    }

    fn repeat(&mut self, inner: Node, (min, max): (u32, Option<u32>)) -> Result<Node, PatternError> {
        // Whether as much or as little as possible is taken makes no difference to whether there is a match.
        self.eat("?");
        if max.is_some_and(|max| min > max) {
            return Err(self.unexpected());
        }
        Ok(Node::Repeat { inner: Box::new(inner), min, max })
    }

    /// What follows `{`, up to and with `}`.
    fn bounds(&mut self) -> Option<(u32, Option<u32>)> {
        let min = self.number()?;
        let max = match self.eat(",") {
            false => Some(min),
            true if self.peek() == Some('}') => None,
            true => Some(self.number()?),
        };
        self.eat("}").then_some((min, max))
    }

    fn number(&mut self) -> Option<u32> {
        let mut number: Option<u32> = None;
        while let Some(digit) = self.peek().and_then(|next| next.to_digit(10)) {
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit));
            self.at += 1;
        }
        number
    }

    fn group(&mut self) -> Result<Node, PatternError> {
        self.depth += 1;
        if self.depth > MAX_GROUP_DEPTH {
            return Err(PatternError::TooLarge);
        }
        let look = [
            ("(?=", Direction::Ahead, false),
            ("(?!", Direction::Ahead, true),
            ("(?<=", Direction::Behind, false),
            ("(?<!", Direction::Behind, true),
        ]
        .into_iter()
        .find(|(start, ..)| self.eat(start));
        if look.is_none() && !self.eat("(?:") {
            if self.eat("(?<") {
                while self.next().is_some_and(|next| next != '>') {}
            } else {
                self.eat("(");
            }
        }
        let inner = self.choice()?;
        if !self.eat(")") {
            return Err(self.unexpected());
        }
        self.depth -= 1;
        Ok(match look {
            None => inner,
            Some((_, direction, is_negated)) => {
                self.looks.push(Look { direction, is_negated, inner });
                Node::Assert(Assertion::Look(self.looks.len() - 1))
            }
        })
    }

    fn escape(&mut self) -> Result<Node, PatternError> {
        Ok(match self.characters.get(self.at + 1) {
            Some('b') => self.assert(Assertion::WordBoundary),
            Some('B') => self.assert(Assertion::NotWordBoundary),
            Some('1'..='9' | 'k') => return Err(PatternError::BackReference),
            _ => match self.class_atom()? {
                Atom::One(code) => Node::Set(CharSet::one(code)),
                Atom::Many(set) => Node::Set(set),
            },
        })
    }

    fn assert(&mut self, assertion: Assertion) -> Node {
        self.at += 2;
        Node::Assert(assertion)
    }

    fn class(&mut self) -> Result<Node, PatternError> {
        self.eat("[");
        let is_negated = self.eat("^");
        let mut set = CharSetBuilder::default();
        while !self.eat("]") {
            let first = self.class_atom()?;
            let is_range = self.peek() == Some('-') && self.characters.get(self.at + 1) != Some(&']');
            match (first, is_range) {
                (Atom::Many(many), false) => set.add_all(&many),
                (Atom::One(code), false) => set.add((code, code)),
                (first, true) => {
                    self.at += 1;
                    match (first, self.class_atom()?) {
                        (Atom::One(first), Atom::One(last)) if first <= last => set.add((first, last)),
                        _ => return Err(self.unexpected()),
                    }
                }
            }
        }
        let set = set.finish();
        Ok(Node::Set(if is_negated { set.negated() } else { set }))
    }

    /// One character, or an escape that stands for one or for many.
    fn class_atom(&mut self) -> Result<Atom, PatternError> {
        let Some(next) = self.next() else { return Err(self.unexpected()) };
        if next != '\\' {
            return Ok(Atom::One(next as u32));
        }
        let Some(escaped) = self.next() else { return Err(self.unexpected()) };
        if let Some(set) = CharSet::escape(escaped) {
            return Ok(Atom::Many(set));
        }
        Ok(Atom::One(match escaped {
            'p' | 'P' => return self.property(escaped == 'P'),
            'b' => 0x08,
            't' => 0x09,
            'n' => 0x0A,
            'v' => 0x0B,
            'f' => 0x0C,
            'r' => 0x0D,
            '0' => 0,
            'c' => self.next().ok_or_else(|| self.unexpected())? as u32 % 32,
            'x' => self.digits(2)?,
            'u' => self.code_point()?,
            other => other as u32,
        }))
    }

    fn property(&mut self, is_negated: bool) -> Result<Atom, PatternError> {
        if !self.eat("{") {
            return Err(self.unexpected());
        }
        let mut name = String::new();
        loop {
            match self.next() {
                Some('}') => break,
                Some(letter) => name.push(letter),
                None => return Err(self.unexpected()),
            }
        }
        let set = CharSet::property(&name)?;
        Ok(Atom::Many(if is_negated { set.negated() } else { set }))
    }

    /// What follows `\u`. Two halves of a surrogate pair are one character.
    fn code_point(&mut self) -> Result<u32, PatternError> {
        if self.eat("{") {
            let mut code: u32 = 0;
            loop {
                match self.next() {
                    Some('}') => return Ok(code),
                    Some(digit) => {
                        let digit = digit.to_digit(16).ok_or_else(|| self.unexpected())?;
                        code = code.saturating_mul(16).saturating_add(digit);
                    }
                    None => return Err(self.unexpected()),
                }
            }
        }
        let high = self.digits(4)?;
        let after = self.at;
        if (0xD800..0xDC00).contains(&high) && self.eat("\\u") {
            match self.digits(4) {
                Ok(low @ 0xDC00..0xE000) => return Ok(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)),
                _ => self.at = after,
            }
        }
        Ok(high)
    }

    fn digits(&mut self, count: usize) -> Result<u32, PatternError> {
        (0..count).try_fold(0, |code, _| {
            let digit = self.next().and_then(|next| next.to_digit(16)).ok_or_else(|| self.unexpected())?;
            Ok(code * 16 + digit)
        })
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    fn eat(&mut self, text: &str) -> bool {
        let is_there = self.characters[self.at..].iter().take(text.len()).copied().eq(text.chars());
        if is_there {
            self.at += text.len();
        }
        is_there
    }

    fn unexpected(&self) -> PatternError {
        PatternError::Grammar(format!("unexpected character at {}", self.at))
    }
}

enum Atom {
    One(u32),
    Many(CharSet),
}

fn single_or(mut parts: Vec<Node>, several: fn(Vec<Node>) -> Node) -> Node {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            several(parts)
        }
        None => Node::Empty,
    }
}
