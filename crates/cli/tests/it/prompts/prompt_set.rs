//! The files of `tests/prompts`, and the judgement of a reply.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

pub(crate) struct Prompt {
    pub(crate) text: String,
    expected: Expected,
    /// Whether the question that it leads to is answered with yes.
    pub(crate) is_approved: bool,
    /// Whether it means something else in a call.
    pub(crate) is_text_only: bool,
}

#[derive(Debug, Clone)]
enum Expected {
    /// One of these in a quotation.
    Answer(Vec<String>),
    Cards,
    /// These words, and no call that acts: it asks, refuses or chats.
    Words(String),
    /// The last call, and what its arguments hold.
    Tool(String, String),
}

impl Prompt {
    /// Whether it must lead to a call beside the look-ups.
    pub(crate) fn is_call(&self) -> bool {
        matches!(self.expected, Expected::Tool(..))
    }
}

/// What a prompt came to.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) text: String,
    /// Names and arguments, where the interface tells them.
    pub(crate) calls: Vec<(String, Value)>,
}

/// The conversations of a file.
pub(crate) fn load(name: &str) -> Vec<Vec<Prompt>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/prompts").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let mut conversations: Vec<Vec<Prompt>> = vec![Vec::new()];
    let mut said: Option<String> = None;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let current = conversations.last_mut().unwrap();
        if line.is_empty() {
            conversations.push(Vec::new());
        } else if let Some(text) = line.strip_prefix("> ") {
            said = Some(text.to_owned());
        } else if line == "! approve" {
            current.last_mut().unwrap().is_approved = true;
        } else {
            let bare = line.strip_suffix(" (text)").unwrap_or(line);
            let text = said.take().unwrap_or_else(|| panic!("nothing was said before {line}"));
            current.push(Prompt {
                text,
                expected: expected(bare),
                is_approved: false,
                is_text_only: bare != line,
            });
        }
    }
    conversations.retain(|conversation| !conversation.is_empty());
    conversations
}

fn expected(line: &str) -> Expected {
    let (kind, rest) = line.split_once(": ").unwrap_or((line, ""));
    match kind {
        "answer" => Expected::Answer(rest.split(" | ").map(str::to_owned).collect()),
        "cards" => Expected::Cards,
        "ask" | "talk" | "refuse" => Expected::Words(rest.to_owned()),
        "tool" => {
            let (name, held) = rest.split_once(' ').unwrap_or((rest, ""));
            Expected::Tool(name.to_owned(), held.to_owned())
        }
        other => panic!("unknown expectation {other}"),
    }
}

/// What became of a set: how many were answered of those that could be, and everything that went wrong.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    pub(crate) answerable: usize,
    pub(crate) answered: usize,
    pub(crate) prompts: usize,
    pub(crate) faults: Vec<String>,
    counts: BTreeMap<&'static str, usize>,
}

impl Verdicts {
    pub(crate) fn judge(&mut self, prompt: &Prompt, reply: &Reply) {
        self.prompts += 1;
        let text = reply.text.as_str();
        let shows_records =
            text.contains("but not reason about them") || text.contains("has nothing on that");
        let cites = text.contains('[') || text.contains("in the record “") || text.contains("the record “");
        let is_answer = cites && !shows_records;
        let acts: Vec<_> = reply.calls.iter().filter(|(name, _)| !name.starts_with("kb_")).collect();
        let fault = match &prompt.expected {
            Expected::Answer(any) => {
                self.answerable += 1;
                let holds = any.iter().any(|it| text.contains(it.as_str()));
                self.answered += usize::from(is_answer && holds);
                if !acts.is_empty() {
                    Some("something was done")
                } else if is_answer && !holds {
                    Some("a wrong statement as the answer")
                } else {
                    (!is_answer && !shows_records).then_some("neither an answer nor records")
                }
            }
            Expected::Cards if is_answer => Some("an answer to what cannot be answered"),
            Expected::Cards => (!acts.is_empty()).then_some("something was done"),
            Expected::Words(words) => {
                let is_right = text.contains(words.as_str()) && acts.is_empty() && !is_answer;
                (!is_right).then_some("not the words that were expected")
            }
            Expected::Tool(name, held) => {
                let is_it = acts.last().is_some_and(|(called, arguments)| {
                    called == name && arguments.to_string().contains(held.as_str())
                });
                (!is_it).then_some("not the call that was expected")
            }
        };
        if let Some(fault) = fault {
            *self.counts.entry(fault).or_default() += 1;
            let Reply { text, calls } = reply;
            self.faults.push(format!(
                "{}\n  {fault}, expected {:?}\n  said {text}\n  called {calls:?}",
                prompt.text, prompt.expected
            ));
        }
    }

    /// The same where calls are not told: what is called is then seen in what is said about it.
    pub(crate) fn judge_words(&mut self, prompt: &Prompt, text: &str) {
        let reply = Reply { text: text.to_owned(), calls: Vec::new() };
        match &prompt.expected {
            Expected::Tool(..) => {
                self.prompts += 1;
                if text.is_empty() || text.contains("has nothing on that") || text.contains("but not reason")
                {
                    self.faults.push(format!(
                        "{}\n  not called, expected {:?}\n  said {text}",
                        prompt.text, prompt.expected
                    ));
                }
            }
            _ => self.judge(prompt, &reply),
        }
    }

    pub(crate) fn share_answered(&self) -> f64 {
        self.answered as f64 / self.answerable.max(1) as f64
    }

    /// Fails with everything that went wrong.
    pub(crate) fn check(&self, min_answered: f64) {
        let Self { answered, answerable, prompts, faults, counts, .. } = self;
        let summary = format!("{prompts} prompts, {answered} of {answerable} answered, {counts:?}");
        assert!(faults.is_empty(), "{summary}\n\n{}", faults.join("\n"));
        assert!(self.share_answered() >= min_answered, "{summary}");
    }
}
