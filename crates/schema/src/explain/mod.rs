//! Lists everything that is wrong with a value, with Ajv's paths and keywords.
//!
//! It runs only after the validator crate has refused the value, and takes the crate's word on every keyword that
//! looks at the value alone. What it adds is the shape of the list: one entry per missing or unknown member, the
//! errors of every branch of a choice, an entry for the choice itself.

mod arrays;
mod messages;
mod objects;
mod seen;

use serde_json::Value;

use crate::plan::{Condition, Node, NodeId, Plan, Rules};
use crate::pointer;
use seen::Seen;

/// Nobody reads further, and a hostile value could otherwise make the list larger than itself.
const MOST_VIOLATIONS: usize = 1_000;

/// A suggestion compares a name with every declared one, so only the first few unknown names get it.
const MOST_SUGGESTIONS: usize = 20;

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

/// Everything that is wrong with `value`, in the order of the keywords.
pub(crate) fn violations(plan: &Plan, value: &Value) -> Vec<Violation> {
    let mut judging = Judging::new(plan, true);
    judging.node(0, value);
    judging.found
}

/// Whether the schema at `node` accepts the value.
pub(crate) fn is_valid(plan: &Plan, node: NodeId, value: &Value) -> bool {
    let mut judging = Judging::new(plan, false);
    judging.node(node, value);
    judging.count == 0
}

struct Judging<'p> {
    plan: &'p Plan,
    path: String,
    /// Whether messages are wanted, or only the verdict.
    tells: bool,
    found: Vec<Violation>,
    count: usize,
    suggestions_left: usize,
}

impl<'p> Judging<'p> {
    fn new(plan: &'p Plan, tells: bool) -> Self {
        let suggestions_left = if tells { MOST_SUGGESTIONS } else { 0 };
        Self { plan, path: String::new(), tells, found: Vec::new(), count: 0, suggestions_left }
    }

    fn report(&mut self, keyword: &str, message: impl FnOnce(&str) -> String) {
        self.count += 1;
        if self.tells && self.found.len() < MOST_VIOLATIONS {
            let message = message(&self.path);
            self.found.push(Violation { path: self.path.clone(), keyword: keyword.to_owned(), message });
        }
    }

    /// Forgets what was found since `count` and `found` had these values.
    fn forget(&mut self, mark: (usize, usize)) {
        self.count = mark.0;
        self.found.truncate(mark.1);
    }

    fn mark(&self) -> (usize, usize) {
        (self.count, self.found.len())
    }

    /// Judges a part of the value.
    fn part(&mut self, id: NodeId, segment: &str, value: &Value) -> bool {
        let length = self.path.len();
        pointer::push(&mut self.path, segment);
        let before = self.count;
        self.node(id, value);
        self.path.truncate(length);
        self.count == before
    }

    /// Judges the value and returns which members and items were looked at.
    fn node(&mut self, id: NodeId, value: &Value) -> Seen {
        match &self.plan.nodes[id] {
            Node::Accept => Seen::default(),
            Node::Refuse => {
                self.report("false schema", messages::not_allowed);
                Seen::default()
            }
            Node::Rules(rules) => self.rules(rules, value),
        }
    }

    fn rules(&mut self, rules: &'p Rules, value: &Value) -> Seen {
        let mut seen = Seen::default();
        if !rules.types.is_empty() && !rules.types.iter().any(|kind| kind.admits(value)) {
            self.report("type", |path| messages::wrong_type(path, &rules.types, value));
        }
        if let Some(reference) = rules.reference {
            seen.merge(self.node(reference.target, value));
        }
        for leaf in rules.leaves.iter().filter(|leaf| !leaf.admits(value)) {
            self.report(&leaf.keyword, |path| messages::limit(path, &leaf.keyword, &leaf.limit, value));
        }
        self.composition(rules, value, &mut seen);
        match value {
            Value::Array(items) => self.arrays(rules, items, &mut seen),
            Value::Object(members) => self.objects(rules, value, members, &mut seen),
            _ => {}
        }
        seen
    }

    fn composition(&mut self, rules: &'p Rules, value: &Value, seen: &mut Seen) {
        if let Some(inner) = rules.not {
            let mark = self.mark();
            self.node(inner, value);
            let is_refused = self.count > mark.0;
            self.forget(mark);
            if !is_refused {
                self.report("not", |path| messages::forbidden(path, value));
            }
        }
        if !rules.any_of.is_empty() {
            self.any_of(&rules.any_of, value, seen);
        }
        if !rules.one_of.is_empty() {
            self.one_of(&rules.one_of, value, seen);
        }
        for branch in &rules.all_of {
            // What a failing branch has looked at is reported by itself; calling it unknown as well would mislead.
            seen.merge(self.node(*branch, value));
        }
        if let Some(condition) = &rules.condition {
            self.condition(condition, value, seen);
        }
    }

    /// Judges a subschema for the same value; nothing is seen by one that refuses it.
    fn branch(&mut self, id: NodeId, value: &Value) -> Option<Seen> {
        let before = self.count;
        let seen = self.node(id, value);
        (self.count == before).then_some(seen)
    }

    fn any_of(&mut self, branches: &[NodeId], value: &Value, seen: &mut Seen) {
        let mark = self.mark();
        let mut is_accepted = false;
        for branch in branches {
            if let Some(inner) = self.branch(*branch, value) {
                is_accepted = true;
                seen.merge(inner);
            }
        }
        if is_accepted {
            self.forget(mark);
        } else {
            self.report("anyOf", messages::no_choice);
        }
    }

    fn one_of(&mut self, branches: &[NodeId], value: &Value, seen: &mut Seen) {
        let mark = self.mark();
        let mut accepted = None;
        for branch in branches {
            let Some(inner) = self.branch(*branch, value) else { continue };
            if accepted.is_some() {
                return self.report("oneOf", messages::several_choices);
            }
            accepted = Some(inner);
        }
        match accepted {
            Some(inner) => {
                self.forget(mark);
                seen.merge(inner);
            }
            None => self.report("oneOf", messages::no_choice),
        }
    }

    fn condition(&mut self, condition: &'p Condition, value: &Value, seen: &mut Seen) {
        let mark = self.mark();
        let tested = self.branch(condition.test, value);
        self.forget(mark);
        let branch = if tested.is_some() { condition.then } else { condition.otherwise };
        seen.merge(tested.unwrap_or_default());
        let Some(branch) = branch else { return };
        match self.branch(branch, value) {
            Some(inner) => seen.merge(inner),
            None => self.report("if", messages::condition),
        }
    }
}
