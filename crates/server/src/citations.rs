//! The records that an answer cites, found in its text as it is streamed.
//!
//! Models cite as `[doc:fram]`, `[doc:fram, person:nansen]` or `[the ship](doc:fram)`. A citation counts only if a tool has
//! returned that record in the same answer: what a model makes up is no source.

use std::collections::HashMap;

use quarterdeck_contracts::{Outcome, ToolResponse};
use serde_json::Value;
use url::Url;

/// Records that are kept of an answer's results.
const MAX_RECORDS: usize = 500;
const MAX_CITATIONS: usize = 200;
/// A longer bracket is no citation.
const MAX_GROUP_BYTES: usize = 400;
const MAX_TITLE_CHARS: usize = 300;
const MAX_ID_BYTES: usize = 200;

/// A record that can be cited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) id: String,
    pub(crate) title: String,
    /// Where it is, on the web.
    pub(crate) url: Option<String>,
}

/// One citation. Its place is counted in characters of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Citation {
    pub(crate) source: Source,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Citations {
    sources: HashMap<String, Source>,
    /// How many characters of text there were.
    chars: usize,
    open: Option<Group>,
    /// Whether the last character closed a bracket, so that a target may follow.
    has_label: bool,
    found: Vec<Citation>,
    /// How many of those were taken.
    taken: usize,
}

/// A bracket that has not been closed.
#[derive(Debug)]
struct Group {
    start: usize,
    closer: char,
    text: String,
}

impl Citations {
    /// Keeps the records of a result.
    pub(crate) fn add_result(&mut self, response: &ToolResponse) {
        let Outcome::Success(data) = &response.outcome else { return };
        for source in records(data).filter_map(Source::of) {
            if self.sources.len() >= MAX_RECORDS && !self.sources.contains_key(&source.id) {
                return;
            }
            // A search may leave out the URL that an earlier one gave.
            let known = self.sources.get(&source.id).and_then(|known| known.url.clone());
            let url = source.url.clone().or(known);
            self.sources.insert(source.id.clone(), Source { url, ..source });
        }
    }

    /// Reads on in the text.
    pub(crate) fn add_text(&mut self, text: &str) {
        if self.sources.is_empty() {
            self.chars += text.chars().count();
            return;
        }
        for letter in text.chars() {
            self.read(letter);
            self.chars += 1;
        }
    }

    fn read(&mut self, letter: char) {
        let closer = match letter {
            '[' => Some(']'),
            '(' if self.has_label => Some(')'),
            _ => None,
        };
        self.has_label = false;
        if let Some(closer) = closer {
            self.open = Some(Group { start: self.chars, closer, text: String::new() });
            return;
        }
        let Some(group) = &mut self.open else { return };
        if letter != group.closer {
            group.text.push(letter);
            if letter == '\n' || group.text.len() > MAX_GROUP_BYTES {
                self.open = None;
            }
            return;
        }
        self.has_label = letter == ']';
        if let Some(group) = self.open.take() {
            self.close(&group);
        }
    }

    fn close(&mut self, group: &Group) {
        let cited = group.text.split([',', ';']).filter_map(|id| self.sources.get(id.trim()));
        let room = MAX_CITATIONS.saturating_sub(self.found.len());
        let (start, end) = (group.start, self.chars + 1);
        let cited = cited.take(room).map(|source| Citation { source: source.clone(), start, end });
        self.found.extend(cited.collect::<Vec<_>>());
    }

    /// All citations, in their order.
    pub(crate) fn all(&self) -> &[Citation] {
        &self.found
    }

    /// The sources that are cited for the first time since the last call.
    pub(crate) fn take_new_sources(&mut self) -> Vec<Source> {
        let (old, new) = self.found.split_at(self.taken);
        let mut sources: Vec<Source> = Vec::new();
        for Citation { source, .. } in new {
            let is_known = old.iter().any(|citation| citation.source.id == source.id)
                || sources.iter().any(|known| known.id == source.id);
            if !is_known {
                sources.push(source.clone());
            }
        }
        self.taken = self.found.len();
        sources
    }
}

impl Source {
    fn of(record: &Value) -> Option<Self> {
        let id = record["id"].as_str().filter(|id| (1..=MAX_ID_BYTES).contains(&id.len()))?;
        let title = record["title"].as_str().filter(|title| !title.trim().is_empty()).unwrap_or(id);
        let is_web = |url: &&str| {
            Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        };
        Some(Self {
            id: id.to_owned(),
            title: title.chars().take(MAX_TITLE_CHARS).collect(),
            url: record["url"].as_str().filter(is_web).map(str::to_owned),
        })
    }
}

/// The records in the data of an answer, as searches and look-ups return them.
pub(crate) fn records(data: &Value) -> impl Iterator<Item = &Value> {
    ["results", "records"].into_iter().filter_map(|name| data[name].as_array()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quarterdeck_contracts::{HandlerAnswer, Meta};
    use serde_json::json;

    use super::*;

    fn response(data: Value) -> ToolResponse {
        let meta: Meta = serde_json::from_value(json!({
            "toolId": "kb_search", "toolVersion": "1.0.0", "registryVersion": "1.0.0", "responseSchemaVersion": "1.1.0",
            "duration": 0, "timestamp": "2026-01-13T09:00:00Z",
        }))
        .unwrap();
        HandlerAnswer::success(data).stamp(meta)
    }

    fn citations() -> Citations {
        let mut citations = Citations::default();
        citations.add_result(&response(json!({ "results": [
            { "id": "doc:fram", "title": "The Fram", "url": "https://example.com/fram" },
            { "id": "person:nansen", "title": "Fridtjof Nansen", "url": null },
            { "id": "doc:odd", "url": "javascript:alert(1)" }, { "title": "no id" }, 7,
        ] })));
        citations
    }

    fn places(text: &str) -> Vec<(String, String)> {
        let mut citations = citations();
        citations.add_text(text);
        let letters: Vec<char> = text.chars().collect();
        let place =
            |found: &Citation| (found.source.id.clone(), letters[found.start..found.end].iter().collect());
        citations.all().iter().map(place).collect()
    }

    #[test]
    fn a_citation_is_a_known_record_in_brackets() {
        let pair = |id: &str, text: &str| (id.to_owned(), text.to_owned());
        assert_eq!(
            places("Gebaut für Nansen – [doc:fram; person:nansen]. [Das Schiff](doc:fram) [x] [doc:other]"),
            [
                pair("doc:fram", "[doc:fram; person:nansen]"),
                pair("person:nansen", "[doc:fram; person:nansen]"),
                pair("doc:fram", "(doc:fram)")
            ]
        );
        for none in ["doc:fram", "(doc:fram)", "[doc:fram", "[doc:\nfram]", "[doc:fram2]", "[] (doc:fram)"] {
            assert_eq!(places(none), [], "{none}");
        }
    }

    #[test]
    fn a_source_is_new_once_and_only_a_web_address_is_its_url() {
        let mut citations = citations();
        citations.add_text("[doc:fram] [doc:fram] [doc:odd]");
        let new = citations.take_new_sources();
        let new: Vec<_> =
            new.iter().map(|source| (&*source.id, &*source.title, source.url.as_deref())).collect();
        assert_eq!(
            new,
            [("doc:fram", "The Fram", Some("https://example.com/fram")), ("doc:odd", "doc:odd", None)]
        );
        citations.add_text("[doc:fram]");
        assert_eq!(citations.take_new_sources(), []);
        citations.add_text("[person:nansen]");
        assert_eq!(citations.take_new_sources().len(), 1);
    }

    proptest! {
        #[test]
        fn citations_are_the_same_however_the_text_is_cut(
            words in proptest::collection::vec(
                prop_oneof!["[\\[\\](),;a-zä\n ]{0,6}", Just("[doc:fram]".to_owned()), Just("](doc:fram)".to_owned())],
                0..20,
            ),
        ) {
            let mut cut = citations();
            words.iter().for_each(|word| cut.add_text(word));
            let mut whole = citations();
            whole.add_text(&words.concat());
            prop_assert_eq!(cut.all(), whole.all());
            let length = words.concat().chars().count();
            prop_assert!(whole.all().iter().all(|found| found.start < found.end && found.end <= length));
        }
    }
}
