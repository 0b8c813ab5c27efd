//! What judging a value costs at most when nothing is remembered on the way.

use super::{Node, NodeId, Plan, Rules};

/// Schemas within schemas that the validator crate is given: it recurses once for each.
const MAX_DEPTH: u64 = 256;

/// Steps for each unit of a value's size, if there is such a number: a schema that leads back to itself, or
/// that asks what others have judged, has none.
pub(crate) fn weight(plan: &Plan) -> Option<u64> {
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
            costs[id] = Some(Cost { weight: 1, depth: 1 });
            continue;
        };
        if rules.unevaluated_items.is_some()
            || rules.unevaluated_properties.is_some()
            || !rules.pattern_properties.is_empty()
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
    costs[0].filter(|cost| cost.depth <= MAX_DEPTH).map(|cost| cost.weight)
}

/// The same when every schema is asked about every part of a value once, and its answer is remembered.
pub(crate) fn total_weight(plan: &Plan) -> u64 {
    let of_node = |node: &Node| match node {
        Node::Rules(rules) => own(rules).saturating_add(rules.children().count() as u64),
        Node::Accept | Node::Refuse => 1,
    };
    plan.nodes.iter().fold(0, |sum: u64, node| sum.saturating_add(of_node(node)))
}

#[derive(Debug, Clone, Copy)]
struct Cost {
    weight: u64,
    depth: u64,
}

/// The cost of a schema and of what it leads to; none if it leads back to itself.
fn whole(rules: &Rules, costs: &[Option<Cost>]) -> Option<Cost> {
    let mut cost = Cost { weight: own(rules), depth: 0 };
    for child in rules.children() {
        let child = costs[child]?;
        cost.weight = cost.weight.saturating_add(child.weight);
        cost.depth = cost.depth.max(child.depth);
    }
    Some(Cost { depth: cost.depth + 1, ..cost })
}

fn own(rules: &Rules) -> u64 {
    let lists = rules.required.len() + rules.properties.len() + rules.dependencies.len();
    let leaves = rules.leaves.iter().fold(0, |sum: u64, leaf| sum.saturating_add(leaf.weight()));
    let patterns = rules.pattern_properties.iter().map(|(pattern, _)| 2 * 16 * pattern.size() as u64);
    leaves.saturating_add(lists as u64 + 1).saturating_add(patterns.sum())
}
