//! Arrays.

use serde_json::Value;

use super::{Judged, Judging, messages};
use crate::budget::Exhausted;
use crate::plan::{Contains, Node, NodeId, Rules};

impl<'p, 'v> Judging<'p, 'v, '_> {
    pub(super) fn arrays(
        &mut self,
        rules: &'p Rules,
        items: &'v [Value],
        judged: &mut Judged<'v>,
    ) -> Result<(), Exhausted> {
        let prefix = rules.prefix_items.len();
        for (index, (node, item)) in rules.prefix_items.iter().zip(items).enumerate() {
            judged.is_valid &= self.item(*node, index, item)?;
        }
        judged.seen.items_before(prefix);
        if let Some(node) = rules.items {
            judged.seen.every_item();
            let is_limit = prefix > 0 && matches!(self.plan.nodes[node], Node::Refuse);
            if is_limit && items.len() > prefix {
                judged.is_valid = false;
                self.report("items", |path| messages::too_many_items(path, prefix))?;
            } else if !is_limit {
                self.each(node, items.iter().enumerate().skip(prefix), judged)?;
            }
        }
        if let Some(contains) = &rules.contains {
            self.contains(contains, items, judged)?;
        }
        if let Some(node) = rules.unevaluated_items {
            self.unevaluated_items(node, items, judged)?;
        }
        Ok(())
    }

    fn each(
        &mut self,
        node: NodeId,
        items: impl Iterator<Item = (usize, &'v Value)>,
        judged: &mut Judged<'v>,
    ) -> Result<(), Exhausted> {
        for (index, item) in items {
            if self.is_settled(judged) {
                break;
            }
            judged.is_valid &= self.item(node, index, item)?;
        }
        Ok(())
    }

    fn unevaluated_items(
        &mut self,
        node: NodeId,
        items: &'v [Value],
        judged: &mut Judged<'v>,
    ) -> Result<(), Exhausted> {
        self.budget.spend(items.len() as u64)?;
        let rest: Vec<usize> = (0..items.len()).filter(|index| !judged.seen.has_item(*index)).collect();
        if matches!(self.plan.nodes[node], Node::Refuse) {
            if let Some(first) = rest.first() {
                judged.is_valid = false;
                self.report("unevaluatedItems", |path| messages::too_many_items(path, *first))?;
            }
        } else {
            self.each(node, rest.into_iter().map(|index| (index, &items[index])), judged)?;
        }
        judged.seen.every_item();
        Ok(())
    }

    fn contains(
        &mut self,
        contains: &'p Contains,
        items: &'v [Value],
        judged: &mut Judged<'v>,
    ) -> Result<(), Exhausted> {
        let mut count = 0;
        let mut refused = Vec::new();
        // Limits that contradict each other refuse every array, whatever its items are.
        let is_hopeless = contains.most.is_some_and(|most| contains.least > most);
        let items = if is_hopeless { &[] } else { items };
        for (index, item) in items.iter().enumerate() {
            if self.verdict(contains.item, item)?.is_valid {
                count += 1;
                judged.seen.item(index);
            } else if self.tells {
                refused.push(index);
            }
            if contains.most.is_some_and(|most| count > most) {
                break;
            }
        }
        if count >= contains.least && contains.most.is_none_or(|most| count <= most) {
            return Ok(());
        }
        judged.is_valid = false;
        for index in refused {
            self.item(contains.item, index, &items[index])?;
        }
        self.report("contains", |path| messages::contains(path, contains.least, contains.most))
    }
}
