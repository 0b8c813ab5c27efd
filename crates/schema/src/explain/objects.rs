//! Objects.

use serde_json::{Map, Value};

use super::{Evaluation, Evaluator, messages};
use crate::budget::BudgetExhausted;
use crate::nearest;
use crate::plan::{Demand, Dependency, Node, NodeId, Rules};

impl<'p, 'v> Evaluator<'p, 'v, '_> {
    pub(super) fn objects(
        &mut self,
        rules: &'p Rules,
        value: &'v Value,
        members: &'v Map<String, Value>,
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        self.budget.spend(rules.object.required.len() as u64)?;
        for name in rules.object.required.iter().filter(|name| !members.contains_key(*name)) {
            evaluation.is_valid = false;
            self.report("required", |path| messages::required(path, name))?;
        }
        if let Some(node) = rules.object.property_names {
            self.property_names(node, members, evaluation)?;
        }
        if self.is_settled(evaluation) {
            return Ok(());
        }
        self.known_members(rules, members, evaluation)?;
        self.budget.spend(rules.object.dependencies.len() as u64)?;
        for dependency in &rules.object.dependencies {
            if members.contains_key(&dependency.member) {
                self.dependency(dependency, value, members, evaluation)?;
            }
        }
        if let Some(node) = rules.object.unevaluated_properties {
            self.budget.spend(members.len() as u64)?;
            let rest = members.iter().filter(|(name, _)| !evaluation.evaluated.has_member(name));
            for (name, member) in rest.collect::<Vec<_>>() {
                self.undeclared("unevaluatedProperties", node, rules, (name, member), members, evaluation)?;
            }
            evaluation.evaluated.every_member();
        }
        Ok(())
    }

    fn property_names(
        &mut self,
        node: NodeId,
        members: &'v Map<String, Value>,
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        for name in members.keys() {
            if self.is_settled(evaluation) {
                break;
            }
            self.budget.spend(1 + name.len() as u64 / 16)?;
            if !self.name_is_valid(node, &Value::String(name.clone()))? {
                evaluation.is_valid = false;
                self.report("propertyNames", |path| messages::member_name(path, name))?;
            }
        }
        Ok(())
    }

    /// Judges a name as a value. It is none of the value's parts, so what is known about those says nothing about it.
    fn name_is_valid(&mut self, node: NodeId, name: &Value) -> Result<bool, BudgetExhausted> {
        let mut inner = Evaluator::new(self.plan, &mut *self.budget);
        inner.depth = self.depth;
        inner.reports = self.reports;
        inner.path = std::mem::take(&mut self.path);
        inner.found = std::mem::take(&mut self.found);
        inner.found_bytes = self.found_bytes;
        let outcome = inner.node(node, name);
        (self.path, self.found, self.found_bytes) = (inner.path, inner.found, inner.found_bytes);
        outcome.map(|outcome| outcome.is_valid)
    }

    fn known_members(
        &mut self,
        rules: &'p Rules,
        members: &'v Map<String, Value>,
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        let tracks = self.plan.tracks_evaluated;
        if let Some(node) = rules.object.additional_properties {
            for (name, member) in members {
                if self.is_settled(evaluation) {
                    return Ok(());
                }
                if self.is_additional(rules, name)? {
                    self.undeclared(
                        "additionalProperties",
                        node,
                        rules,
                        (name, member),
                        members,
                        evaluation,
                    )?;
                }
            }
            evaluation.evaluated.every_member();
        }
        self.budget.spend(rules.object.properties.len() as u64)?;
        for (name, node) in &rules.object.properties {
            if self.is_settled(evaluation) {
                return Ok(());
            }
            if let Some((name, member)) = members.get_key_value(name) {
                evaluation.is_valid &= self.part(*node, name, member)?;
                if tracks {
                    evaluation.evaluated.member(name);
                }
            }
        }
        for (pattern, node) in &rules.object.pattern_properties {
            for (name, member) in members {
                if self.is_settled(evaluation) {
                    return Ok(());
                }
                self.budget.spend(1)?;
                if pattern.is_match(name, self.budget)? {
                    evaluation.is_valid &= self.part(*node, name, member)?;
                    if tracks {
                        evaluation.evaluated.member(name);
                    }
                }
            }
        }
        Ok(())
    }

    fn is_additional(&mut self, rules: &Rules, name: &str) -> Result<bool, BudgetExhausted> {
        self.budget.spend(1)?;
        if rules.object.declared.contains(name) {
            return Ok(false);
        }
        for (pattern, _) in &rules.object.pattern_properties {
            self.budget.spend(1)?;
            if pattern.is_match(name, self.budget)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn undeclared(
        &mut self,
        keyword: &str,
        node: NodeId,
        rules: &'p Rules,
        (name, member): (&'v str, &'v Value),
        members: &'v Map<String, Value>,
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        if !matches!(self.plan.nodes[node], Node::Refuse) {
            evaluation.is_valid &= self.part(node, name, member)?;
            return Ok(());
        }
        evaluation.is_valid = false;
        if !self.reports || self.is_full() {
            return Ok(());
        }
        let meant = match self.suggestions_left {
            0 => None,
            _ => self.meant(rules, name, member, members)?,
        };
        self.suggestions_left = self.suggestions_left.saturating_sub(1);
        self.report(keyword, |path| messages::unknown_member(path, name, meant, &rules.object.properties))
    }

    /// The declared member that an unknown one was probably meant for: one with a similar name, or else the only one
    /// still absent that would take the value.
    fn meant(
        &mut self,
        rules: &'p Rules,
        name: &str,
        member: &'v Value,
        members: &'v Map<String, Value>,
    ) -> Result<Option<&'p str>, BudgetExhausted> {
        let absent: Vec<&'p (String, NodeId)> =
            rules.object.properties.iter().filter(|(declared, _)| !members.contains_key(declared)).collect();
        let names = || absent.iter().map(|(declared, _)| declared.as_str());
        if !self.budget.spend_spare(rules.object.properties.len() as u64 + nearest::steps(name, names())) {
            return Ok(None);
        }
        if let Some(near) = nearest::nearest(name, names()) {
            return Ok(Some(near));
        }
        if rules.object.properties.len() > MAX_TRIED {
            return Ok(None);
        }
        let mut fitting = None;
        for (declared, node) in absent {
            if self.verdict(*node, member)?.is_valid && fitting.replace(declared.as_str()).is_some() {
                return Ok(None);
            }
        }
        Ok(fitting)
    }

    fn dependency(
        &mut self,
        dependency: &'p Dependency,
        value: &'v Value,
        members: &'v Map<String, Value>,
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        match &dependency.demand {
            Demand::Members(names) => {
                self.budget.spend(names.len() as u64)?;
                for name in names.iter().filter(|name| !members.contains_key(*name)) {
                    evaluation.is_valid = false;
                    self.report(dependency.keyword, |path| {
                        messages::required_with(path, name, &dependency.member)
                    })?;
                }
                Ok(())
            }
            Demand::Schema(node) => {
                let outcome = self.node(*node, value)?;
                match outcome.is_valid {
                    true => self.adopt(evaluation, outcome),
                    false => {
                        evaluation.is_valid = false;
                        Ok(())
                    }
                }
            }
        }
    }
}

/// Declared members that an unknown one's value is tried on.
const MAX_TRIED: usize = 20;
