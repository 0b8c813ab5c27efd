//! A conversation with the model, written down as it goes: with the real tool folders and records, and with envelopes
//! as the runtime makes them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use expect_test::Expect;
use futures_util::StreamExt;
use quarterdeck_contracts::{
    CallArguments, CallResult, ChatEvent, ChatMessage, ChatModel, ChatRequest, ModelMessage, ModelReply,
    ToolResponse, ToolUse,
};
use quarterdeck_rehearsal::Rehearsal;
use quarterdeck_testkit::block_on;
use serde_json::{Value, json};

/// A conversation in which every word is written down.
pub(crate) struct Conversation {
    pub(crate) request: ChatRequest,
    model: Rehearsal,
    log: String,
    last: ModelMessage,
}

impl Conversation {
    /// All built-in tools of a written conversation, with their guides.
    pub(crate) fn new() -> Self {
        Self::with(&text_tools())
    }

    pub(crate) fn with(tools: &[Folder]) -> Self {
        Self::over(system(tools, true), tools)
    }

    /// The same in a conversation that is said to be spoken.
    pub(crate) fn spoken(tools: &[Folder]) -> Self {
        let system =
            system(tools, true).replace("locale is nb-NO.", "locale is nb-NO. The conversation is spoken.");
        Self::over(system, tools)
    }

    /// The same with a line for each tool instead of its guide.
    pub(crate) fn with_summaries(tools: &[Folder]) -> Self {
        Self::over(system(tools, false), tools)
    }

    /// The same for a user who may search these namespaces.
    pub(crate) fn reading(namespaces: &str) -> Self {
        let tools = text_tools();
        let rules = format!(
            "1. Search first: at most 5 searches for one message.\n2. This user may search the namespaces {namespaces}.\n"
        );
        Self::over(system(&tools, true).replace("Search when context is missing.", &rules), &tools)
    }

    fn over(system: String, tools: &[Folder]) -> Self {
        let tools: Vec<Value> = tools.iter().map(|tool| tool.declaration.clone()).collect();
        let request = ChatRequest {
            system: system.into(),
            messages: Vec::new(),
            tools: tools.into(),
            tool_use: ToolUse::Allowed,
            span: None,
        };
        Self { request, model: Rehearsal::new(), log: String::new(), last: ModelMessage::default() }
    }

    /// The user says something, and the model replies.
    pub(crate) fn user(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.log, "user: {text}");
        self.request.messages.push(ChatMessage::User { text: text.to_owned() });
        self.reply()
    }

    /// The calls that the model just made come to this, and it replies.
    pub(crate) fn results(&mut self, envelopes: &[Value]) -> &mut Self {
        let calls: Vec<_> = self.last.calls().cloned().collect();
        assert_eq!(calls.len(), envelopes.len(), "an envelope for each call\n{}", self.log);
        let results = calls.into_iter().zip(envelopes).map(|(call, envelope)| {
            let outcome = match envelope["ok"] == json!(true) {
                true => "ok".to_owned(),
                false => envelope["error"]["type"].as_str().unwrap_or_default().to_owned(),
            };
            let _ = writeln!(self.log, "result: {outcome}");
            CallResult { id: call.id, response: Arc::new(stamped(envelope, &call.name)), name: call.name }
        });
        let results = results.collect();
        self.request.messages.push(ChatMessage::Tools { results });
        self.reply()
    }

    /// From here on, tools are off.
    pub(crate) fn off(&mut self) -> &mut Self {
        self.request.tool_use = ToolUse::Off;
        self
    }

    pub(crate) fn check(&self, expected: Expect) {
        expected.assert_eq(&self.log);
    }

    /// What the model said last.
    pub(crate) fn said(&self) -> String {
        self.last.text()
    }

    /// What it called last.
    pub(crate) fn called(&self) -> Vec<(String, Value)> {
        let json = |arguments: &CallArguments| match arguments {
            CallArguments::Json(arguments) => arguments.clone(),
            CallArguments::Broken(text) => json!({ "broken": text }),
        };
        self.last.calls().map(|call| (call.name.clone(), json(&call.arguments))).collect()
    }

    fn reply(&mut self) -> &mut Self {
        let reply = complete(&events(&self.model, &self.request));
        self.last = reply.message.clone();
        if self.last.parts.is_empty() {
            let _ = writeln!(self.log, "(says nothing)");
        }
        if !self.said().is_empty() {
            let _ = writeln!(self.log, "says: {}", self.said());
        }
        for (name, arguments) in self.called() {
            let _ = writeln!(self.log, "calls: {name} {arguments}");
        }
        self.request.messages.push(ChatMessage::Model(reply.message));
        self
    }
}

/// Everything that comes for a request. Needs no runtime, since nothing waits.
pub(crate) fn events(model: &Rehearsal, request: &ChatRequest) -> Vec<ChatEvent> {
    let stream = model.ask(request.clone());
    block_on(stream.map(|event| event.expect("no error was asked for")).collect())
}

/// The reply at the end, whose words must be those that were streamed.
pub(crate) fn complete(events: &[ChatEvent]) -> ModelReply {
    let streamed: String = events
        .iter()
        .filter_map(|event| if let ChatEvent::Text(text) = event { Some(text.as_str()) } else { None })
        .collect();
    let [.., ChatEvent::Done(reply)] = events else { panic!("a reply ends with Done") };
    assert_eq!(reply.message.text(), streamed);
    reply.clone()
}

/// A tool as its folder declares it.
#[derive(Clone)]
pub(crate) struct Folder {
    pub(crate) id: String,
    pub(crate) category: String,
    pub(crate) guide: String,
    pub(crate) declaration: Value,
}

/// The built-in tools that a written conversation has.
pub(crate) fn text_tools() -> Vec<Folder> {
    static TOOLS: LazyLock<Vec<Folder>> = LazyLock::new(|| built_in("text"));
    TOOLS.clone()
}

pub(crate) fn built_in(mode: &str) -> Vec<Folder> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(root().join("tools")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let schemas = paths.iter().filter(|path| path.join("schema.json").exists());
    let folders = schemas.map(|path| {
        let definition: Value =
            serde_json::from_str(&fs::read_to_string(path.join("schema.json")).unwrap()).unwrap();
        (folder(&definition, &fs::read_to_string(path.join("guide.md")).unwrap()), definition)
    });
    let in_mode = |definition: &Value| definition["allowedModes"].as_array().unwrap().contains(&json!(mode));
    folders.filter(|(_, definition)| in_mode(definition)).map(|(folder, _)| folder).collect()
}

pub(crate) fn folder(definition: &Value, guide: &str) -> Folder {
    Folder {
        id: definition["toolId"].as_str().unwrap().to_owned(),
        category: definition["category"].as_str().unwrap().to_owned(),
        guide: guide.to_owned(),
        declaration: json!({ "type": "function", "function": {
            "name": definition["toolId"], "description": definition["description"], "parameters": definition["parameters"],
        } }),
    }
}

/// The system text as the agent writes it.
pub(crate) fn system(tools: &[Folder], with_guides: bool) -> String {
    let mut text = "You are the agent of a studio.\n\n## Now\n\nToday is Sunday, 15 November 2026 (2026-11-15). The user's time zone is \
                    Europe/Oslo and their locale is nb-NO.\n\n## Tools (registry 1.0.3fa9c2e1)\n\n"
        .to_owned();
    for Folder { id, category, guide, .. } in tools {
        let summary =
            guide.lines().find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
        let _ = match with_guides {
            true => writeln!(text, "<tool id=\"{id}\" category=\"{category}\">\n{guide}\n</tool>"),
            false => writeln!(text, "**{id}** ({category}): {summary}"),
        };
    }
    text.push_str("\n## How to work\n\nSearch when context is missing.\n\nIt is 09:10 now.\n");
    text
}

pub(crate) fn ok(data: Value) -> Value {
    json!({ "ok": true, "data": data })
}

pub(crate) fn error(kind: &str, message: &str, more: Value) -> Value {
    let mut error = json!({ "type": kind, "message": message, "retryable": false });
    error.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "ok": false, "error": error })
}

/// What `kb_search` answers when it finds these records.
pub(crate) fn found(ids: &[&str]) -> Value {
    let results = ids.iter().enumerate().map(|(nth, id)| {
        let (title, text) = record_text(id);
        let snippet: String = text.split("\n\n").next().unwrap().chars().take(240).collect();
        json!({
            "id": id, "type": id.split(':').next(), "title": title, "score": 0.8 - 0.1 * nth as f64, "source_type": "article",
            "last_updated": "2025-03-14", "snippet": snippet, "url": null, "metadata": {},
        })
    });
    ok(
        json!({ "results": results.collect::<Vec<_>>(), "query_time_ms": 2, "clamped": false, "degraded": true }),
    )
}

/// What `kb_get` answers for a record of the sample base.
pub(crate) fn record(id: &str) -> Value {
    records(&[id])
}

/// The same for several.
pub(crate) fn records(ids: &[&str]) -> Value {
    let record = |id: &&str| {
        let (title, text) = record_text(id);
        json!({
            "id": id, "type": id.split(':').next(), "title": title, "source_type": "article", "last_updated": "2025-03-14",
            "full_text": text, "tags": tags(id), "url": null, "metadata": {}, "sources": [],
        })
    };
    ok(json!({ "records": ids.iter().map(record).collect::<Vec<_>>() }))
}

fn tags(id: &str) -> Vec<String> {
    let markdown = markdown(id);
    let line = markdown.lines().find_map(|line| line.strip_prefix("tags: [")?.strip_suffix(']'));
    line.unwrap_or_default().split(", ").map(str::to_owned).collect()
}

fn markdown(id: &str) -> String {
    let (kind, slug) = id.split_once(':').unwrap();
    let path = |namespace| root().join(format!("kb/{namespace}/{kind}/{slug}.md"));
    let path = ["studio", "public", "personal"].map(path).into_iter().find(|path| path.exists());
    fs::read_to_string(path.unwrap_or_else(|| panic!("{id} is not in the sample base"))).unwrap()
}

fn record_text(id: &str) -> (String, String) {
    let markdown = markdown(id);
    let body = markdown.split_once("\n# ").unwrap().1;
    let (title, text) = body.split_once('\n').unwrap();
    (title.to_owned(), text.trim().to_owned())
}

pub(crate) fn stamped(envelope: &Value, tool: &str) -> ToolResponse {
    let mut envelope = envelope.clone();
    envelope["meta"] = json!({
        "toolId": tool, "toolVersion": "1.0.0", "registryVersion": "1.0.3fa9c2e1", "responseSchemaVersion": "1.1.0",
        "duration": 3, "timestamp": "2026-11-15T08:10:00Z",
    });
    serde_json::from_value(envelope).unwrap()
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
