//! Runs automatons over a text, all their states at once and every step counted.

use std::ops::ControlFlow;

use super::program::{Address, Instruction, Program};
use super::syntax::Assertion;
use crate::budget::{Budget, BudgetExhausted};

/// Whether the last of the automatons matches anywhere; those before it are its look-arounds.
pub(super) fn is_match(
    programs: &[Program],
    text: &str,
    budget: &mut Budget,
) -> Result<bool, BudgetExhausted> {
    let Some((whole, looks)) = programs.split_last() else { return Ok(false) };
    budget.spend(text.len() as u64)?;
    let characters: Vec<char> = text.chars().collect();
    let mut tables = Vec::with_capacity(looks.len());
    for look in looks {
        budget.spend(characters.len() as u64 / 8 + 1)?;
        let mut table = vec![false; characters.len() + 1];
        Scan::new(look, &characters, &tables, budget).run(|position| {
            table[position] = true;
            ControlFlow::Continue(())
        })?;
        if look.is_negated() {
            table.iter_mut().for_each(|holds| *holds = !*holds);
        }
        tables.push(table);
    }
    let mut is_found = false;
    Scan::new(whole, &characters, &tables, budget).run(|_| {
        is_found = true;
        ControlFlow::Break(())
    })?;
    Ok(is_found)
}

struct Scan<'s> {
    program: &'s Program,
    characters: &'s [char],
    /// For every look-around before this one, the positions at which it holds.
    tables: &'s [Vec<bool>],
    budget: &'s mut Budget,
    current: States,
    following: States,
    waiting: Vec<Address>,
}

impl<'s> Scan<'s> {
    fn new(
        program: &'s Program,
        characters: &'s [char],
        tables: &'s [Vec<bool>],
        budget: &'s mut Budget,
    ) -> Self {
        let states = || States::new(program.size());
        let (current, following) = (states(), states());
        Self { program, characters, tables, budget, current, following, waiting: Vec::new() }
    }

    /// Calls `found` with every position at which a match that began anywhere before ends, in the direction of reading.
    fn run(mut self, mut found: impl FnMut(usize) -> ControlFlow<()>) -> Result<(), BudgetExhausted> {
        let end = self.characters.len();
        self.budget.spend(self.program.size() as u64)?;
        for read in 0..=end {
            let position = if self.program.reads_backwards() { end - read } else { read };
            self.enter(self.program.start, position)?;
            if self.current.contains_match && found(position).is_break() {
                return Ok(());
            }
            if read < end {
                self.take(position)?;
            }
        }
        Ok(())
    }

    /// Follows one character from `position` on.
    fn take(&mut self, position: usize) -> Result<(), BudgetExhausted> {
        let (character, next) = match self.program.reads_backwards() {
            true => (self.characters[position - 1], position - 1),
            false => (self.characters[position], position + 1),
        };
        let states = std::mem::take(&mut self.current.listed);
        self.budget.spend(states.len() as u64 + 1)?;
        self.current.clear();
        std::mem::swap(&mut self.current, &mut self.following);
        for state in &states {
            if let Instruction::Take(set, then) = self.program.instructions[*state]
                && self.program.sets[set].contains(character)
            {
                self.enter(then, next)?;
            }
        }
        self.following.listed = states;
        self.following.listed.clear();
        Ok(())
    }

    /// Adds a state and everything that follows from it without taking a character.
    fn enter(&mut self, address: Address, position: usize) -> Result<(), BudgetExhausted> {
        self.waiting.push(address);
        while let Some(address) = self.waiting.pop() {
            self.budget.spend(1)?;
            if !self.current.insert(address) {
                continue;
            }
            match self.program.instructions[address] {
                Instruction::Take(..) => self.current.listed.push(address),
                Instruction::Match => self.current.contains_match = true,
                Instruction::Split(left, right) => self.waiting.extend([right, left]),
                Instruction::Assert(assertion, next) => {
                    if self.holds(assertion, position) {
                        self.waiting.push(next);
                    }
                }
            }
        }
        Ok(())
    }

    fn holds(&self, assertion: Assertion, position: usize) -> bool {
        match assertion {
            Assertion::Start => position == 0,
            Assertion::End => position == self.characters.len(),
            Assertion::WordBoundary => self.is_boundary(position),
            Assertion::NotWordBoundary => !self.is_boundary(position),
            Assertion::Look(number) => self.tables[number][position],
        }
    }

    fn is_boundary(&self, position: usize) -> bool {
        let is_word = |at: Option<&char>| at.is_some_and(|at| at.is_ascii_alphanumeric() || *at == '_');
        let before = position.checked_sub(1).and_then(|before| self.characters.get(before));
        is_word(before) != is_word(self.characters.get(position))
    }
}

/// A set of states that is emptied without being walked.
#[derive(Debug, Default)]
struct States {
    /// The round in which a state was last added.
    seen: Vec<u32>,
    round: u32,
    /// The states that take a character.
    listed: Vec<Address>,
    contains_match: bool,
}

impl States {
    fn new(size: usize) -> Self {
        Self { seen: vec![0; size], round: 1, listed: Vec::new(), contains_match: false }
    }

    fn insert(&mut self, address: Address) -> bool {
        let is_new = self.seen[address] != self.round;
        self.seen[address] = self.round;
        is_new
    }

    fn clear(&mut self) {
        self.listed.clear();
        self.contains_match = false;
        self.round = match self.round.checked_add(1) {
            Some(round) => round,
            None => {
                self.seen.fill(0);
                1
            }
        };
    }
}
