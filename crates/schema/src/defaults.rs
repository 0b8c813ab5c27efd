//! Fills in the defaults of absent properties, as Ajv's `useDefaults` does.
//!
//! A default is inserted when its property is absent; `null` is present. What was inserted is then visited in turn.
//! Defaults are reached through `properties`, `items`, `prefixItems`, `additionalProperties`, `patternProperties`,
//! `unevaluated*`, `allOf`, `then`, `else`, `dependentSchemas` and `$ref`. Below `anyOf`, `oneOf`, `not`, `if`,
//! `contains` and `propertyNames` a failure is not final, so nothing is filled there, except behind a reference to a
//! definition that itself refers on: Ajv compiles that by itself and forgets where it stands.
//!
//! Unlike Ajv, which fills while it judges, the whole value is filled before it is judged. A `required` inside `allOf`
//! therefore sees a default of the schema around it, which for Ajv comes too late.

use std::collections::HashSet;

use serde_json::Value;

use crate::budget::{Budget, BudgetExhausted, MAX_DEPTH};
use crate::explain;
use crate::plan::{Demand, Node, NodeId, Plan, Rules, size};
use crate::pointer;

/// Which nodes have a default to give, themselves or further on. Filling visits no others.
#[derive(Debug)]
pub(crate) struct Defaults {
    useful: Vec<bool>,
    growth: Option<u64>,
}

impl Defaults {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut useful: Vec<bool> = plan
            .nodes
            .iter()
            .map(|node| matches!(node, Node::Rules(rules) if !rules.object.defaults.is_empty()))
            .collect();
        let mut sources: Vec<Vec<NodeId>> = vec![Vec::new(); useful.len()];
        for (id, node) in plan.nodes.iter().enumerate() {
            if let Node::Rules(rules) = node {
                rules.children().for_each(|child| sources[child].push(id));
            }
        }
        let mut waiting: Vec<NodeId> = (0..useful.len()).filter(|id| useful[*id]).collect();
        while let Some(id) = waiting.pop() {
            for source in &sources[id] {
                if !useful[*source] {
                    useful[*source] = true;
                    waiting.push(*source);
                }
            }
        }
        let growth = growth(plan);
        Self { useful, growth }
    }

    /// How many times as large a value becomes at the most, if that can be told from the schema alone.
    pub(crate) fn growth(&self) -> Option<u64> {
        self.growth
    }

    /// Whether there is nothing to fill in any value.
    pub(crate) fn is_empty(&self) -> bool {
        !self.useful[0]
    }

    /// Fills `value` and returns the pointers of what was inserted. Visits are remembered where the same one may come
    /// again and again; where the schema alone bounds them, remembering would cost more than it saves.
    pub(crate) fn fill(
        &self,
        plan: &Plan,
        value: &mut Value,
        budget: &mut Budget,
        visits: VisitMemo,
    ) -> Result<Vec<String>, BudgetExhausted> {
        let (visited, useful) = (HashSet::new(), &self.useful);
        let (path, filled) = (String::new(), Vec::new());
        let mut filling = Filling { plan, useful, budget, visits, visited, depth: 0, path, filled };
        filling.visit(0, value, Mode::Filling)?;
        Ok(filling.filled)
    }
}

/// Each default is inserted at most once for each part of the value. One that holds an object is a part into which more
/// is inserted, and that is not followed here.
fn growth(plan: &Plan) -> Option<u64> {
    let mut growth: u64 = 1;
    for node in &plan.nodes {
        let Node::Rules(rules) = node else { continue };
        for (name, default) in &rules.object.defaults {
            if holds_object(default) {
                return None;
            }
            growth = growth.saturating_add(size(default, u64::MAX)).saturating_add(name.len() as u64);
        }
    }
    Some(growth)
}

fn holds_object(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => items.iter().any(holds_object),
        _ => false,
    }
}

/// Whether visits are remembered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum VisitMemo {
    On,
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Mode {
    Filling,
    /// Below a choice: only looking for references that start anew.
    Passing,
}

struct Filling<'f> {
    plan: &'f Plan,
    useful: &'f [bool],
    budget: &'f mut Budget,
    visits: VisitMemo,
    /// Visits that are over, since something was last inserted: the same visit again would find nothing to do. As long
    /// as nothing is inserted, every part of the value stays where it lies in memory.
    visited: HashSet<(NodeId, *const Value, Mode)>,
    depth: usize,
    path: String,
    filled: Vec<String>,
}

impl Filling<'_> {
    fn visit(&mut self, id: NodeId, value: &mut Value, mode: Mode) -> Result<(), BudgetExhausted> {
        if !self.useful[id] {
            return Ok(());
        }
        self.budget.spend(1)?;
        let key = (id, std::ptr::from_ref(value), mode);
        if self.visited.contains(&key) {
            return Ok(());
        }
        let plan = self.plan;
        let Node::Rules(rules) = &plan.nodes[id] else { return Ok(()) };
        if self.depth >= MAX_DEPTH {
            return Err(BudgetExhausted);
        }
        self.depth += 1;
        let filled = self.filled.len();
        self.same_value(rules, value, mode)?;
        match value {
            Value::Array(items) => self.items(rules, items, mode)?,
            Value::Object(_) => self.members(rules, value, mode)?,
            _ => {}
        }
        self.depth -= 1;
        if self.visits == VisitMemo::On && self.filled.len() == filled {
            self.visited.insert(key);
        }
        Ok(())
    }

    fn same_value(&mut self, rules: &Rules, value: &mut Value, mode: Mode) -> Result<(), BudgetExhausted> {
        for reference in &rules.references {
            self.visit(reference.target, value, if reference.is_standalone { Mode::Filling } else { mode })?;
        }
        for id in rules.not.iter().chain(&rules.any_of).chain(&rules.one_of) {
            self.visit(*id, value, Mode::Passing)?;
        }
        for id in &rules.all_of {
            self.visit(*id, value, mode)?;
        }
        if let Some(condition) = &rules.condition {
            self.visit(condition.test, value, Mode::Passing)?;
            let branches = [condition.then, condition.otherwise];
            if branches.iter().flatten().any(|branch| self.useful[*branch]) {
                let holds = explain::is_valid(self.plan, condition.test, value, self.budget)?;
                if let Some(branch) = branches[usize::from(!holds)] {
                    self.visit(branch, value, mode)?;
                }
            }
        }
        Ok(())
    }

    fn items(&mut self, rules: &Rules, items: &mut [Value], mode: Mode) -> Result<(), BudgetExhausted> {
        for (index, item) in items.iter_mut().enumerate() {
            let node = rules
                .array
                .prefix_items
                .get(index)
                .copied()
                .or(rules.array.items)
                .or(rules.array.unevaluated_items);
            if let Some(node) = node {
                self.step(node, &index.to_string(), item, mode)?;
            }
            if let Some(contains) = &rules.array.contains {
                self.step(contains.item, &index.to_string(), item, Mode::Passing)?;
            }
        }
        Ok(())
    }

    fn members(&mut self, rules: &Rules, value: &mut Value, mode: Mode) -> Result<(), BudgetExhausted> {
        if mode == Mode::Filling {
            self.insert(rules, value)?;
        }
        let Value::Object(members) = value else { return Ok(()) };
        self.budget.spend(rules.object.properties.len() as u64)?;
        for (name, node) in &rules.object.properties {
            if let Some(member) = members.get_mut(name) {
                self.step(*node, name, member, mode)?;
            }
        }
        let matched = rules.object.pattern_properties.iter().map(|(_, node)| *node);
        let others = rules.object.additional_properties.or(rules.object.unevaluated_properties);
        if matched.chain(others).any(|node| self.useful[node]) {
            for (name, member) in members.iter_mut() {
                self.matched_or_other(rules, name, member, mode)?;
            }
        }
        for dependency in &rules.object.dependencies {
            if let (Demand::Schema(node), true) =
                (&dependency.demand, value.get(&dependency.member).is_some())
            {
                self.visit(*node, value, mode)?;
            }
        }
        Ok(())
    }

    fn matched_or_other(
        &mut self,
        rules: &Rules,
        name: &str,
        member: &mut Value,
        mode: Mode,
    ) -> Result<(), BudgetExhausted> {
        let mut is_known = rules.object.declared.contains(name);
        for (pattern, node) in &rules.object.pattern_properties {
            self.budget.spend(1)?;
            if pattern.is_match(name, self.budget)? {
                is_known = true;
                self.step(*node, name, member, mode)?;
            }
        }
        match rules.object.additional_properties.or(rules.object.unevaluated_properties) {
            Some(node) if !is_known => self.step(node, name, member, mode),
            _ => Ok(()),
        }
    }

    fn insert(&mut self, rules: &Rules, value: &mut Value) -> Result<(), BudgetExhausted> {
        let Value::Object(members) = value else { return Ok(()) };
        self.budget.spend(rules.object.defaults.len() as u64)?;
        for (name, default) in &rules.object.defaults {
            if !members.contains_key(name) {
                self.budget.spend(size(default, self.budget.left()) + self.path.len() as u64)?;
                members.insert(name.clone(), default.clone());
                self.filled.push(pointer::join(&self.path, name));
                self.visited.clear();
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        node: NodeId,
        segment: &str,
        value: &mut Value,
        mode: Mode,
    ) -> Result<(), BudgetExhausted> {
        if !self.useful[node] {
            return Ok(());
        }
        self.budget.spend(1 + segment.len() as u64 / 16)?;
        let length = self.path.len();
        pointer::push(&mut self.path, segment);
        let visited = self.visit(node, value, mode);
        self.path.truncate(length);
        visited
    }
}
