//! Matches a request with the examples of a guide, with other values in their places.

use serde_json::{Map, Value};

use crate::guide::{Example, quoted};
use crate::words::{self, Token};

/// The arguments of an example, when the request says what its lead says. Where the lead holds the value of an
/// argument, the request may hold another.
pub(crate) fn arguments(example: &Example, request: &[Token<'_>]) -> Option<Map<String, Value>> {
    let phrases = std::iter::once(example.lead.as_str()).chain(quoted(&example.lead));
    let arguments = example.arguments.as_object()?;
    phrases.into_iter().find_map(|phrase| aligned(phrase, arguments, request))
}

fn aligned(
    phrase: &str,
    arguments: &Map<String, Value>,
    request: &[Token<'_>],
) -> Option<Map<String, Value>> {
    const MAX_WORDS: usize = 40;
    let phrase = words::tokens(phrase, MAX_WORDS);
    if phrase.len() < 2 || request.len() > MAX_WORDS {
        return None;
    }
    let mut filled = arguments.clone();
    let (mut at, mut place) = (0, 0);
    while at < phrase.len() {
        match slot(&phrase[at..], arguments) {
            Some((count, name)) => {
                at += count;
                // The value goes on until the next word of the phrase, or to the end.
                let next = phrase.get(at).map(|token| token.lower.as_str());
                let end = match next {
                    Some(next) => {
                        place + 1 + request.get(place + 1..)?.iter().position(|token| token.lower == next)?
                    }
                    None => request.len(),
                };
                let value = request.get(place..end).filter(|words| !words.is_empty())?;
                let value: Vec<&str> = value.iter().map(|token| token.text).collect();
                filled.insert(name.to_owned(), value.join(" ").into());
                place = end;
            }
            None => {
                if request.get(place)?.lower != phrase[at].lower {
                    return None;
                }
                at += 1;
                place += 1;
            }
        }
    }
    (place == request.len()).then_some(filled)
}

/// The argument whose value stands at the beginning of a phrase, and how many words it has.
fn slot<'a>(phrase: &[Token<'_>], arguments: &'a Map<String, Value>) -> Option<(usize, &'a str)> {
    arguments.iter().find_map(|(name, value)| {
        let value = words::tokens(value.as_str()?, 12);
        let is_here = !value.is_empty()
            && value.len() <= phrase.len()
            && value.iter().zip(phrase).all(|(value, said)| value.lower == said.lower);
        is_here.then_some((value.len(), name.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments_of(lead: &str, arguments_json: Value, request: &str) -> Option<Value> {
        let example = Example { lead: lead.into(), arguments: arguments_json };
        arguments(&example, &words::tokens(request, 50)).map(Value::Object)
    }

    #[test]
    fn a_request_may_hold_other_values_than_the_example() {
        let weather = json!({ "city": "Oslo", "days": 1 });
        let lead = "“What is the weather in Oslo today?”";
        let asked = |request| arguments_of(lead, weather.clone(), request);
        assert_eq!(asked("What is the weather in Oslo today?"), Some(weather.clone()));
        assert_eq!(
            asked("what is the weather in New York today"),
            Some(json!({ "city": "New York", "days": 1 }))
        );
        assert_eq!(asked("what is the weather today"), None);
        assert_eq!(asked("what is the weather in"), None);
    }

    #[test]
    fn the_same_words_are_the_same_call() {
        assert_eq!(arguments_of("“Call me”, and nothing else", json!({}), "call me!"), Some(json!({})));
        assert_eq!(arguments_of("“Call me”, and nothing else", json!({}), "call her"), None);
    }
}
