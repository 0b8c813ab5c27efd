//! Automatons: a pattern as a list of small instructions.

use std::collections::HashMap;

use super::PatternError;
use super::charset::CharSet;
use super::syntax::{Assertion, Direction, Look, Node, Parsed};

/// An instruction's number.
pub(super) type Address = usize;

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instruction {
    /// Takes one character of the set of that number.
    Take(usize, Address),
    /// Goes on only where this holds.
    Assert(Assertion, Address),
    /// Goes on at both.
    Split(Address, Address),
    Match,
}

/// The automaton of the pattern or of one look-around.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) instructions: Vec<Instruction>,
    pub(super) sets: Vec<CharSet>,
    pub(super) start: Address,
    /// For a look-around: where it looks, and whether it must fail there.
    pub(super) look: Option<(Direction, bool)>,
}

impl Program {
    pub(super) fn size(&self) -> usize {
        self.instructions.len()
    }

    /// Whether the look-around holds where its inside does not match.
    pub(super) fn is_negated(&self) -> bool {
        matches!(self.look, Some((_, true)))
    }

    /// Which way the text is read. What lies ahead is found by reading the text, and the pattern, backwards.
    pub(super) fn reads_backwards(&self) -> bool {
        matches!(self.look, Some((Direction::Ahead, _)))
    }
}

/// The automatons of the look-arounds, then that of the whole, of at most `max` instructions together.
pub(super) fn compile(parsed: &Parsed, max: usize) -> Result<Vec<Program>, PatternError> {
    let nodes = parsed.looks.iter().map(|look| &look.inner).chain([&parsed.root]);
    let total = nodes.fold(0_usize, |total, node| total.saturating_add(written_out(node)).saturating_add(1));
    if total > max {
        return Err(PatternError::TooLarge);
    }
    let looks = parsed.looks.iter().map(|look: &Look| {
        program(&look.inner, look.direction == Direction::Ahead, Some((look.direction, look.is_negated)))
    });
    Ok(looks.chain([program(&parsed.root, false, None)]).collect())
}

/// At least the number of instructions that a node becomes, and of steps that making them takes.
fn written_out(node: &Node) -> usize {
    match node {
        Node::Empty | Node::Set(_) | Node::Assert(_) => 1,
        Node::Sequence(parts) | Node::Choice(parts) => {
            parts.iter().fold(parts.len(), |size, part| size.saturating_add(written_out(part)))
        }
        Node::Repeat { inner, min, max } => {
            let times = max.unwrap_or(min.saturating_add(1)).max(1) as usize;
            written_out(inner).saturating_add(1).saturating_mul(times)
        }
    }
}

fn program(node: &Node, is_reversed: bool, look: Option<(Direction, bool)>) -> Program {
    let mut builder = Builder {
        instructions: vec![Instruction::Match],
        sets: Vec::new(),
        known: HashMap::new(),
        is_reversed,
    };
    let start = builder.node(node, 0);
    Program { instructions: builder.instructions, sets: builder.sets, start, look }
}

/// Builds from the end: every instruction is made when it is known where it leads.
struct Builder<'n> {
    instructions: Vec<Instruction>,
    sets: Vec<CharSet>,
    known: HashMap<&'n CharSet, usize>,
    is_reversed: bool,
}

impl<'n> Builder<'n> {
    /// Where to start for `node` and then `next`.
    fn node(&mut self, node: &'n Node, next: Address) -> Address {
        match node {
            Node::Empty => next,
            Node::Set(set) => {
                let set = self.set(set);
                self.push(Instruction::Take(set, next))
            }
            Node::Assert(assertion) => self.push(Instruction::Assert(*assertion, next)),
            Node::Sequence(parts) if self.is_reversed => {
                parts.iter().fold(next, |next, part| self.node(part, next))
            }
            Node::Sequence(parts) => parts.iter().rev().fold(next, |next, part| self.node(part, next)),
            Node::Choice(parts) => {
                let starts: Vec<Address> = parts.iter().map(|part| self.node(part, next)).collect();
                starts
                    .into_iter()
                    .reduce(|left, right| self.push(Instruction::Split(left, right)))
                    .unwrap_or(next)
            }
            Node::Repeat { inner, min, max } => self.repeat(inner, *min, *max, next),
        }
    }

    fn repeat(&mut self, inner: &'n Node, min: u32, max: Option<u32>, next: Address) -> Address {
        let mut start = next;
        match max {
            None => {
                // The loop's own instruction comes first, because its inside leads back to it.
                let around = self.push(Instruction::Split(next, next));
                let inside = self.node(inner, around);
                self.instructions[around] = Instruction::Split(inside, next);
                start = around;
            }
            Some(max) => {
                for _ in min..max {
                    let inside = self.node(inner, start);
                    start = self.push(Instruction::Split(inside, next));
                }
            }
        }
        (0..min).fold(start, |start, _| self.node(inner, start))
    }

    fn set(&mut self, set: &'n CharSet) -> usize {
        if let Some(number) = self.known.get(set) {
            return *number;
        }
        self.sets.push(set.clone());
        self.known.insert(set, self.sets.len() - 1);
        self.sets.len() - 1
    }

    fn push(&mut self, instruction: Instruction) -> Address {
        self.instructions.push(instruction);
        self.instructions.len() - 1
    }
}
