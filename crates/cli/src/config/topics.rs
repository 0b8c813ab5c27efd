//! `[topics]`: lists of topics about which tools ask the user.

use std::collections::BTreeMap;

use quarterdeck_runtime::Topics;

use super::kinds::{list, topic};
use super::reader::Reader;

/// The list that is there without being configured, and the one that the built-in tools name.
const SENSITIVE: &str = "sensitive";
const SENSITIVE_TOPICS: [&str; 16] = [
    "blood",
    "bomb",
    "bombs",
    "corpse",
    "drugs",
    "gore",
    "gun",
    "guns",
    "naked",
    "nude",
    "self-harm",
    "sexual",
    "suicide",
    "torture",
    "weapon",
    "weapons",
];

pub(super) fn topics(from: &mut Reader) -> Topics {
    from.table(
        "topics",
        "Lists of topics. A tool whose `confirmWhen.topics` names one asks the user when a text among its arguments has a \
         topic of it: a word, or several words next to each other.",
    );
    let mut sensitive: Vec<String> = SENSITIVE_TOPICS.map(str::to_owned).to_vec();
    let about =
        "The list that built-in tools name; `[]` switches it off. Further lists have names of their own";
    from.set(SENSITIVE, list(topic()), &mut sensitive, about);
    let mut lists: BTreeMap<String, Vec<String>> =
        from.named("topics that a tool asks about", || list(topic()));
    lists.insert(SENSITIVE.to_owned(), sensitive);
    lists.into()
}

/// The lists of a configuration that says nothing about them.
pub(crate) fn default_topics() -> Topics {
    let sensitive = SENSITIVE_TOPICS.map(str::to_owned).to_vec();
    BTreeMap::from([(SENSITIVE.to_owned(), sensitive)]).into()
}
