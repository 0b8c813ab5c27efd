//! `[topics]`: lists of topics about which tools ask the user.

use std::collections::BTreeMap;

use quarterdeck_runtime::{LoadedTool, Snapshot, Topics};

use super::kinds::{list, topic};
use super::reader::Reader;

/// The list that is there without being configured, and the one that the built-in tools name.
const SENSITIVE: &str = "sensitive";
/// Topics are matched as whole words, so each form stands for itself.
const SENSITIVE_TOPICS: [&str; 14] = [
    "bomb",
    "bombs",
    "corpse",
    "gore",
    "gun",
    "guns",
    "naked",
    "nude",
    "nudity",
    "suicide",
    "terrorist",
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

/// Warns about tools that name a list which is not configured: they ask the user about every call.
pub(crate) fn warn_about_missing_lists(snapshot: &Snapshot, topics: &Topics) {
    for metadata in snapshot.tools().map(LoadedTool::metadata) {
        let list = metadata.confirm_when.as_ref().and_then(|policy| policy.topics.as_deref());
        if let Some(list) = list.filter(|list| !topics.has_list(list)) {
            let tool = metadata.tool_id.as_str();
            tracing::warn!(
                tool,
                list,
                "topic list not configured, every call of the tool needs approval; add it to [topics]"
            );
        }
    }
}

/// The lists of a configuration that says nothing about them.
pub(crate) fn default_topics() -> Topics {
    let sensitive = SENSITIVE_TOPICS.map(str::to_owned).to_vec();
    BTreeMap::from([(SENSITIVE.to_owned(), sensitive)]).into()
}
