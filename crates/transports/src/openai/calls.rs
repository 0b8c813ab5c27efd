//! Calls that arrive in fragments, matched by index, id or order, whichever a server gives.

use quarterdeck_contracts::{MAX_CALLS_PER_MESSAGE, ModelPart, PartContent};
use serde_json::{Map, Value};

use crate::Fault;
use crate::arguments::ArgumentText;
use crate::reply::{model_call, too_many_calls};

/// The calls of one reply.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    begun: Vec<Begun>,
    /// The one that the last piece belonged to.
    current: usize,
}

#[derive(Debug, Default)]
struct Begun {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: ArgumentText,
    /// Members that we do not know, to be returned.
    unknown: Map<String, Value>,
}

impl Calls {
    /// Takes the `tool_calls` of one event.
    pub(crate) fn take(&mut self, pieces: Vec<Value>) -> Result<(), Fault> {
        let mut unnumbered = 0;
        for piece in pieces {
            let Value::Object(mut piece) = piece else { continue };
            let index = piece.shift_remove("index").as_ref().and_then(Value::as_u64);
            let id = text(piece.shift_remove("id"));
            let mut function = match piece.shift_remove("function") {
                Some(Value::Object(function)) => function,
                _ => Map::new(),
            };
            let name = text(function.shift_remove("name"));
            piece.shift_remove("type");
            unnumbered += usize::from(index.is_none());
            let call = self.find(index, &id, &name, unnumbered > 1)?;
            if !id.is_empty() {
                call.id = id;
            }
            if !name.is_empty() {
                call.name = name;
            }
            match function.shift_remove("arguments") {
                Some(Value::String(more)) => call.arguments.push(&more),
                // Not what the protocol says, but there is only one thing that it can mean.
                Some(whole @ Value::Object(_)) => call.arguments.push(&whole.to_string()),
                _ => {}
            }
            call.unknown.extend(piece);
        }
        Ok(())
    }

    /// The calls in their order. When the reply was cut, so was the last of them, wherever its text happens to end.
    pub(crate) fn finish(mut self, is_cut: bool) -> impl Iterator<Item = ModelPart> {
        let last = self.current;
        let mut order: Vec<_> = self.begun.drain(..).enumerate().collect();
        order.sort_by_key(|(place, call)| call.index.unwrap_or(*place as u64));
        order.into_iter().map(move |(place, call)| {
            let arguments = call.arguments;
            let arguments = if is_cut && place == last { arguments.cut() } else { arguments.parse() };
            let content = PartContent::Call(model_call(call.id, call.name, arguments));
            ModelPart { content, state: (!call.unknown.is_empty()).then_some(Value::Object(call.unknown)) }
        })
    }

    /// The call that a piece belongs to.
    ///
    /// The index says it, as a rule. Some servers give all calls the index 0, or none at all: then another id with a
    /// name begins another call, as does a name where arguments have already come, or a second entry of one event.
    fn find(
        &mut self,
        index: Option<u64>,
        id: &str,
        name: &str,
        is_another: bool,
    ) -> Result<&mut Begun, Fault> {
        let found = match index {
            Some(_) => self.begun.iter().rposition(|call| call.index == index),
            None if is_another => None,
            None if !id.is_empty() => {
                let same = self.begun.iter().rposition(|call| call.id == id);
                same.or_else(|| {
                    self.begun.iter().rposition(|call| call.id.is_empty() && call.name.is_empty())
                })
            }
            None => (!self.begun.is_empty()).then_some(self.current),
        };
        let found = found.filter(|place| {
            let call = &self.begun[*place];
            let other_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
            let complete = index.is_none() && id.is_empty() && !call.arguments.is_empty();
            name.is_empty() || !(other_id || complete)
        });
        self.current = match found {
            Some(place) => place,
            None if self.begun.len() == MAX_CALLS_PER_MESSAGE => return Err(too_many_calls()),
            None => {
                self.begun.push(Begun { index, ..Begun::default() });
                self.begun.len() - 1
            }
        };
        Ok(&mut self.begun[self.current])
    }
}

fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}
