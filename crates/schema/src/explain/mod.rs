//! Judges values by the plan: whether one is accepted, and everything that is wrong with it, with Ajv's paths and
//! keywords.
//!
//! The verdict on a value comes first and is remembered for each schema and each part of the value, so that a part is
//! judged once by each schema however many ways lead there. Only what was refused is then gone through again for the
//! list: one entry per missing or unknown member, the errors of every branch of a choice, an entry for the choice
//! itself. Every step of both is counted.

mod arrays;
mod evaluated;
mod messages;
mod objects;

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use crate::budget::{Budget, BudgetExhausted, MAX_DEPTH};
use crate::plan::{Condition, Node, NodeId, Plan, Rules};
use crate::pointer;
use evaluated::EvaluatedParts;

/// Entries of a list of errors. A hostile value could otherwise make the list larger than itself.
const MAX_VIOLATIONS: usize = 1_000;

/// Bytes of a list of errors: each entry repeats the names on the way to it, which the value's author chooses.
const MAX_LIST_BYTES: usize = 262_144;

/// A suggestion compares a name with every declared one, so only the first few unknown names get it.
const MAX_SUGGESTIONS: usize = 20;

/// One thing that is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The JSON pointer of the value, or of the object that misses a member or has one too many.
    pub path: String,
    /// The keyword that refuses it.
    pub keyword: String,
    /// One sentence that a model can act on.
    pub message: String,
}

impl Violation {
    /// That checking the value would take too long, which counts as a refusal.
    pub fn too_complex() -> Self {
        let message = "the arguments are too large or too complex to check; send fewer or shorter values";
        Self { path: String::new(), keyword: "$comment".to_owned(), message: message.to_owned() }
    }
}

/// Whether the schema at `node` accepts the value.
pub(crate) fn is_valid(
    plan: &Plan,
    node: NodeId,
    value: &Value,
    budget: &mut Budget,
) -> Result<bool, BudgetExhausted> {
    Evaluator::new(plan, budget).verdict(node, value).map(|outcome| outcome.is_valid)
}

/// Everything that is wrong with `value`, in the order of the keywords. A list for which there was not enough budget
/// is cut short.
pub(crate) fn violations(
    plan: &Plan,
    value: &Value,
    budget: &mut Budget,
) -> Result<Vec<Violation>, BudgetExhausted> {
    let mut evaluator = Evaluator::new(plan, budget);
    evaluator.reports = true;
    match evaluator.node(0, value) {
        Err(BudgetExhausted) if evaluator.found.is_empty() => Err(BudgetExhausted),
        Ok(_) | Err(BudgetExhausted) => Ok(evaluator.found),
    }
}

struct Evaluator<'p, 'v, 'b> {
    plan: &'p Plan,
    budget: &'b mut Budget,
    /// What is known about schemas and parts of the value. The parts are told apart by where they lie in memory, and
    /// stay there as long as they are borrowed.
    known: HashMap<(NodeId, *const Value), Outcome<'v>>,
    depth: usize,
    /// Whether messages are wanted, or only the verdict.
    reports: bool,
    path: String,
    found: Vec<Violation>,
    found_bytes: usize,
    suggestions_left: usize,
}

/// What a schema makes of a value.
#[derive(Debug, Clone)]
struct Outcome<'v> {
    is_valid: bool,
    /// Which members and items were looked at; nothing unless some schema asks.
    evaluated: Option<Rc<EvaluatedParts<'v>>>,
}

impl Outcome<'_> {
    fn plain(is_valid: bool) -> Self {
        Self { is_valid, evaluated: None }
    }
}

impl<'p, 'v, 'b> Evaluator<'p, 'v, 'b> {
    fn new(plan: &'p Plan, budget: &'b mut Budget) -> Self {
        Self {
            plan,
            budget,
            known: HashMap::new(),
            depth: 0,
            reports: false,
            path: String::new(),
            found: Vec::new(),
            found_bytes: 0,
            suggestions_left: MAX_SUGGESTIONS,
        }
    }

    /// Judges the value, and lists what is wrong with it if that is wanted.
    fn node(&mut self, id: NodeId, value: &'v Value) -> Result<Outcome<'v>, BudgetExhausted> {
        let outcome = self.verdict(id, value)?;
        if self.reports && !outcome.is_valid {
            self.report_refusal(id, value)?;
        }
        Ok(outcome)
    }

    /// Judges the value without a word about it.
    fn verdict(&mut self, id: NodeId, value: &'v Value) -> Result<Outcome<'v>, BudgetExhausted> {
        let plan = self.plan;
        let rules = match &plan.nodes[id] {
            Node::Accept => return Ok(Outcome::plain(true)),
            Node::Refuse => return Ok(Outcome::plain(false)),
            Node::Rules(rules) => rules,
        };
        self.budget.spend(1)?;
        let key = (id, std::ptr::from_ref(value));
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let reports = std::mem::replace(&mut self.reports, false);
        let evaluation = self.deeper(|evaluator| evaluator.rules(rules, value));
        self.reports = reports;
        let evaluation = evaluation?;
        let evaluated = plan.tracks_evaluated.then(|| Rc::new(evaluation.evaluated));
        let outcome = Outcome { is_valid: evaluation.is_valid, evaluated };
        self.known.insert(key, outcome.clone());
        Ok(outcome)
    }

    /// Lists what is wrong with a value that was refused.
    fn report_refusal(&mut self, id: NodeId, value: &'v Value) -> Result<(), BudgetExhausted> {
        if !self.reports || self.is_full() {
            return Ok(());
        }
        self.budget.spend(1)?;
        let plan = self.plan;
        match &plan.nodes[id] {
            Node::Accept => Ok(()),
            Node::Refuse => self.report("false schema", messages::not_allowed),
            Node::Rules(rules) => self.deeper(|evaluator| evaluator.rules(rules, value)).map(drop),
        }
    }

    fn deeper<T>(
        &mut self,
        judge: impl FnOnce(&mut Self) -> Result<T, BudgetExhausted>,
    ) -> Result<T, BudgetExhausted> {
        if self.depth >= MAX_DEPTH {
            return Err(BudgetExhausted);
        }
        self.depth += 1;
        let evaluation = judge(self);
        self.depth -= 1;
        evaluation
    }

    /// Judges a part of the value.
    fn part(&mut self, id: NodeId, segment: &str, value: &'v Value) -> Result<bool, BudgetExhausted> {
        if !self.reports {
            return self.verdict(id, value).map(|outcome| outcome.is_valid);
        }
        self.budget.spend(segment.len() as u64 / 16)?;
        let length = self.path.len();
        pointer::push(&mut self.path, segment);
        let evaluation = self.node(id, value);
        self.path.truncate(length);
        evaluation.map(|outcome| outcome.is_valid)
    }

    /// The same for an item, whose segment is only written where it is read.
    fn item(&mut self, id: NodeId, index: usize, value: &'v Value) -> Result<bool, BudgetExhausted> {
        let segment = if self.reports { index.to_string() } else { String::new() };
        self.part(id, &segment, value)
    }

    fn report(&mut self, keyword: &str, message: impl FnOnce(&str) -> String) -> Result<(), BudgetExhausted> {
        if !self.reports || self.is_full() {
            return Ok(());
        }
        self.budget.spend(1 + self.path.len() as u64)?;
        let message = message(&self.path);
        self.found_bytes += self.path.len() + message.len();
        self.found.push(Violation { path: self.path.clone(), keyword: keyword.to_owned(), message });
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.found.len() >= MAX_VIOLATIONS || self.found_bytes >= MAX_LIST_BYTES
    }

    /// Whether nothing that is still to be judged could change the outcome or the list.
    fn is_settled(&self, evaluation: &Evaluation<'v>) -> bool {
        let adds_nothing = if self.reports { self.is_full() } else { !self.plan.tracks_evaluated };
        adds_nothing && !evaluation.is_valid
    }

    fn rules(&mut self, rules: &'p Rules, value: &'v Value) -> Result<Evaluation<'v>, BudgetExhausted> {
        let mut evaluation = Evaluation::default();
        if !rules.types.is_empty() && !rules.types.iter().any(|kind| kind.admits(value)) {
            evaluation.is_valid = false;
            self.report("type", |path| messages::wrong_type(path, &rules.types, value))?;
        }
        for reference in &rules.references {
            let outcome = self.node(reference.target, value)?;
            self.adopt(&mut evaluation, outcome)?;
        }
        for leaf in &rules.leaves {
            if self.is_settled(&evaluation) {
                return Ok(evaluation);
            }
            if !leaf.admits(value, self.budget)? {
                evaluation.is_valid = false;
                self.report(&leaf.keyword, |path| messages::limit(path, &leaf.keyword, &leaf.limit, value))?;
            }
        }
        self.composition(rules, value, &mut evaluation)?;
        if self.is_settled(&evaluation) {
            return Ok(evaluation);
        }
        match value {
            Value::Array(items) => self.arrays(rules, items, &mut evaluation)?,
            Value::Object(members) => self.objects(rules, value, members, &mut evaluation)?,
            _ => {}
        }
        Ok(evaluation)
    }

    fn composition(
        &mut self,
        rules: &'p Rules,
        value: &'v Value,
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        if let Some(inner) = rules.not
            && self.verdict(inner, value)?.is_valid
        {
            evaluation.is_valid = false;
            self.report("not", |path| messages::forbidden(path, value))?;
        }
        if !rules.any_of.is_empty() && !self.is_settled(evaluation) {
            self.any_of(&rules.any_of, value, evaluation)?;
        }
        if !rules.one_of.is_empty() && !self.is_settled(evaluation) {
            self.one_of(&rules.one_of, value, evaluation)?;
        }
        for branch in &rules.all_of {
            if self.is_settled(evaluation) {
                return Ok(());
            }
            // What a failing branch has looked at is reported by itself; calling it unknown as well would mislead.
            let outcome = self.node(*branch, value)?;
            self.adopt(evaluation, outcome)?;
        }
        match &rules.condition {
            Some(condition) if !self.is_settled(evaluation) => self.condition(condition, value, evaluation),
            _ => Ok(()),
        }
    }

    fn any_of(
        &mut self,
        branches: &'p [NodeId],
        value: &'v Value,
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        let mut is_accepted = false;
        for branch in branches {
            let outcome = self.verdict(*branch, value)?;
            if outcome.is_valid {
                is_accepted = true;
                self.adopt(evaluation, outcome)?;
            }
            if is_accepted && !self.plan.tracks_evaluated {
                break;
            }
        }
        if is_accepted { Ok(()) } else { self.no_branch("anyOf", branches, value, evaluation) }
    }

    fn one_of(
        &mut self,
        branches: &'p [NodeId],
        value: &'v Value,
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        let mut accepted: Option<(usize, Outcome<'v>)> = None;
        for (index, branch) in branches.iter().enumerate() {
            let outcome = self.verdict(*branch, value)?;
            if !outcome.is_valid {
                continue;
            }
            if let Some((first, _)) = accepted {
                evaluation.is_valid = false;
                for (_, refused) in branches[..index].iter().enumerate().filter(|(other, _)| *other != first)
                {
                    self.report_refusal(*refused, value)?;
                }
                return self.report("oneOf", messages::several_branches);
            }
            accepted = Some((index, outcome));
        }
        match accepted {
            Some((_, outcome)) => self.adopt(evaluation, outcome),
            None => self.no_branch("oneOf", branches, value, evaluation),
        }
    }

    fn no_branch(
        &mut self,
        keyword: &str,
        branches: &'p [NodeId],
        value: &'v Value,
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        evaluation.is_valid = false;
        for branch in branches {
            self.report_refusal(*branch, value)?;
        }
        self.report(keyword, messages::no_branch)
    }

    fn condition(
        &mut self,
        condition: &'p Condition,
        value: &'v Value,
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        let tested = self.verdict(condition.test, value)?;
        let branch = if tested.is_valid { condition.then } else { condition.otherwise };
        if tested.is_valid {
            self.adopt(evaluation, tested)?;
        }
        let Some(branch) = branch else { return Ok(()) };
        let outcome = self.node(branch, value)?;
        if outcome.is_valid {
            return self.adopt(evaluation, outcome);
        }
        evaluation.is_valid = false;
        self.report("if", messages::condition)
    }

    /// Takes over what a subschema for the same value has made of it.
    fn adopt(
        &mut self,
        evaluation: &mut Evaluation<'v>,
        outcome: Outcome<'v>,
    ) -> Result<(), BudgetExhausted> {
        evaluation.is_valid &= outcome.is_valid;
        match outcome.evaluated {
            Some(evaluated) => {
                self.budget.spend(evaluated.len() as u64)?;
                evaluation.evaluated.merge(&evaluated);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// A verdict in the making.
struct Evaluation<'v> {
    is_valid: bool,
    evaluated: EvaluatedParts<'v>,
}

impl Default for Evaluation<'_> {
    fn default() -> Self {
        Self { is_valid: true, evaluated: EvaluatedParts::default() }
    }
}
