//! Vectors of questions that were asked before.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

const MAX_ENTRIES: usize = 1_024;
/// Encoders read no further.
const MAX_QUESTION_CHARS: usize = 2_000;

/// Bounded; first in, first out.
#[derive(Default)]
pub(crate) struct QueryCache {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    vectors: HashMap<Arc<str>, Arc<[f32]>>,
    order: VecDeque<Arc<str>>,
}

impl QueryCache {
    /// A question as it is embedded: one space between words.
    pub(crate) fn normalise(question: &str) -> String {
        let mut normal = String::new();
        for word in question.split_whitespace() {
            if !normal.is_empty() {
                normal.push(' ');
            }
            normal.push_str(word);
        }
        let end = normal.char_indices().nth(MAX_QUESTION_CHARS).map_or(normal.len(), |(at, _)| at);
        normal.truncate(end);
        normal
    }

    pub(crate) fn get(&self, normal: &str) -> Option<Arc<[f32]>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).vectors.get(normal).cloned()
    }

    pub(crate) fn insert(&self, normal: String, vector: Arc<[f32]>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let key: Arc<str> = normal.into();
        if entries.vectors.insert(Arc::clone(&key), vector).is_none() {
            entries.order.push_back(key);
        }
        if entries.order.len() > MAX_ENTRIES
            && let Some(oldest) = entries.order.pop_front()
        {
            entries.vectors.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded_and_spaces_do_not_matter() {
        let cache = QueryCache::default();
        for number in 0..MAX_ENTRIES * 2 {
            cache.insert(QueryCache::normalise(&format!(" a \n {number}")), Arc::from([number as f32]));
        }
        assert_eq!(cache.get("a 0"), None);
        assert_eq!(
            cache.get(&format!("a {}", MAX_ENTRIES * 2 - 1)).unwrap()[0],
            (MAX_ENTRIES * 2 - 1) as f32
        );
        assert_eq!(cache.entries.lock().unwrap().vectors.len(), MAX_ENTRIES);
        assert_eq!(QueryCache::normalise(&"é ".repeat(9_000)).chars().count(), MAX_QUESTION_CHARS);
    }
}
