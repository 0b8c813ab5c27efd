//! Errors of objects.

use serde_json::{Map, Value};

use super::seen::Seen;
use super::{Judging, is_valid, messages};
use crate::plan::{Demand, Dependency, Node, NodeId, Rules};
use crate::suggest;

impl<'p> Judging<'p> {
    pub(super) fn objects(
        &mut self,
        rules: &'p Rules,
        value: &Value,
        members: &Map<String, Value>,
        seen: &mut Seen,
    ) {
        for name in rules.required.iter().filter(|name| !members.contains_key(*name)) {
            self.report("required", |path| messages::required(path, name));
        }
        if let Some(node) = rules.property_names {
            self.property_names(node, members);
        }
        self.known_members(rules, members, seen);
        for dependency in &rules.dependencies {
            if members.contains_key(&dependency.member) {
                self.dependency(dependency, value, members, seen);
            }
        }
        if let Some(node) = rules.unevaluated_properties {
            let rest = members.iter().filter(|(name, _)| !seen.has_member(name));
            for (name, member) in rest.collect::<Vec<_>>() {
                self.undeclared("unevaluatedProperties", node, rules, (name, member), members);
            }
            seen.every_member();
        }
    }

    fn property_names(&mut self, node: NodeId, members: &Map<String, Value>) {
        for name in members.keys() {
            let before = self.count;
            self.node(node, &Value::String(name.clone()));
            if self.count > before {
                self.report("propertyNames", |path| messages::member_name(path, name));
            }
        }
    }

    fn known_members(&mut self, rules: &'p Rules, members: &Map<String, Value>, seen: &mut Seen) {
        let tracks = self.plan.tracks_evaluated;
        if let Some(node) = rules.additional_properties {
            for (name, member) in members.iter().filter(|(name, _)| is_additional(rules, name)) {
                self.undeclared("additionalProperties", node, rules, (name, member), members);
            }
            seen.every_member();
        }
        for (name, node) in &rules.properties {
            if let Some(member) = members.get(name) {
                self.part(*node, name, member);
                if tracks {
                    seen.member(name);
                }
            }
        }
        for (pattern, node) in &rules.pattern_properties {
            for (name, member) in members {
                if pattern.admits(&Value::String(name.clone())) {
                    self.part(*node, name, member);
                    if tracks {
                        seen.member(name);
                    }
                }
            }
        }
    }

    fn undeclared(
        &mut self,
        keyword: &str,
        node: NodeId,
        rules: &'p Rules,
        (name, member): (&str, &Value),
        members: &Map<String, Value>,
    ) {
        if matches!(self.plan.nodes[node], Node::Refuse) {
            let meant = match self.suggestions_left {
                0 => None,
                _ => self.meant(rules, name, member, members),
            };
            self.suggestions_left = self.suggestions_left.saturating_sub(1);
            self.report(keyword, |path| messages::unknown_member(path, name, meant, &rules.properties));
        } else {
            self.part(node, name, member);
        }
    }

    /// The declared member that an unknown one was probably meant for: one with a similar name, or else the only one
    /// still absent that would take the value.
    fn meant(
        &self,
        rules: &'p Rules,
        name: &str,
        member: &Value,
        members: &Map<String, Value>,
    ) -> Option<&'p str> {
        let absent = || rules.properties.iter().filter(|(declared, _)| !members.contains_key(declared));
        if let Some(near) = suggest::nearest(name, absent().map(|(declared, _)| declared.as_str())) {
            return Some(near);
        }
        if rules.properties.len() > 20 {
            return None;
        }
        let mut fitting = absent().filter(|(_, node)| is_valid(self.plan, *node, member));
        match (fitting.next(), fitting.next()) {
            (Some((only, _)), None) => Some(only),
            _ => None,
        }
    }

    fn dependency(
        &mut self,
        dependency: &'p Dependency,
        value: &Value,
        members: &Map<String, Value>,
        seen: &mut Seen,
    ) {
        match &dependency.demand {
            Demand::Members(names) => {
                for name in names.iter().filter(|name| !members.contains_key(*name)) {
                    self.report(dependency.keyword, |path| {
                        messages::required_with(path, name, &dependency.member)
                    });
                }
            }
            Demand::Schema(node) => {
                if let Some(inner) = self.branch(*node, value) {
                    seen.merge(inner);
                }
            }
        }
    }
}

fn is_additional(rules: &Rules, name: &str) -> bool {
    !rules.declared.contains(name)
        && !rules
            .pattern_properties
            .iter()
            .any(|(pattern, _)| pattern.admits(&Value::String(name.to_owned())))
}
