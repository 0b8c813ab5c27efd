//! Lists of topics that an operator has configured: calls whose arguments touch one of them need the user's approval,
//! where the tool says so.

use std::collections::BTreeMap;

use quarterdeck_contracts::folded_words;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Named lists of topics. A topic is a word, or several words next to each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, Vec<String>>", into = "BTreeMap<String, Vec<String>>")]
pub struct Topics {
    lists: BTreeMap<String, Vec<Topic>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Topic {
    /// As the operator wrote it.
    name: String,
    words: Vec<String>,
}

/// What arguments have to do with a list of topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopicMatch<'a> {
    /// There is no list of that name, so nothing can be said about them.
    NoSuchList,
    Untouched,
    /// The first topic that they touch.
    Touched(&'a str),
}

impl Topics {
    /// Whether a list of that name is configured, be it an empty one.
    pub fn has_list(&self, name: &str) -> bool {
        self.lists.contains_key(name)
    }

    /// Looks for the topics of a list in every text among the arguments.
    pub(crate) fn find_in<'a>(&'a self, list: &str, args: &Value) -> TopicMatch<'a> {
        let Some(topics) = self.lists.get(list) else { return TopicMatch::NoSuchList };
        let mut touched = None;
        for_each_text(args, &mut |text| {
            if touched.is_none() {
                touched = first_topic(topics, &folded_words(text));
            }
        });
        touched.map_or(TopicMatch::Untouched, TopicMatch::Touched)
    }
}

fn first_topic<'a>(topics: &'a [Topic], words: &[String]) -> Option<&'a str> {
    let is_in = |topic: &&Topic| words.windows(topic.words.len()).any(|window| window == topic.words);
    topics.iter().find(is_in).map(|topic| topic.name.as_str())
}

fn for_each_text<'a>(value: &'a Value, visit: &mut impl FnMut(&'a str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| for_each_text(item, visit)),
        Value::Object(fields) => fields.values().for_each(|field| for_each_text(field, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl From<BTreeMap<String, Vec<String>>> for Topics {
    /// A topic without a word is left out: it would be found nowhere.
    fn from(lists: BTreeMap<String, Vec<String>>) -> Self {
        let read = |name: String| {
            let words = folded_words(&name);
            (!words.is_empty()).then_some(Topic { name, words })
        };
        let list = |topics: Vec<String>| topics.into_iter().filter_map(read).collect();
        Self { lists: lists.into_iter().map(|(name, topics)| (name, list(topics))).collect() }
    }
}

impl From<Topics> for BTreeMap<String, Vec<String>> {
    fn from(topics: Topics) -> Self {
        let names = |list: Vec<Topic>| list.into_iter().map(|topic| topic.name).collect();
        topics.lists.into_iter().map(|(name, list)| (name, names(list))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn topics() -> Topics {
        let list = ["Weapons", "nerve gas", " … "].map(str::to_owned).to_vec();
        BTreeMap::from([("sensitive".to_owned(), list), ("none".to_owned(), Vec::new())]).into()
    }

    #[test]
    fn topics_are_found_as_whole_words_in_texts_at_any_depth() {
        let topics = topics();
        let find = |args: Value| topics.find_in("sensitive", &args);
        assert_eq!(find(json!({ "prompt": "Some WEAPONS, old ones" })), TopicMatch::Touched("Weapons"));
        assert_eq!(find(json!({ "a": [{ "b": "a nerve-gas cloud" }] })), TopicMatch::Touched("nerve gas"));
        for harmless in [
            json!({}),
            json!({ "prompt": "weaponsmith" }),
            json!({ "prompt": "a nerve, a gas" }),
            json!({ "weapons": 3, "prompt": "" }),
            json!({ "first": "nerve", "second": "gas" }),
        ] {
            assert_eq!(find(harmless.clone()), TopicMatch::Untouched, "{harmless}");
        }
    }

    #[test]
    fn an_empty_list_touches_nothing_and_a_missing_one_is_reported() {
        let args = json!({ "prompt": "weapons" });
        assert_eq!(topics().find_in("none", &args), TopicMatch::Untouched);
        assert_eq!(topics().find_in("sensible", &args), TopicMatch::NoSuchList);
        assert!(topics().has_list("none") && !topics().has_list("sensible"));
    }

    #[test]
    fn lists_survive_being_written_down() {
        let topics = topics();
        let again: Topics = serde_json::from_value(json!(topics)).unwrap();
        assert_eq!(again, topics);
    }
}
