//! The declared tools, with what the system text says about them.

use std::collections::BTreeMap;

use serde_json::Value;

/// The parts of a guide that a request is compared with.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Guide {
    pub(crate) heading: String,
    pub(crate) summary: String,
}

impl Guide {
    pub(crate) fn parse(markdown: &str) -> Self {
        let lines = || markdown.lines().map(str::trim).filter(|line| !line.is_empty());
        let heading = lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
        let summary = lines().find(|line| !line.starts_with('#')).unwrap_or_default();
        Self { heading: heading.to_owned(), summary: summary.to_owned() }
    }
}

/// A tool that may be called.
#[derive(Debug, Clone)]
pub(crate) struct Tool<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    pub(crate) parameters: &'a Value,
    /// If the system text says.
    pub(crate) category: Option<&'a str>,
    pub(crate) guide: Guide,
    /// Whether the system text has the guide, or only a line.
    pub(crate) has_guide: bool,
}

impl<'a> Tool<'a> {
    /// Its parameters by name, in the order of their author.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        let properties = self.parameters.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
    }

    pub(crate) fn property(&self, name: &str) -> Option<&'a Value> {
        self.parameters.get("properties")?.get(name)
    }

    pub(crate) fn requires(&self, name: &str) -> bool {
        let required = self.parameters.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|it| it.as_str() == Some(name)))
    }

    /// Whether it changes something in the world.
    pub(crate) fn is_action(&self) -> bool {
        self.category == Some("action")
    }

    pub(crate) fn summary(&self) -> &str {
        if self.guide.summary.is_empty() { self.description } else { &self.guide.summary }
    }

    /// What it is called in a sentence: the heading of its guide, or else what it does.
    pub(crate) fn label(&self) -> &str {
        if self.guide.heading.is_empty() { self.summary() } else { &self.guide.heading }
    }
}

/// Tools that are not chosen by their words: what blocks a user is decided by moderation, and a guide is read on the way.
const HIDDEN_TOOLS: [&str; 2] = ["describe_tool", "ignore_user"];

/// All declared tools, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Toolbox<'a> {
    pub(crate) tools: Vec<Tool<'a>>,
    /// How many searches one message may cost, where the system text says.
    pub(crate) max_searches: Option<usize>,
    /// The namespaces that the user may search, where the system text says.
    readable: Vec<&'a str>,
}

impl<'a> Toolbox<'a> {
    pub(crate) fn read(declarations: &'a [Value], system: &'a str) -> Self {
        let documentation = documentation(system);
        let tools = declarations.iter().filter_map(|declaration| {
            // The form of OpenAI; a bare function is understood too.
            let function = declaration.get("function").unwrap_or(declaration);
            let name = function.get("name")?.as_str().filter(|name| !name.is_empty())?;
            let own = documentation.get(name);
            let text = own.map_or("", |own| own.text);
            let is_guide = own.is_some_and(|own| own.is_guide);
            let guide = match is_guide {
                true => Guide::parse(text),
                false => Guide { summary: text.to_owned(), ..Guide::default() },
            };
            Some(Tool {
                name,
                description: function.get("description").and_then(Value::as_str).unwrap_or_default(),
                parameters: function.get("parameters").unwrap_or(&Value::Null),
                category: own.map(|own| own.category).filter(|category| !category.is_empty()),
                guide,
                has_guide: is_guide,
            })
        });
        let after = |words: &str| system.rsplit_once(words).map(|(_, after)| after);
        let readable = after("may search the namespaces ").and_then(|it| it.split_once('.'));
        Self {
            tools: tools.collect(),
            max_searches: after(": at most ").and_then(|it| it.split_once(" searches")?.0.parse().ok()),
            readable: readable.map(|(names, _)| names.split(", ").collect()).unwrap_or_default(),
        }
    }

    /// The namespaces to search: those that the user may read and that the search takes.
    pub(crate) fn namespaces(&self) -> Vec<&'a str> {
        let taken = self.search().and_then(|tool| tool.property("namespace")?.get("enum")?.as_array());
        let is_taken =
            |name: &&&str| taken.is_some_and(|taken| taken.iter().any(|it| it.as_str() == Some(name)));
        self.readable.iter().filter(is_taken).copied().collect()
    }

    /// A voice session is started in text and ended in voice, even if both tools are declared. What changes the
    /// conversation itself is not offered.
    pub(crate) fn is_usable(&self, tool: &Tool<'_>, is_spoken: bool) -> bool {
        !HIDDEN_TOOLS.contains(&tool.name)
            && tool.name != if is_spoken { "start_voice_session" } else { "end_voice_session" }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Tool<'a>> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The tool that searches the knowledge base: the built-in one, or one that searches and needs a query and
    /// nothing else.
    pub(crate) fn search(&self) -> Option<&Tool<'a>> {
        let searches = |tool: &&Tool<'_>| {
            let required = tool.parameters.get("required").and_then(Value::as_array);
            tool.name.contains("search") && required.is_some_and(|it| it.len() == 1) && tool.requires("query")
        };
        self.find("kb_search").or_else(|| self.tools.iter().find(searches))
    }
}

/// What the system text says about one tool.
struct Documentation<'a> {
    category: &'a str,
    text: &'a str,
    is_guide: bool,
}

/// Guides stand between `<tool id="…" category="…">` and `</tool>`; without room for them there is a line
/// `**id** (category): summary` for each tool.
fn documentation(system: &str) -> BTreeMap<&str, Documentation<'_>> {
    let mut all = BTreeMap::new();
    let mut rest = system;
    while let Some((_, after)) = rest.split_once("<tool id=\"") {
        let Some((id, after)) = after.split_once('"') else { break };
        let Some((attributes, after)) = after.split_once('>') else { break };
        let (text, next) = after.split_once("</tool>").unwrap_or((after, ""));
        let category = attributes.split_once("category=\"").and_then(|(_, it)| it.split_once('"'));
        let category = category.map_or("", |(category, _)| category);
        all.insert(id, Documentation { category, text, is_guide: true });
        rest = next;
    }
    for line in system.lines() {
        let Some((id, after)) = line.trim().strip_prefix("**").and_then(|it| it.split_once("** (")) else {
            continue;
        };
        let Some((category, summary)) = after.split_once("):") else { continue };
        all.entry(id).or_insert(Documentation { category, text: summary.trim(), is_guide: false });
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn guides_and_lines_are_matched_with_declarations() {
        let system = "<tool id=\"kb_search\" category=\"retrieval\">\n# Search\n\nFinds records.\n</tool>\n**refund** (action): Gives money back.\n";
        let declared = [
            json!({ "type": "function", "function": { "name": "kb_search", "description": "D", "parameters": {} } }),
            json!({ "type": "function", "function": { "name": "refund" } }),
            json!({ "type": "function", "function": { "name": "quiet", "description": "Does nothing." } }),
            json!(17),
        ];
        let toolbox = Toolbox::read(&declared, system);
        let seen: Vec<_> =
            toolbox.tools.iter().map(|it| (it.name, it.category, it.summary(), it.has_guide)).collect();
        assert_eq!(
            seen,
            [
                ("kb_search", Some("retrieval"), "Finds records.", true),
                ("refund", Some("action"), "Gives money back.", false),
                ("quiet", None, "Does nothing.", false),
            ]
        );
    }
}
