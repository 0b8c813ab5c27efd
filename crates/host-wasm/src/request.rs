//! What a module can ask the host for by name: capabilities, and the few things that take time or have an effect beyond them.

use std::time::Duration;

use quarterdeck_contracts::handler::{CapabilityCall, CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{CapabilitySpec, Methods, parse_json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call_state::{CallState, Channel};
use crate::fetch::FetchRequest;
use crate::surrogates::without_lone_surrogates;

/// No timer is longer, as in JavaScript.
const MAX_SLEEP_MS: f64 = 2_147_483_647.0;
/// Longer than any name.
const MAX_NAME_BYTES: usize = 128;

/// Something that a module waits for.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    /// Use a capability.
    Capability(CapabilityCall),
    /// Fetch something.
    Fetch(FetchRequest),
    /// Wait.
    Sleep(Duration),
    /// Wait until the call should stop.
    Signal,
    /// It is done, or cannot be done.
    Done(Result<Value, CapabilityError>),
}

impl Request {
    /// Reads a request, and does at once what takes no time.
    pub(crate) fn read(state: &mut CallState, name: &[u8], args: &[u8]) -> Self {
        let done = match read_args(args, state.config.max_answer_bytes) {
            Err(error) => Err(error),
            Ok(args) => match std::str::from_utf8(name) {
                Ok(name) if name.len() <= MAX_NAME_BYTES => return Self::named(state, name, args),
                _ => Err(not_available("a request of this name does not exist".into())),
            },
        };
        Self::Done(done)
    }

    fn named(state: &mut CallState, name: &str, args: Vec<Value>) -> Self {
        let mut args = args.into_iter();
        let mut next = || args.next().unwrap_or_default();
        match name {
            "sleep" => match next().as_f64() {
                Some(ms) => Self::Sleep(Duration::from_secs_f64(ms.clamp(0.0, MAX_SLEEP_MS) / 1_000.0)),
                None => Self::Done(Err(invalid("sleep takes milliseconds"))),
            },
            "signal" => Self::Signal,
            "progress" => Self::Done(match next() {
                Value::String(text) => {
                    state.charge(Channel::Progress, text.len()).into_iter().for_each(|to| to.progress(&text));
                    Ok(Value::Null)
                }
                _ => Err(invalid("progress takes a text")),
            }),
            "emit" => {
                let chunk = next();
                let context = state.charge(Channel::Partial, chunk.to_string().len());
                Self::Done(Ok(context.is_some_and(|context| context.emit(chunk)).into()))
            }
            "audit.log" => Self::Done(match (next(), next()) {
                (Value::String(event), data) => {
                    let context = state.charge(Channel::Audit, event.len() + data.to_string().len());
                    context.into_iter().for_each(|to| to.audit(&event, data.clone()));
                    Ok(Value::Null)
                }
                _ => Err(invalid("audit.log takes the name of an event")),
            }),
            "fetch" => match serde_json::from_value(next()) {
                Ok(request) => Self::Fetch(request),
                Err(_) => {
                    let message =
                        "fetch takes an object: `url`, and `method`, `headers` and `body` if need be";
                    Self::Done(Err(invalid(message)))
                }
            },
            _ => Self::of_capability(&state.config.capabilities, name, args.collect()),
        }
    }

    fn of_capability(specs: &[CapabilitySpec], name: &str, args: Vec<Value>) -> Self {
        let found = name.split_once('.').and_then(|(capability, method)| {
            let spec = specs.iter().find(|spec| spec.name == capability)?;
            let has_method = match spec.methods {
                Methods::None => false,
                Methods::Object(_, methods) => methods.contains(&method),
                Methods::Function(_, only) => only == method,
            };
            has_method.then(|| CapabilityCall { capability: spec.capability(), method: method.into(), args })
        });
        match found {
            Some(call) => Self::Capability(call),
            None => Self::Done(Err(not_available(format!("{name} does not exist")))),
        }
    }
}

fn read_args(bytes: &[u8], max_bytes: usize) -> Result<Vec<Value>, CapabilityError> {
    if bytes.len() > max_bytes {
        return Err(invalid(&format!("a request may carry {max_bytes} bytes")));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| invalid("the arguments are not UTF-8"))?;
    match parse_json(text).or_else(|_| parse_json(&without_lone_surrogates(text))) {
        Ok(Value::Array(args)) => Ok(args),
        Ok(_) => Err(invalid("the arguments of a request are a JSON list")),
        Err(error) => Err(invalid(&format!("the arguments are not JSON: {error}"))),
    }
}

fn invalid(message: &str) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, message)
}

fn not_available(message: String) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::NotAvailable, message)
}

/// The JSON that `resume` is given: `{"ok":true,"value":…}` or `{"ok":false,"error":…}`.
pub(crate) fn result_json(result: Result<Value, CapabilityError>) -> String {
    match result {
        Ok(value) => json!({ "ok": true, "value": value }).to_string(),
        Err(error) => json!({ "ok": false, "error": CapabilityErrorJson::from(error) }).to_string(),
    }
}

/// A capability's error as it crosses into a module and back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityErrorJson {
    code: CapabilityErrorCode,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<f64>,
}

impl From<CapabilityError> for CapabilityErrorJson {
    fn from(error: CapabilityError) -> Self {
        Self { code: error.code, message: error.message, retry_after: error.retry_after_seconds }
    }
}

impl From<CapabilityErrorJson> for CapabilityError {
    fn from(error: CapabilityErrorJson) -> Self {
        Self { retry_after_seconds: error.retry_after, ..Self::new(error.code, error.message) }
    }
}
