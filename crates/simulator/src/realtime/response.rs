//! The events of one response.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::events::{about, done};

/// 200 ms.
const SAMPLES_PER_WORD: usize = 4_800;

/// An active response. Its events are emitted one by one, so that speech can interrupt it.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) id: String,
    pub(super) item: String,
    events: VecDeque<(Value, usize)>,
    /// Samples sent so far.
    pub(super) samples: usize,
}

impl Response {
    /// Says something, a word at a time.
    pub(super) fn say(id: String, item: String, text: &str) -> Self {
        let message = |status: &str, content: Value| {
            json!({ "id": item, "object": "realtime.item", "type": "message", "role": "assistant",
                "status": status, "content": content })
        };
        let content = json!([{ "type": "output_audio", "transcript": text }]);
        let part = |kind: &str, more: Value| about(kind, &id, &item, &more);
        let mut events = VecDeque::from([(
            part("response.output_item.added", json!({ "item": message("in_progress", json!([])) })),
            0,
        )]);
        let audio = base64_simd::STANDARD.encode_to_string(tone());
        for word in text.split_inclusive(' ') {
            let words = json!({ "content_index": 0, "delta": word });
            events.push_back((part("response.output_audio_transcript.delta", words), 0));
            let sound = json!({ "content_index": 0, "delta": audio });
            events.push_back((part("response.output_audio.delta", sound), SAMPLES_PER_WORD));
        }
        let all = json!({ "content_index": 0, "transcript": text });
        events.push_back((part("response.output_audio.done", json!({ "content_index": 0 })), 0));
        events.push_back((part("response.output_audio_transcript.done", all), 0));
        let item_done = message("completed", content);
        events.push_back((part("response.output_item.done", json!({ "item": item_done })), 0));
        events.push_back((done(&id, "completed", &Value::Null, &[item_done]), 0));
        Self { id, item, events, samples: 0 }
    }

    /// Calls a tool. Its arguments come in two pieces.
    pub(super) fn call(id: String, item: String, call: &str, name: &str, arguments: &str) -> Self {
        let function = |status: &str, arguments: &str| {
            json!({ "id": item, "object": "realtime.item", "type": "function_call", "status": status,
                "name": name, "call_id": call, "arguments": arguments })
        };
        let part = |kind: &str, more: Value| (about(kind, &id, &item, &more), 0);
        let (first, second) = arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2));
        let delta = |piece: &str| json!({ "call_id": call, "delta": piece });
        let whole = function("completed", arguments);
        let events = VecDeque::from([
            part("response.output_item.added", json!({ "item": function("in_progress", "") })),
            part("response.function_call_arguments.delta", delta(first)),
            part("response.function_call_arguments.delta", delta(second)),
            part(
                "response.function_call_arguments.done",
                json!({ "call_id": call, "name": name, "arguments": arguments }),
            ),
            part("response.output_item.done", json!({ "item": whole })),
            (done(&id, "completed", &Value::Null, &[whole]), 0),
        ]);
        Self { id, item, events, samples: 0 }
    }

    /// The next event; `None` once it is done.
    pub(super) fn next_event(&mut self) -> Option<Value> {
        let (event, samples) = self.events.pop_front()?;
        self.samples += samples;
        Some(event)
    }

    /// The last events of a response that is cancelled: open parts end as well.
    pub(super) fn cancelled(self, reason: &str) -> Vec<Value> {
        let ends = ["response.output_audio.done", "response.output_audio_transcript.done"];
        let ends_too = |event: &Value| ends.iter().any(|kind| event["type"] == *kind);
        let is_item = |event: &Value| event["type"] == "response.output_item.done";
        let mut events: Vec<Value> = Vec::new();
        for (mut event, _) in self.events {
            if is_item(&event) && event["item"]["type"] == "message" {
                event["item"]["status"] = "incomplete".into();
                events.push(event);
            } else if ends_too(&event) {
                events.push(event);
            }
        }
        events.push(done(&self.id, "cancelled", &json!({ "type": "cancelled", "reason": reason }), &[]));
        events
    }
}

fn tone() -> Vec<u8> {
    let wave = (0..SAMPLES_PER_WORD).map(|n| if n / 55 % 2 == 0 { 2_000_i16 } else { -2_000 });
    wave.flat_map(i16::to_le_bytes).collect()
}
