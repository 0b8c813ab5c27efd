//! Arrays.

use serde_json::Value;

use super::{Evaluation, Evaluator, messages};
use crate::budget::BudgetExhausted;
use crate::plan::{Contains, Node, NodeId, Rules};

impl<'p, 'v> Evaluator<'p, 'v, '_> {
    pub(super) fn arrays(
        &mut self,
        rules: &'p Rules,
        items: &'v [Value],
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        let prefix = rules.array.prefix_items.len();
        for (index, (node, item)) in rules.array.prefix_items.iter().zip(items).enumerate() {
            evaluation.is_valid &= self.item(*node, index, item)?;
        }
        evaluation.evaluated.items_before(prefix);
        if let Some(node) = rules.array.items {
            evaluation.evaluated.every_item();
            let is_limit = prefix > 0 && matches!(self.plan.nodes[node], Node::Refuse);
            if is_limit && items.len() > prefix {
                evaluation.is_valid = false;
                self.report("items", |path| messages::too_many_items(path, prefix))?;
            } else if !is_limit {
                self.each(node, items.iter().enumerate().skip(prefix), evaluation)?;
            }
        }
        if let Some(contains) = &rules.array.contains {
            self.contains(contains, items, evaluation)?;
        }
        if let Some(node) = rules.array.unevaluated_items {
            self.unevaluated_items(node, items, evaluation)?;
        }
        Ok(())
    }

    fn each(
        &mut self,
        node: NodeId,
        items: impl Iterator<Item = (usize, &'v Value)>,
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        for (index, item) in items {
            if self.is_settled(evaluation) {
                break;
            }
            evaluation.is_valid &= self.item(node, index, item)?;
        }
        Ok(())
    }

    fn unevaluated_items(
        &mut self,
        node: NodeId,
        items: &'v [Value],
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        self.budget.spend(items.len() as u64)?;
        let rest: Vec<usize> =
            (0..items.len()).filter(|index| !evaluation.evaluated.has_item(*index)).collect();
        if matches!(self.plan.nodes[node], Node::Refuse) {
            if let Some(first) = rest.first() {
                evaluation.is_valid = false;
                self.report("unevaluatedItems", |path| messages::too_many_items(path, *first))?;
            }
        } else {
            self.each(node, rest.into_iter().map(|index| (index, &items[index])), evaluation)?;
        }
        evaluation.evaluated.every_item();
        Ok(())
    }

    fn contains(
        &mut self,
        contains: &'p Contains,
        items: &'v [Value],
        evaluation: &mut Evaluation<'v>,
    ) -> Result<(), BudgetExhausted> {
        let mut count = 0;
        let mut refused = Vec::new();
        // Limits that contradict each other refuse every array, whatever its items are.
        let is_hopeless = contains.max.is_some_and(|max| contains.min > max);
        let items = if is_hopeless { &[] } else { items };
        for (index, item) in items.iter().enumerate() {
            if self.verdict(contains.item, item)?.is_valid {
                count += 1;
                evaluation.evaluated.item(index);
            } else if self.reports {
                refused.push(index);
            }
            if contains.max.is_some_and(|max| count > max) {
                break;
            }
        }
        if count >= contains.min && contains.max.is_none_or(|max| count <= max) {
            return Ok(());
        }
        evaluation.is_valid = false;
        for index in refused {
            self.item(contains.item, index, &items[index])?;
        }
        self.report("contains", |path| messages::contains(path, contains.min, contains.max))
    }
}
