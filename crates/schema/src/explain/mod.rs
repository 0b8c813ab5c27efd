//! Judges values by the plan: whether one is accepted, and everything that is wrong with it, with Ajv's paths and
//! keywords.
//!
//! The verdict on a value comes first and is remembered for each schema and each part of the value, so that a part is
//! judged once by each schema however many ways lead there. Only what was refused is then gone through again for the
//! list: one entry per missing or unknown member, the errors of every branch of a choice, an entry for the choice
//! itself. Every step of both is counted.

mod arrays;
mod messages;
mod objects;
mod seen;

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use crate::budget::{Budget, Exhausted, MAX_DEPTH};
use crate::plan::{Condition, Node, NodeId, Plan, Rules};
use crate::pointer;
use seen::Seen;

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
) -> Result<bool, Exhausted> {
    Judging::new(plan, budget).verdict(node, value).map(|outcome| outcome.is_valid)
}

/// Everything that is wrong with `value`, in the order of the keywords. A list for which there was not enough budget
/// is cut short.
pub(crate) fn violations(
    plan: &Plan,
    value: &Value,
    budget: &mut Budget,
) -> Result<Vec<Violation>, Exhausted> {
    let mut judging = Judging::new(plan, budget);
    judging.tells = true;
    match judging.node(0, value) {
        Err(Exhausted) if judging.found.is_empty() => Err(Exhausted),
        Ok(_) | Err(Exhausted) => Ok(judging.found),
    }
}

struct Judging<'p, 'v, 'b> {
    plan: &'p Plan,
    budget: &'b mut Budget,
    /// What is known about schemas and parts of the value. The parts are told apart by where they lie in memory, and
    /// stay there as long as they are borrowed.
    known: HashMap<(NodeId, *const Value), Outcome<'v>>,
    depth: usize,
    /// Whether messages are wanted, or only the verdict.
    tells: bool,
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
    seen: Option<Rc<Seen<'v>>>,
}

impl Outcome<'_> {
    fn plain(is_valid: bool) -> Self {
        Self { is_valid, seen: None }
    }
}

impl<'p, 'v, 'b> Judging<'p, 'v, 'b> {
    fn new(plan: &'p Plan, budget: &'b mut Budget) -> Self {
        Self {
            plan,
            budget,
            known: HashMap::new(),
            depth: 0,
            tells: false,
            path: String::new(),
            found: Vec::new(),
            found_bytes: 0,
            suggestions_left: MAX_SUGGESTIONS,
        }
    }

    /// Judges the value, and lists what is wrong with it if that is wanted.
    fn node(&mut self, id: NodeId, value: &'v Value) -> Result<Outcome<'v>, Exhausted> {
        let outcome = self.verdict(id, value)?;
        if self.tells && !outcome.is_valid {
            self.tell(id, value)?;
        }
        Ok(outcome)
    }

    /// Judges the value without a word about it.
    fn verdict(&mut self, id: NodeId, value: &'v Value) -> Result<Outcome<'v>, Exhausted> {
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
        let tells = std::mem::replace(&mut self.tells, false);
        let judged = self.deeper(|judging| judging.rules(rules, value));
        self.tells = tells;
        let judged = judged?;
        let seen = plan.tracks_evaluated.then(|| Rc::new(judged.seen));
        let outcome = Outcome { is_valid: judged.is_valid, seen };
        self.known.insert(key, outcome.clone());
        Ok(outcome)
    }

    /// Lists what is wrong with a value that was refused.
    fn tell(&mut self, id: NodeId, value: &'v Value) -> Result<(), Exhausted> {
        if !self.tells || self.is_full() {
            return Ok(());
        }
        self.budget.spend(1)?;
        let plan = self.plan;
        match &plan.nodes[id] {
            Node::Accept => Ok(()),
            Node::Refuse => self.report("false schema", messages::not_allowed),
            Node::Rules(rules) => self.deeper(|judging| judging.rules(rules, value)).map(drop),
        }
    }

    fn deeper<T>(&mut self, judge: impl FnOnce(&mut Self) -> Result<T, Exhausted>) -> Result<T, Exhausted> {
        if self.depth >= MAX_DEPTH {
            return Err(Exhausted);
        }
        self.depth += 1;
        let judged = judge(self);
        self.depth -= 1;
        judged
    }

    /// Judges a part of the value.
    fn part(&mut self, id: NodeId, segment: &str, value: &'v Value) -> Result<bool, Exhausted> {
        if !self.tells {
            return self.verdict(id, value).map(|outcome| outcome.is_valid);
        }
        self.budget.spend(segment.len() as u64 / 16)?;
        let length = self.path.len();
        pointer::push(&mut self.path, segment);
        let judged = self.node(id, value);
        self.path.truncate(length);
        judged.map(|outcome| outcome.is_valid)
    }

    /// The same for an item, whose segment is only written where it is read.
    fn item(&mut self, id: NodeId, index: usize, value: &'v Value) -> Result<bool, Exhausted> {
        let segment = if self.tells { index.to_string() } else { String::new() };
        self.part(id, &segment, value)
    }

    fn report(&mut self, keyword: &str, message: impl FnOnce(&str) -> String) -> Result<(), Exhausted> {
        if !self.tells || self.is_full() {
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
    fn is_settled(&self, judged: &Judged<'v>) -> bool {
        let adds_nothing = if self.tells { self.is_full() } else { !self.plan.tracks_evaluated };
        adds_nothing && !judged.is_valid
    }

    fn rules(&mut self, rules: &'p Rules, value: &'v Value) -> Result<Judged<'v>, Exhausted> {
        let mut judged = Judged::default();
        if !rules.types.is_empty() && !rules.types.iter().any(|kind| kind.admits(value)) {
            judged.is_valid = false;
            self.report("type", |path| messages::wrong_type(path, &rules.types, value))?;
        }
        for reference in &rules.references {
            let outcome = self.node(reference.target, value)?;
            self.adopt(&mut judged, outcome)?;
        }
        for leaf in &rules.leaves {
            if self.is_settled(&judged) {
                return Ok(judged);
            }
            if !leaf.admits(value, self.budget)? {
                judged.is_valid = false;
                self.report(&leaf.keyword, |path| messages::limit(path, &leaf.keyword, &leaf.limit, value))?;
            }
        }
        self.composition(rules, value, &mut judged)?;
        if self.is_settled(&judged) {
            return Ok(judged);
        }
        match value {
            Value::Array(items) => self.arrays(rules, items, &mut judged)?,
            Value::Object(members) => self.objects(rules, value, members, &mut judged)?,
            _ => {}
        }
        Ok(judged)
    }

    fn composition(
        &mut self,
        rules: &'p Rules,
        value: &'v Value,
        judged: &mut Judged<'v>,
    ) -> Result<(), Exhausted> {
        if let Some(inner) = rules.not
            && self.verdict(inner, value)?.is_valid
        {
            judged.is_valid = false;
            self.report("not", |path| messages::forbidden(path, value))?;
        }
        if !rules.any_of.is_empty() && !self.is_settled(judged) {
            self.any_of(&rules.any_of, value, judged)?;
        }
        if !rules.one_of.is_empty() && !self.is_settled(judged) {
            self.one_of(&rules.one_of, value, judged)?;
        }
        for branch in &rules.all_of {
            if self.is_settled(judged) {
                return Ok(());
            }
            // What a failing branch has looked at is reported by itself; calling it unknown as well would mislead.
            let outcome = self.node(*branch, value)?;
            self.adopt(judged, outcome)?;
        }
        match &rules.condition {
            Some(condition) if !self.is_settled(judged) => self.condition(condition, value, judged),
            _ => Ok(()),
        }
    }

    fn any_of(
        &mut self,
        branches: &'p [NodeId],
        value: &'v Value,
        judged: &mut Judged<'v>,
    ) -> Result<(), Exhausted> {
        let mut is_accepted = false;
        for branch in branches {
            let outcome = self.verdict(*branch, value)?;
            if outcome.is_valid {
                is_accepted = true;
                self.adopt(judged, outcome)?;
            }
            if is_accepted && !self.plan.tracks_evaluated {
                break;
            }
        }
        if is_accepted { Ok(()) } else { self.no_choice("anyOf", branches, value, judged) }
    }

    fn one_of(
        &mut self,
        branches: &'p [NodeId],
        value: &'v Value,
        judged: &mut Judged<'v>,
    ) -> Result<(), Exhausted> {
        let mut accepted: Option<(usize, Outcome<'v>)> = None;
        for (index, branch) in branches.iter().enumerate() {
            let outcome = self.verdict(*branch, value)?;
            if !outcome.is_valid {
                continue;
            }
            if let Some((first, _)) = accepted {
                judged.is_valid = false;
                for (_, refused) in branches[..index].iter().enumerate().filter(|(other, _)| *other != first)
                {
                    self.tell(*refused, value)?;
                }
                return self.report("oneOf", messages::several_choices);
            }
            accepted = Some((index, outcome));
        }
        match accepted {
            Some((_, outcome)) => self.adopt(judged, outcome),
            None => self.no_choice("oneOf", branches, value, judged),
        }
    }

    fn no_choice(
        &mut self,
        keyword: &str,
        branches: &'p [NodeId],
        value: &'v Value,
        judged: &mut Judged<'v>,
    ) -> Result<(), Exhausted> {
        judged.is_valid = false;
        for branch in branches {
            self.tell(*branch, value)?;
        }
        self.report(keyword, messages::no_choice)
    }

    fn condition(
        &mut self,
        condition: &'p Condition,
        value: &'v Value,
        judged: &mut Judged<'v>,
    ) -> Result<(), Exhausted> {
        let tested = self.verdict(condition.test, value)?;
        let branch = if tested.is_valid { condition.then } else { condition.otherwise };
        if tested.is_valid {
            self.adopt(judged, tested)?;
        }
        let Some(branch) = branch else { return Ok(()) };
        let outcome = self.node(branch, value)?;
        if outcome.is_valid {
            return self.adopt(judged, outcome);
        }
        judged.is_valid = false;
        self.report("if", messages::condition)
    }

    /// Takes over what a subschema for the same value has made of it.
    fn adopt(&mut self, judged: &mut Judged<'v>, outcome: Outcome<'v>) -> Result<(), Exhausted> {
        judged.is_valid &= outcome.is_valid;
        match outcome.seen {
            Some(seen) => {
                self.budget.spend(seen.len() as u64)?;
                judged.seen.merge(&seen);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// A verdict in the making.
struct Judged<'v> {
    is_valid: bool,
    seen: Seen<'v>,
}

impl Default for Judged<'_> {
    fn default() -> Self {
        Self { is_valid: true, seen: Seen::default() }
    }
}
