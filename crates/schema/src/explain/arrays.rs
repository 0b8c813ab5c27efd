//! Errors of arrays.

use serde_json::Value;

use super::seen::Seen;
use super::{Judging, messages};
use crate::plan::{Contains, Node, Rules};

impl<'p> Judging<'p> {
    pub(super) fn arrays(&mut self, rules: &'p Rules, items: &[Value], seen: &mut Seen) {
        let prefix = rules.prefix_items.len();
        for (index, (node, item)) in rules.prefix_items.iter().zip(items).enumerate() {
            self.part(*node, &index.to_string(), item);
        }
        seen.items_before(prefix);
        if let Some(node) = rules.items {
            seen.every_item();
            let is_limit = prefix > 0 && matches!(self.plan.nodes[node], Node::Refuse);
            if is_limit && items.len() > prefix {
                self.report("items", |path| messages::too_many_items(path, prefix));
            } else if !is_limit {
                for (index, item) in items.iter().enumerate().skip(prefix) {
                    self.part(node, &index.to_string(), item);
                }
            }
        }
        if let Some(contains) = &rules.contains {
            self.contains(contains, items, seen);
        }
        if let Some(node) = rules.unevaluated_items {
            let rest: Vec<usize> = (0..items.len()).filter(|index| !seen.has_item(*index)).collect();
            if matches!(self.plan.nodes[node], Node::Refuse) {
                if let Some(first) = rest.first() {
                    self.report("unevaluatedItems", |path| messages::too_many_items(path, *first));
                }
            } else {
                for index in rest {
                    self.part(node, &index.to_string(), &items[index]);
                }
            }
            seen.every_item();
        }
    }

    fn contains(&mut self, contains: &Contains, items: &[Value], seen: &mut Seen) {
        let mark = self.mark();
        let mut count = 0;
        // Limits that contradict each other refuse every array, whatever its items are.
        let is_hopeless = contains.most.is_some_and(|most| contains.least > most);
        let items = if is_hopeless { &[] } else { items };
        for (index, item) in items.iter().enumerate() {
            if self.part(contains.item, &index.to_string(), item) {
                count += 1;
                seen.item(index);
            }
            if contains.most.is_some_and(|most| count > most) {
                break;
            }
        }
        if count >= contains.least && contains.most.is_none_or(|most| count <= most) {
            self.forget(mark);
        } else {
            self.report("contains", |path| messages::contains(path, contains.least, contains.most));
        }
    }
}
