//! What a handler gives back, before anyone stamps it.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{Meta, RequestedIntent, ToolError, ToolResponse};

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It did what was asked; `null` for a pure side effect.
    Success(Value),
    /// It did not.
    Failure(ToolError),
}

/// An envelope without `meta`: all that a handler may say.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerAnswer {
    /// How the call ended.
    pub outcome: Outcome,
    /// What the handler asks to have changed, in order.
    pub intents: Vec<RequestedIntent>,
}

impl HandlerAnswer {
    /// A success with nothing to change.
    pub fn success(data: Value) -> Self {
        Self { outcome: Outcome::Success(data), intents: Vec::new() }
    }

    /// A failure with nothing to change.
    pub fn failure(error: ToolError) -> Self {
        Self { outcome: Outcome::Failure(error), intents: Vec::new() }
    }

    /// Turns what a handler returned into an answer, or says what is wrong with it.
    pub fn parse(value: Value) -> Result<Self, AnswerError> {
        let Value::Object(mut fields) = value else {
            return Err(AnswerError::NotAnObject);
        };
        let ok = match fields.get("ok") {
            Some(Value::Bool(ok)) => *ok,
            _ => return Err(AnswerError::NoOk),
        };
        let intents = match fields.remove("intents") {
            None => Vec::new(),
            Some(Value::Array(intents)) => intents.into_iter().map(parse_intent).collect(),
            Some(_) => return Err(AnswerError::IntentsNotAList),
        };
        let outcome = match (ok, fields.remove("data"), fields.remove("error")) {
            (true, data, None) => Outcome::Success(data.unwrap_or(Value::Null)),
            (true, _, Some(_)) => return Err(AnswerError::ErrorOnSuccess),
            (false, Some(_), _) => return Err(AnswerError::DataOnFailure),
            (false, None, None) => return Err(AnswerError::NoError),
            (false, None, Some(error)) => {
                Outcome::Failure(serde_json::from_value(error).map_err(AnswerError::BadError)?)
            }
        };
        Ok(Self { outcome, intents })
    }

    /// Completes the answer into the envelope that leaves the registry.
    pub fn stamp(self, meta: Meta) -> ToolResponse {
        ToolResponse { outcome: self.outcome, intents: self.intents, meta }
    }

    /// Writes `ok`, then `data` or `error`, then `intents` when there are any.
    pub(crate) fn serialize_fields<M: SerializeMap>(
        outcome: &Outcome,
        intents: &[RequestedIntent],
        map: &mut M,
    ) -> Result<(), M::Error> {
        match outcome {
            Outcome::Success(data) => {
                map.serialize_entry("ok", &true)?;
                map.serialize_entry("data", data)?;
            }
            Outcome::Failure(error) => {
                map.serialize_entry("ok", &false)?;
                map.serialize_entry("error", error)?;
            }
        }
        if !intents.is_empty() {
            map.serialize_entry("intents", intents)?;
        }
        Ok(())
    }
}

fn parse_intent(value: Value) -> RequestedIntent {
    match serde_json::from_value(value.clone()) {
        Ok(intent) => RequestedIntent::Known(intent),
        Err(_) => RequestedIntent::Unknown(value),
    }
}

impl Serialize for HandlerAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        Self::serialize_fields(&self.outcome, &self.intents, &mut map)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for HandlerAnswer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// What is wrong with a value that should have been an envelope.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// `undefined`, a string, a list …
    #[error("the answer is not an object")]
    NotAnObject,
    /// `ok` decides how the rest is read.
    #[error("`ok` is missing or not a boolean")]
    NoOk,
    /// A failure says why.
    #[error("`ok` is false and `error` is missing")]
    NoError,
    /// One or the other.
    #[error("`ok` is true and `error` is present")]
    ErrorOnSuccess,
    /// One or the other.
    #[error("`ok` is false and `data` is present")]
    DataOnFailure,
    /// `intents` is absent or an array.
    #[error("`intents` is not an array")]
    IntentsNotAList,
    /// `error` lacks its type or message, or has a field of another kind.
    #[error("`error` is malformed")]
    BadError(#[source] serde_json::Error),
}
