//! A compiled schema.

use std::sync::Arc;

use serde_json::Value;

use crate::budget::{Budget, BudgetExhausted, MAX_STEPS};
use crate::defaults::{Defaults, VisitMemo};
use crate::document::{self, Document};
use crate::explain::{self, Violation};
use crate::plan::{self, Cost, Plan};
use crate::{cycles, engine, prepare};

/// Steps that the validator crate, which counts none, may take at its worst.
const MAX_QUICK_STEPS: u64 = 2_000_000;

/// Steps that may be taken on a thread that others wait for: a hundredth of what a value may take at all.
const MAX_INLINE_STEPS: u64 = 100_000;

/// A schema that is ready to judge values.
#[derive(Debug)]
pub struct Schema {
    plan: Arc<Plan>,
    defaults: Defaults,
    quick: Option<Quick>,
    /// What judging a value costs by the plan, at most.
    cost: Cost,
}

/// The validator crate, for schemas whose cost can be told beforehand. It forgets what it has found out about a part of
/// a value, so that others could keep it busy for years.
#[derive(Debug)]
struct Quick {
    validator: jsonschema::Validator,
    cost: Cost,
}

/// What judging arguments has brought.
#[derive(Debug)]
pub struct Judgement {
    /// The pointers of the defaults that were filled in.
    pub filled: Vec<String>,
    /// Everything that is wrong; nothing if the arguments are accepted.
    pub violations: Vec<Violation>,
    /// The work it took, in steps.
    pub steps: u64,
}

/// Why a schema cannot be compiled at all.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct SchemaError {
    /// Where in the schema, as a JSON pointer.
    pub pointer: String,
    /// One sentence.
    pub reason: String,
}

impl Schema {
    /// Prepares `source` for judging. References never leave the document.
    ///
    /// What cannot be judged is refused; that a schema compiles does not mean that [`lint`](crate::lint()) approves.
    pub fn compile(source: &Value) -> Result<Self, SchemaError> {
        if !document::is_shallow(source) {
            return Err(SchemaError::at("", "the schema is nested too deeply"));
        }
        let source = prepare::prepared(source);
        let document = Document::new(&source);
        if let Some(pointer) = cycles::endless(&document).first() {
            return Err(SchemaError::at(pointer, "the reference leads back to itself for the same value"));
        }
        let plan = Arc::new(Plan::new(&document)?);
        let defaults = Defaults::new(&plan);
        let quick = match plan::cost_without_memo(&plan).filter(|cost| cost.steps(1) <= MAX_QUICK_STEPS) {
            Some(cost) => {
                let validator = engine::options(Some(&plan)).build(&source);
                Some(Quick { validator: validator.map_err(|error| unreadable(&error))?, cost })
            }
            None => {
                jsonschema::draft202012::meta::validate(&source).map_err(|error| unreadable(&error))?;
                None
            }
        };
        let cost = quick.as_ref().map_or_else(|| plan::cost_with_memo(&plan), |quick| quick.cost);
        Ok(Self { plan, defaults, quick, cost })
    }

    /// Whether the value is accepted as it stands. One that is too complex to tell is not.
    pub fn accepts(&self, value: &Value) -> bool {
        self.verdict(value, &mut Budget::new(MAX_STEPS)) == Ok(true)
    }

    /// Inserts the defaults of absent properties and returns the JSON pointers of what was inserted. Nothing is
    /// coerced and nothing removed. A value that is too complex is filled in part.
    pub fn fill_defaults(&self, value: &mut Value) -> Vec<String> {
        self.fill(value, &mut Budget::new(MAX_STEPS)).unwrap_or_default()
    }

    /// Everything that is wrong with the value as it stands, up to a thousand entries.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        self.violations_within(value, &mut Budget::new(MAX_STEPS))
    }

    /// Fills defaults into a call's arguments and judges the result: the pointers that were filled, or everything that
    /// is wrong. What was filled stays in either case.
    pub fn admit(&self, arguments: &mut Value) -> Result<Vec<String>, Vec<Violation>> {
        self.admit_if_quick(arguments).unwrap_or_else(|| self.admit_counted(arguments))
    }

    fn admit_counted(&self, arguments: &mut Value) -> Result<Vec<String>, Vec<Violation>> {
        let Judgement { filled, violations, .. } = self.judge(arguments);
        if violations.is_empty() { Ok(filled) } else { Err(violations) }
    }

    /// The same, with the work that it took. It never takes more than [`MAX_STEPS`]; arguments that
    /// would are refused.
    pub fn judge(&self, arguments: &mut Value) -> Judgement {
        let mut budget = Budget::new(MAX_STEPS);
        let (filled, violations) = match self.fill(arguments, &mut budget) {
            Ok(filled) => (filled, self.violations_within(arguments, &mut budget)),
            Err(BudgetExhausted) => (Vec::new(), vec![Violation::too_complex()]),
        };
        Judgement { filled, violations, steps: budget.spent() }
    }

    /// The same where it is a matter of a millisecond, as [`Schema::is_quick`] tells; nothing is done otherwise.
    pub fn admit_if_quick(&self, arguments: &mut Value) -> Option<Result<Vec<String>, Vec<Violation>>> {
        let size = size_within(arguments, self.cost, MAX_INLINE_STEPS)?;
        let filled_size = self.defaults.growth().map(|growth| size.saturating_mul(growth));
        let (Some(quick), Some(filled_size)) = (&self.quick, filled_size) else {
            return Some(self.admit_counted(arguments));
        };
        if quick.cost.steps(filled_size) > MAX_QUICK_STEPS {
            return Some(self.admit_counted(arguments));
        }
        let filled = self.fill_defaults(arguments);
        if quick.validator.is_valid(arguments) {
            Some(Ok(filled))
        } else {
            Some(Err(self.violations(arguments)))
        }
    }

    /// Everything that is wrong with the value as it stands, where finding out is a matter of a millisecond.
    pub fn violations_if_quick(&self, value: &Value) -> Option<Vec<Violation>> {
        size_within(value, self.cost, MAX_INLINE_STEPS)?;
        // What may be judged here at all is far within what the validator crate may be given.
        let is_accepted = self.quick.as_ref().is_some_and(|quick| quick.validator.is_valid(value));
        if is_accepted { Some(Vec::new()) } else { Some(self.violations(value)) }
    }

    /// Whether judging the value is a matter of a millisecond, however it is made. Other values are judged within
    /// [`MAX_STEPS`], which is long enough to keep them off a thread that others wait for.
    pub fn is_quick(&self, value: &Value) -> bool {
        size_within(value, self.cost, MAX_INLINE_STEPS).is_some()
    }

    fn verdict(&self, value: &Value, budget: &mut Budget) -> Result<bool, BudgetExhausted> {
        if !self.is_walkable(value) {
            return Ok(false);
        }
        match self.quick(value, budget) {
            Some(verdict) => Ok(verdict),
            None => explain::is_valid(&self.plan, 0, value, budget),
        }
    }

    /// The validator crate's verdict, if it can be had within its limit.
    fn quick(&self, value: &Value, budget: &mut Budget) -> Option<bool> {
        let quick = self.quick.as_ref()?;
        let size = size_within(value, quick.cost, MAX_QUICK_STEPS)?;
        budget.spend_spare(quick.cost.steps(size)).then(|| quick.validator.is_valid(value))
    }

    fn violations_within(&self, value: &Value, budget: &mut Budget) -> Vec<Violation> {
        if !self.is_walkable(value) {
            return vec![too_deep()];
        }
        let verdict = self.quick(value, budget);
        if verdict == Some(true) {
            return Vec::new();
        }
        match explain::violations(&self.plan, value, budget) {
            Err(BudgetExhausted) => vec![Violation::too_complex()],
            // Should the two ever differ, the stricter one counts.
            Ok(found) if found.is_empty() && verdict == Some(false) => vec![refused()],
            Ok(found) => found,
        }
    }

    fn fill(&self, value: &mut Value, budget: &mut Budget) -> Result<Vec<String>, BudgetExhausted> {
        if self.defaults.is_empty() || !self.is_walkable(value) {
            return Ok(Vec::new());
        }
        let visits = if self.quick.is_some() { VisitMemo::Off } else { VisitMemo::On };
        self.defaults.fill(&self.plan, value, budget, visits)
    }

    /// A recursive schema follows the value as deep as it goes, so the value must have a bottom within reach.
    fn is_walkable(&self, value: &Value) -> bool {
        !self.plan.is_recursive || document::is_shallow(value)
    }
}

/// The size of the value, if judging it takes no more than so many steps.
fn size_within(value: &Value, cost: Cost, max_steps: u64) -> Option<u64> {
    let largest = cost.largest(max_steps)?;
    let size = plan::size(value, largest);
    (size <= largest).then_some(size)
}

impl SchemaError {
    pub(crate) fn at(pointer: &str, reason: &str) -> Self {
        Self { pointer: pointer.to_owned(), reason: reason.to_owned() }
    }
}

/// An error of the meta-schema tells the place in the schema as that of the value it judged.
fn unreadable(error: &jsonschema::ValidationError<'_>) -> SchemaError {
    SchemaError { pointer: error.instance_path().to_string(), reason: error.to_string() }
}

fn too_deep() -> Violation {
    whole("$ref", "the arguments are nested too deeply")
}

fn refused() -> Violation {
    whole("false schema", "the arguments do not have the form that the tool takes")
}

fn whole(keyword: &str, message: &str) -> Violation {
    Violation { path: String::new(), keyword: keyword.to_owned(), message: message.to_owned() }
}
