//! The parts of a guide that a request is compared with.

use serde_json::Value;

/// A call that a guide shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Example {
    /// The line before it.
    pub(crate) lead: String,
    pub(crate) arguments: Value,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Guide {
    pub(crate) heading: String,
    pub(crate) summary: String,
    pub(crate) examples: Vec<Example>,
}

impl Guide {
    /// Ignores what is unexpected: the compiler has checked the guide.
    pub(crate) fn parse(markdown: &str) -> Self {
        let mut guide = Self::default();
        let mut in_examples = false;
        let mut lead = String::new();
        let mut lines = markdown.lines();
        while let Some(line) = lines.next() {
            let line = line.trim();
            if let Some(heading) = line.strip_prefix('#') {
                let heading = heading.trim_start_matches('#').trim();
                in_examples = heading.to_lowercase().starts_with("example");
                if guide.heading.is_empty() {
                    guide.heading = heading.to_owned();
                }
                lead.clear();
            } else if let Some(language) = line.strip_prefix("```") {
                let block: Vec<&str> =
                    lines.by_ref().take_while(|line| !line.trim().starts_with("```")).collect();
                if in_examples && language.trim() == "json" && !is_answer(&lead) {
                    guide.take_example(std::mem::take(&mut lead), &block.join("\n"));
                }
                lead.clear();
            } else if !line.is_empty() {
                if guide.summary.is_empty() {
                    guide.summary = line.to_owned();
                }
                lead = if in_examples { line.trim_end_matches(':').to_owned() } else { String::new() };
            }
        }
        guide
    }

    fn take_example(&mut self, lead: String, block: &str) {
        if let Ok(arguments @ Value::Object(_)) = serde_json::from_str::<Value>(block)
            && arguments.get("ok").is_none()
        {
            self.examples.push(Example { lead, arguments });
        }
    }
}

fn is_answer(lead: &str) -> bool {
    lead.starts_with("Response") || lead.starts_with("Result")
}

/// The phrases that stand in quotation marks.
pub(crate) fn quoted(text: &str) -> Vec<&str> {
    let mut phrases = Vec::new();
    for (open, close) in [('“', '”'), ('"', '"'), ('„', '“'), ('«', '»')] {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((phrase, next)) = after.split_once(close) else { break };
            phrases.push(phrase.trim());
            rest = next;
        }
    }
    phrases.retain(|phrase| !phrase.is_empty());
    phrases
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn examples_keep_the_words_before_them_and_answers_are_none() {
        let guide = Guide::parse(
            "# Start a voice session\n\nOpens a session.\n\n## Examples\n\nSomeone would rather talk:\n\n```json\n{ \"a\": 1 }\n```\n\n\
             Response data:\n\n```json\n{ \"b\": 2 }\n```\n\n“Call me”, and nothing else:\n\n```json\n{}\n```\n\n## Watch Out\n\n```json\n{}\n```\n",
        );
        let example = |lead: &str, arguments| Example { lead: lead.to_owned(), arguments };
        assert_eq!(
            guide,
            Guide {
                heading: "Start a voice session".into(),
                summary: "Opens a session.".into(),
                examples: vec![
                    example("Someone would rather talk", json!({ "a": 1 })),
                    example("“Call me”, and nothing else", json!({})),
                ],
            }
        );
    }

    #[test]
    fn quotation_marks_of_several_kinds_are_understood() {
        assert_eq!(quoted("say “Call me” or \"ring me\" and “open"), ["Call me", "ring me"]);
    }
}
