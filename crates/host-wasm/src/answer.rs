//! What an ended call means for its caller.

use quarterdeck_contracts::handler::{CapabilityError, Context, HandlerFault, HostError};
use quarterdeck_contracts::{HandlerAnswer, Outcome, parse_json};
use serde_json::Value;

use crate::ending::Ending;
use crate::request::CapabilityErrorJson;

/// The answer of a call, or why there is none.
pub(crate) fn of(ending: Ending, limit_ms: u64, context: &dyn Context) -> Result<HandlerAnswer, HostError> {
    let answer = match ending {
        Ending::Returned(bytes) => parse_answer(&bytes, context)?,
        Ending::Crashed(message) => return Err(HostError::Crashed(message)),
        Ending::OverLimit(what) => return Err(HostError::OverLimit(what)),
        Ending::Idle => return Err(HostError::Crashed("it waits, and has no request open".into())),
        Ending::Stopped => return Err(HostError::TimedOut { limit_ms, computing: true }),
    };
    without_confirmation(answer)
}

/// Refuses an answer that only the runtime may give.
pub fn without_confirmation(answer: HandlerAnswer) -> Result<HandlerAnswer, HostError> {
    match &answer.outcome {
        Outcome::Failure(error) if error.kind.is_confirmation() => {
            Err(HostError::Crashed(format!("it raised {}, which is not a handler's to raise", error.kind)))
        }
        _ => Ok(answer),
    }
}

fn parse_answer(bytes: &[u8], context: &dyn Context) -> Result<HandlerAnswer, HostError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        HostError::Crashed(format!("the answer is not UTF-8 from byte {} on", error.valid_up_to()))
    })?;
    let value = parse_json(text)
        .map_err(|error| HostError::Crashed(format!("the answer cannot be read as JSON: {error}")))?;
    if let Some(error) = capability_error(&value) {
        context.report_fault(HandlerFault::new(format!("CapabilityError: {}", error.message)));
        return Ok(HandlerAnswer::failure(error.into()));
    }
    Ok(HandlerAnswer::parse(value)?)
}

/// The failed result of a request that the module passes on as it came. It becomes the fitting error of the call, as an error that
/// a handler in JavaScript does not catch.
fn capability_error(answer: &Value) -> Option<CapabilityError> {
    let error = answer.get("error")?;
    let is_passed_on = answer.get("ok") == Some(&Value::Bool(false)) && error.get("type").is_none();
    if !is_passed_on {
        return None;
    }
    let error: CapabilityErrorJson = serde_json::from_value(error.clone()).ok()?;
    Some(error.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quarterdeck_contracts::ErrorType;
    use quarterdeck_contracts::handler::CapabilityErrorCode;
    use quarterdeck_testkit::FakeContext;

    use super::*;
    use crate::request::result_json;

    fn answer(bytes: &[u8]) -> Result<HandlerAnswer, HostError> {
        of(Ending::Returned(bytes.to_vec()), 100, &*FakeContext::new())
    }

    #[test]
    fn failed_result_that_is_passed_on_becomes_the_fitting_error() {
        let error = CapabilityError::new(CapabilityErrorCode::NotFound, "there is no such record");
        let Outcome::Failure(error) = answer(result_json(Err(error)).as_bytes()).unwrap().outcome else {
            panic!("it is a failure")
        };
        assert_eq!((error.kind, error.message.as_str()), (ErrorType::NotFound, "there is no such record"));
    }

    #[test]
    fn key_that_stands_twice_is_no_answer() {
        let error = answer(br#"{"ok":true,"data":1,"data":2}"#).unwrap_err().to_string();
        assert!(error.contains("cannot be read as JSON"), "{error}");
    }

    #[test]
    fn confirmation_is_not_a_modules_to_raise() {
        let text =
            br#"{"ok":false,"error":{"type":"CONFIRMATION_REQUIRED","message":"m","retryable":false}}"#;
        assert!(answer(text).unwrap_err().to_string().contains("not a handler's to raise"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = answer(&bytes);
        }

        #[test]
        fn any_json_text_is_an_answer_or_an_error(text in r#"[{}\[\]",:a-z0-9\\ ]{0,80}"#) {
            let _ = answer(text.as_bytes());
        }
    }
}
