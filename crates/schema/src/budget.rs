//! How much work judging one value may take, counted in steps.
//!
//! A step is one visit of a schema node, one comparison with an option, one state of a pattern's automaton at one
//! character. Steps are counted and time is not, so that the same value gets the same verdict on every machine.

/// Steps that one value may take before it is refused as too complex.
pub const MAX_STEPS: u64 = 10_000_000;

/// Schemas within schemas that judge or fill a value at one time. Each takes room on the stack.
pub(crate) const MAX_DEPTH: usize = 1_500;

/// The work ran out before there was a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BudgetExhausted;

/// The steps that are left.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
    given: u64,
}

impl Budget {
    pub(crate) fn new(steps: u64) -> Self {
        Self { left: steps, given: steps }
    }

    /// Pays for work that is about to be done.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), BudgetExhausted> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(BudgetExhausted)
            }
        }
    }

    /// Pays for work if half of the budget remains afterwards: for ways that are faster than their worst case tells.
    pub(crate) fn spend_spare(&mut self, steps: u64) -> bool {
        let is_spare = self.left.checked_sub(steps).is_some_and(|left| left >= self.given / 2);
        if is_spare {
            self.left -= steps;
        }
        is_spare
    }

    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    pub(crate) fn spent(&self) -> u64 {
        self.given - self.left
    }
}
