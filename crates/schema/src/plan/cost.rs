//! What judging a value costs at most, told from the schema alone.

use super::{Demand, Node, NodeId, Plan, Rules};

/// Schemas within schemas that the validator crate is given: it recurses once for each.
const MAX_DEPTH: u64 = 256;

/// Steps as a function of a value's size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Whatever the value is.
    constant: u64,
    /// For each unit of its size.
    per_unit: u64,
    /// How many schemas stand within each other.
    depth: u64,
}

impl Cost {
    /// The largest size of a value that takes no more than `steps`.
    pub(crate) fn largest(self, steps: u64) -> Option<u64> {
        Some(steps.checked_sub(self.constant)? / self.per_unit.max(1))
    }

    pub(crate) fn steps(self, size: u64) -> u64 {
        self.per_unit.saturating_mul(size).saturating_add(self.constant)
    }

    /// A schema for the same value.
    fn also(&mut self, other: Self) {
        self.constant = self.constant.saturating_add(other.constant);
        self.per_unit = self.per_unit.saturating_add(other.per_unit);
        self.depth = self.depth.max(other.depth);
    }

    /// Schemas of which each has a part of the value to itself.
    fn for_parts(&mut self, others: impl Iterator<Item = Self>) {
        let mut max = 0;
        for other in others {
            self.constant = self.constant.saturating_add(other.constant);
            self.depth = self.depth.max(other.depth);
            max = other.per_unit.max(max);
        }
        self.per_unit = self.per_unit.saturating_add(max);
    }

    /// A schema for every part of the value.
    fn for_every_part(&mut self, other: Self) {
        let each = other.constant.saturating_add(other.per_unit);
        self.per_unit = self.per_unit.saturating_add(each);
        self.depth = self.depth.max(other.depth);
    }
}

/// The cost when nothing is remembered on the way, if it can be told: of a schema that leads back to itself, or that
/// asks what others have judged, it cannot.
pub(crate) fn cost_without_memo(plan: &Plan) -> Option<Cost> {
    let mut costs: Vec<Option<Cost>> = vec![None; plan.nodes.len()];
    let mut is_open = vec![false; plan.nodes.len()];
    let mut waiting: Vec<NodeId> = vec![0];
    // Depth-first without recursion: a node is left when all it leads to is known.
    while let Some(id) = waiting.last().copied() {
        if costs[id].is_some() {
            waiting.pop();
            continue;
        }
        let Node::Rules(rules) = &plan.nodes[id] else {
            costs[id] = Some(Cost { constant: 1, per_unit: 0, depth: 1 });
            continue;
        };
        if rules.array.unevaluated_items.is_some()
            || rules.object.unevaluated_properties.is_some()
            || !rules.object.pattern_properties.is_empty()
        {
            return None;
        }
        if is_open[id] {
            costs[id] = Some(whole(rules, &costs)?);
            continue;
        }
        is_open[id] = true;
        waiting.extend(rules.children().filter(|child| costs[*child].is_none()));
    }
    costs[0].filter(|cost| cost.depth <= MAX_DEPTH)
}

/// The cost when every schema judges every part of a value once, and its answer is remembered.
pub(crate) fn cost_with_memo(plan: &Plan) -> Cost {
    let mut cost = Cost::default();
    for node in &plan.nodes {
        if let Node::Rules(rules) = node {
            cost.for_every_part(own(rules));
            cost.per_unit = cost.per_unit.saturating_add(rules.children().count() as u64);
        }
    }
    cost
}

/// How many schemas judge the same value one inside the other, at most; without end if they go in a circle.
pub(super) fn max_chain_length(plan: &Plan) -> usize {
    let mut chains: Vec<Option<usize>> = vec![None; plan.nodes.len()];
    let mut is_open = vec![false; plan.nodes.len()];
    let mut waiting: Vec<NodeId> = (0..plan.nodes.len()).collect();
    while let Some(id) = waiting.last().copied() {
        let Node::Rules(rules) = &plan.nodes[id] else {
            chains[id] = Some(1);
            waiting.pop();
            continue;
        };
        if chains[id].is_some() {
            waiting.pop();
        } else if is_open[id] {
            let inner = rules.same_value().map(|child| chains[child].unwrap_or(usize::MAX)).max();
            chains[id] = Some(inner.unwrap_or(0).saturating_add(1));
        } else {
            is_open[id] = true;
            waiting.extend(rules.same_value().filter(|child| chains[*child].is_none()));
        }
    }
    chains.into_iter().flatten().max().unwrap_or(0)
}

/// The cost of a schema and of what it leads to; none if it leads back to itself.
fn whole(rules: &Rules, costs: &[Option<Cost>]) -> Option<Cost> {
    if rules.children().any(|child| costs[child].is_none()) {
        return None;
    }
    let of = |id: &NodeId| costs[*id].unwrap_or_default();
    let mut cost = own(rules);
    rules.same_value().for_each(|id| cost.also(of(&id)));
    cost.for_parts(rules.object.properties.iter().map(|(_, id)| of(id)));
    cost.for_parts(rules.array.prefix_items.iter().map(of));
    let every = [rules.array.items, rules.object.additional_properties, rules.object.property_names]
        .into_iter()
        .flatten();
    every.chain(rules.array.contains.iter().map(|contains| contains.item)).for_each(|id| {
        cost.for_every_part(of(&id));
    });
    Some(Cost { depth: cost.depth + 1, ..cost })
}

/// What a schema's own keywords cost.
fn own(rules: &Rules) -> Cost {
    let demands = rules.object.dependencies.iter().map(|dependency| match &dependency.demand {
        Demand::Members(names) => 1 + names.len(),
        Demand::Schema(_) => 1,
    });
    let lists = rules.object.required.len() + rules.object.properties.len() + demands.sum::<usize>();
    let mut cost = Cost { constant: 1 + lists as u64, per_unit: 1, depth: 0 };
    for leaf in &rules.leaves {
        cost.constant = cost.constant.saturating_add(leaf.steps());
        cost.per_unit = cost.per_unit.saturating_add(leaf.steps_per_unit());
    }
    for (pattern, _) in &rules.object.pattern_properties {
        cost.per_unit = cost.per_unit.saturating_add(pattern.steps_per_unit());
    }
    cost
}
