//! Vectors of questions that were asked before.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// How many are kept.
const MOST: usize = 1_024;
/// How much of a question is embedded, in characters; encoders read no further.
const LONGEST: usize = 2_000;

/// A bounded cache: what was put in first goes first.
#[derive(Default)]
pub(crate) struct QueryCache {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    vectors: HashMap<Arc<str>, Arc<[f32]>>,
    order: VecDeque<Arc<str>>,
}

impl QueryCache {
    /// A question as it is embedded: one space between words.
    pub(crate) fn normal(question: &str) -> String {
        let mut normal = String::new();
        for word in question.split_whitespace() {
            if !normal.is_empty() {
                normal.push(' ');
            }
            normal.push_str(word);
        }
        let end = normal.char_indices().nth(LONGEST).map_or(normal.len(), |(at, _)| at);
        normal.truncate(end);
        normal
    }

    pub(crate) fn find(&self, normal: &str) -> Option<Arc<[f32]>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).vectors.get(normal).cloned()
    }

    pub(crate) fn keep(&self, normal: String, vector: Arc<[f32]>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key: Arc<str> = normal.into();
        if kept.vectors.insert(Arc::clone(&key), vector).is_none() {
            kept.order.push_back(key);
        }
        if kept.order.len() > MOST
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.vectors.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded_and_spaces_do_not_matter() {
        let cache = QueryCache::default();
        for number in 0..MOST * 2 {
            cache.keep(QueryCache::normal(&format!(" a \n {number}")), Arc::from([number as f32]));
        }
        assert_eq!(cache.find("a 0"), None);
        assert_eq!(cache.find(&format!("a {}", MOST * 2 - 1)).unwrap()[0], (MOST * 2 - 1) as f32);
        assert_eq!(cache.kept.lock().unwrap().vectors.len(), MOST);
        assert_eq!(QueryCache::normal(&"é ".repeat(9_000)).chars().count(), LONGEST);
    }
}
