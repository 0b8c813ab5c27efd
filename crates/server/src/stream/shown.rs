//! What visitors are shown of tool calls. What the operator hides is not sent: a page could show it all the same.
//!
//! A call that needs approval is always sent with its arguments, because no one may approve what they cannot see.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use quarterdeck_agents::text::StreamEvent;
use quarterdeck_agents::turn::TurnCall;
use quarterdeck_contracts::{CallArguments, ModelCall, Outcome, ToolResponse};
use serde_json::{Map, Value, json};

use super::StreamEncoder;
use super::ui::UiMessageEncoder;
use crate::citations::records;
use crate::page_settings::Shown;

/// What stays of a record: enough to cite it.
const RECORD_FIELDS: [&str; 3] = ["id", "title", "url"];
/// What stays of a result's data: what the client shows by other means.
const DATA_FIELDS: [&str; 2] = ["files", "backgroundTaskId"];

impl Shown {
    /// Whether nothing is hidden.
    pub(crate) fn is_all(self) -> bool {
        self == Self::default()
    }

    /// A result as visitors are sent it.
    pub(crate) fn response(self, response: &ToolResponse) -> Cow<'_, ToolResponse> {
        let Outcome::Success(data) = &response.outcome else { return Cow::Borrowed(response) };
        if self.json {
            return Cow::Borrowed(response);
        }
        let outcome = Outcome::Success(reduced(data));
        Cow::Owned(ToolResponse { outcome, intents: Vec::new(), ..response.clone() })
    }
}

fn reduced(data: &Value) -> Value {
    let kept = |fields: &[&str], of: &Value| {
        let fields = fields.iter().filter_map(|name| Some(((*name).to_owned(), of.get(*name)?.clone())));
        fields.collect::<Map<String, Value>>()
    };
    let mut rest = kept(&DATA_FIELDS, data);
    let records: Vec<Value> = records(data).map(|record| kept(&RECORD_FIELDS, record).into()).collect();
    if !records.is_empty() {
        rest.insert("results".into(), records.into());
    }
    rest.into()
}

/// Encodes what visitors are shown.
pub(crate) struct ShownEncoder {
    inner: UiMessageEncoder,
    show: Shown,
    /// Calls of this answer whose arguments were not sent, or that were not sent at all.
    withheld: HashMap<String, Arc<TurnCall>>,
}

impl ShownEncoder {
    pub(crate) fn new(inner: UiMessageEncoder, show: Shown) -> Self {
        Self { inner, show, withheld: HashMap::new() }
    }

    fn call(&mut self, call: &Arc<TurnCall>, out: &mut Vec<u8>) {
        self.withheld.insert(call.id.clone(), call.clone());
        if self.show.tool_cards {
            self.inner.encode(&StreamEvent::ToolCall(Arc::new(without_arguments(call))), out);
        }
    }

    /// Whether nothing was sent of a call.
    fn is_hidden(&self, id: &str) -> bool {
        !self.show.tool_cards && self.withheld.contains_key(id)
    }
}

impl StreamEncoder for ShownEncoder {
    fn encode(&mut self, event: &StreamEvent, out: &mut Vec<u8>) {
        let Shown { tool_cards, gates: has_gates, json } = self.show;
        match event {
            StreamEvent::ToolCall(call) if !(tool_cards && json) => self.call(call, out),
            StreamEvent::ConfirmationRequest { id, .. } => {
                if let Some(call) = self.withheld.remove(&**id) {
                    self.inner.encode(&StreamEvent::ToolCall(call), out);
                }
                self.inner.encode(event, out);
            }
            StreamEvent::ToolResult { id, response, .. } if self.is_hidden(id) => {
                self.inner.show_files(id, response, out);
            }
            StreamEvent::ToolResult { id, response, gates } => {
                self.inner.citations.add_result(response);
                let response = Arc::new(self.show.response(response).into_owned());
                let gates = gates.clone().filter(|_| has_gates);
                self.inner.encode(&StreamEvent::ToolResult { id: id.clone(), response, gates }, out);
            }
            StreamEvent::LateToolResult { id, response, .. } if !tool_cards => {
                self.inner.show_files(id, response, out);
            }
            StreamEvent::LateToolResult { id, name, response, gates } => {
                let response = Arc::new(self.show.response(response).into_owned());
                let gates = gates.clone().filter(|_| has_gates);
                let (id, name) = (id.clone(), name.clone());
                self.inner.encode(&StreamEvent::LateToolResult { id, name, response, gates }, out);
            }
            StreamEvent::PartialResult { id, .. } if !json || self.is_hidden(id) => {}
            StreamEvent::Progress { id, .. } if self.is_hidden(id) => {}
            _ => self.inner.encode(event, out),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.inner.finish(out);
    }
}

fn without_arguments(turn_call: &TurnCall) -> TurnCall {
    let arguments = match &turn_call.call.arguments {
        CallArguments::Json(_) => CallArguments::Json(json!({})),
        CallArguments::Broken(_) => CallArguments::Broken(String::new()),
    };
    let call = ModelCall { arguments, ..turn_call.call.clone() };
    TurnCall { call, ..turn_call.clone() }
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::{ConfirmationRequest, HandlerAnswer, Meta};
    use quarterdeck_runtime::gates::Trace;

    use super::*;

    const SECRET: &str = "the inner workings";

    fn response() -> Arc<ToolResponse> {
        let meta: Meta = serde_json::from_value(json!({
            "toolId": "kb_search", "toolVersion": "1.0.0", "registryVersion": "1.0.0", "responseSchemaVersion": "1.1.0",
            "duration": 0, "timestamp": "2026-01-13T09:00:00Z",
        }))
        .unwrap();
        let record =
            json!({ "id": "doc:fram", "title": "The Fram", "score": SECRET, "metadata": { "a": SECRET } });
        Arc::new(HandlerAnswer::success(json!({ "results": [record], "debug": SECRET })).stamp(meta))
    }

    fn call(id: &str) -> StreamEvent {
        let arguments = CallArguments::Json(json!({ "query": SECRET }));
        let call = ModelCall { id: Some(id.into()), name: "kb_search".into(), arguments };
        StreamEvent::ToolCall(Arc::new(TurnCall { id: id.into(), call }))
    }

    fn request(id: &str) -> StreamEvent {
        let request: ConfirmationRequest = serde_json::from_value(json!({
            "token": "qdc_1", "expires": 5, "tool": "kb_search", "args": { "query": SECRET }, "preview": "Search?",
        }))
        .unwrap();
        StreamEvent::ConfirmationRequest { id: id.into(), request: Arc::new(request) }
    }

    fn result(id: &str) -> StreamEvent {
        let gates = Some(Arc::new(Trace::default()));
        StreamEvent::ToolResult { id: id.into(), response: response(), gates }
    }

    fn sent(show: Shown, events: &[StreamEvent]) -> (Vec<String>, String) {
        let mut encoder = ShownEncoder::new(UiMessageEncoder::default(), show);
        let mut out = Vec::new();
        events.iter().for_each(|event| encoder.encode(event, &mut out));
        let text = String::from_utf8(out).unwrap();
        let parts = text.split("\n\n").filter_map(|event| event.strip_prefix("data: {"));
        let kinds = parts.map(|part| {
            let part: Value = serde_json::from_str(&format!("{{{part}")).unwrap();
            part["type"].as_str().unwrap().to_owned()
        });
        (kinds.collect(), text)
    }

    #[test]
    fn hidden_arguments_and_results_are_not_in_the_stream_and_citations_stay() {
        let show = Shown { json: false, ..Shown::default() };
        let late = StreamEvent::LateToolResult {
            id: "c0".into(),
            name: "kb_search".into(),
            response: response(),
            gates: None,
        };
        let partial = StreamEvent::PartialResult { id: "c1".into(), response: response() };
        let text = StreamEvent::Text("It was strong [doc:fram].".into());
        let (kinds, sent) =
            sent(show, &[late, call("c1"), partial, result("c1"), text, StreamEvent::RoundStarted]);
        assert!(!sent.contains(SECRET), "{sent}");
        assert!(sent.contains(r#"{"id":"doc:fram","title":"The Fram"}"#), "{sent}");
        let tool = ["data-outcome", "tool-input-available", "tool-output-available", "data-gates"];
        assert_eq!(kinds[..4], tool);
        assert!(kinds.contains(&"source-document".to_owned()));
    }

    #[test]
    fn hidden_calls_are_not_in_the_stream_and_citations_stay() {
        let show = Shown { tool_cards: false, ..Shown::default() };
        let progress = StreamEvent::Progress { id: "c1".into(), text: SECRET.into() };
        let text = StreamEvent::Text("It was strong [doc:fram].".into());
        let (kinds, sent) =
            sent(show, &[call("c1"), progress, result("c1"), text, StreamEvent::RoundStarted]);
        assert!(!sent.contains(SECRET) && !sent.contains("kb_search"), "{sent}");
        assert_eq!(kinds, ["text-start", "text-delta", "text-end", "source-document", "start-step"]);
    }

    #[test]
    fn hidden_gates_are_not_in_the_stream() {
        let show = Shown { gates: false, ..Shown::default() };
        let (kinds, _) = sent(show, &[call("c1"), result("c1")]);
        assert_eq!(kinds, ["tool-input-available", "tool-output-available"]);
        let (kinds, _) = sent(Shown::default(), &[call("c1"), result("c1")]);
        assert_eq!(kinds.last().unwrap(), "data-gates");
    }

    #[test]
    fn a_call_that_needs_approval_is_shown_with_its_arguments_whatever_is_hidden() {
        for show in [
            Shown { tool_cards: false, gates: false, json: false },
            Shown { json: false, ..Shown::default() },
            Shown { tool_cards: false, ..Shown::default() },
        ] {
            let (kinds, sent) = sent(show, &[call("c1"), request("c1"), result("c1")]);
            let whole = format!(r#""toolName":"kb_search","input":{{"query":"{SECRET}"}}"#);
            assert!(sent.contains(&whole), "{show:?} {sent}");
            let position = |kind: &str| kinds.iter().position(|each| each == kind);
            assert!(position("tool-approval-request") > position("tool-input-available"), "{show:?}");
            assert!(position("tool-output-available") > position("data-confirmation"), "{show:?}");
        }
    }
}
