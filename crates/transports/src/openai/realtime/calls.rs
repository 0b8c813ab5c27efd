//! The calls of one response.

use quarterdeck_contracts::{MAX_CALLS_PER_MESSAGE, ModelCall};
use serde_json::Value;

use crate::arguments::ArgumentText;
use crate::reply::model_call;

/// Calls are emitted together when their response is done: only then may it be answered, and a response that is cut
/// off may have left half of one.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<ModelCall>);

impl Calls {
    /// Takes an item that is a whole call and was not taken yet. One that does not say whether it is whole is, if its
    /// response is.
    pub(super) fn take(&mut self, item: &Value, is_whole: bool) {
        let text = |member: &str| item.get(member).and_then(Value::as_str).unwrap_or_default();
        let is_whole = match text("status") {
            "" => is_whole,
            status => status == "completed",
        };
        let (id, name) = (text("call_id"), text("name"));
        let is_known = !id.is_empty() && self.0.iter().any(|call| call.id.as_deref() == Some(id));
        if text("type") != "function_call" || !is_whole || is_known {
            return;
        }
        if self.0.len() < MAX_CALLS_PER_MESSAGE {
            let mut arguments = ArgumentText::default();
            arguments.push(text("arguments"));
            self.0.push(model_call(id.to_owned(), name.to_owned(), arguments.parse()));
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn finish(&mut self) -> Vec<ModelCall> {
        std::mem::take(&mut self.0)
    }
}
