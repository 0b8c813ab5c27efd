//! Recorded answers in place of the network, for case files and `call --fetch`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, bail};
use quarterdeck_contracts::{RecordedFetch, parse_json};
use quarterdeck_host_js::{FetchAnswers, FetchStandIn, StandInAnswer};
use serde_json::Value;
use url::Url;

const MAX_FILE_BYTES: u64 = 8 << 20;

/// The recordings of the sessions that have any. All other sessions use the network.
#[derive(Debug, Default)]
pub(crate) struct RecordedFetches(Mutex<HashMap<String, Arc<Recording>>>);

impl RecordedFetches {
    pub(crate) fn set(&self, session_id: &str, recording: Recording) {
        self.lock().insert(session_id.to_owned(), Arc::new(recording));
    }

    pub(crate) fn remove(&self, session_id: &str) {
        self.lock().remove(session_id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Recording>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FetchStandIn for RecordedFetches {
    fn for_session(&self, session_id: &str) -> Option<Arc<dyn FetchAnswers>> {
        self.lock().get(session_id).map(|recording| recording.clone() as _)
    }
}

/// The recorded answers of one session. Those to the same request are given in their order, the last one again and again.
#[derive(Debug)]
pub(crate) struct Recording {
    answers: Vec<RecordedAnswer>,
    /// How often each answer's request was made before.
    given: Mutex<HashMap<(String, String), usize>>,
}

#[derive(Debug)]
struct RecordedAnswer {
    method: String,
    url: String,
    answer: StandInAnswer,
}

impl Recording {
    /// Checks what a file says.
    pub(crate) fn new(recorded: &[RecordedFetch]) -> Result<Self, String> {
        let answers = recorded.iter().enumerate().map(|(index, fetch)| {
            RecordedAnswer::new(fetch).map_err(|fault| format!("answer {} of `fetch`: {fault}", index + 1))
        });
        Ok(Self { answers: answers.collect::<Result<_, _>>()?, given: Mutex::default() })
    }

    /// Reads a file with a list of recorded answers.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let place = || format!("cannot use the recorded answers in {}", path.display());
        if std::fs::metadata(path).with_context(place)?.len() > MAX_FILE_BYTES {
            bail!("{}: the file is larger than 8 MiB", place());
        }
        let text = std::fs::read_to_string(path).with_context(place)?;
        let value = parse_json(&text).with_context(place)?;
        let recorded: Vec<RecordedFetch> = serde_json::from_value(value).with_context(place)?;
        Self::new(&recorded).map_err(|fault| anyhow::anyhow!(fault)).with_context(place)
    }
}

impl FetchAnswers for Recording {
    fn answer(&self, method: &str, url: &str) -> StandInAnswer {
        let matching: Vec<_> =
            self.answers.iter().filter(|known| known.method == method && known.url == url).collect();
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let times = given.entry((method.to_owned(), url.to_owned())).or_default();
        let answer = matching.get(*times).or(matching.last());
        *times += 1;
        answer.map_or_else(
            || {
                StandInAnswer::Unknown(format!(
                    "no answer to {method} {url} is recorded; add it to `given.fetch`"
                ))
            },
            |known| known.answer.clone(),
        )
    }
}

impl RecordedAnswer {
    fn new(fetch: &RecordedFetch) -> Result<Self, String> {
        let url = Url::parse(&fetch.url).map_err(|error| format!("{:?} is not a URL: {error}", fetch.url))?;
        let method = fetch.method.as_deref().unwrap_or("GET").to_ascii_uppercase();
        let status = fetch.status.unwrap_or(200);
        if !(200..=599).contains(&status) {
            return Err(format!("{status} is not the status of an answer"));
        }
        let answer = match fetch.unreachable {
            true => StandInAnswer::Unreachable,
            false => {
                let mut headers: Vec<_> = fetch.headers.clone().into_iter().collect();
                let is_typed = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
                let body = match &fetch.body {
                    None => Vec::new(),
                    Some(Value::String(text)) => text.clone().into_bytes(),
                    Some(json) => {
                        if !is_typed {
                            headers.push(("content-type".into(), "application/json".into()));
                        }
                        json.to_string().into_bytes()
                    }
                };
                StandInAnswer::Response { status, headers, body }
            }
        };
        Ok(Self { method, url: url.into(), answer })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recording(json: Value) -> Result<Recording, String> {
        Recording::new(&serde_json::from_value::<Vec<RecordedFetch>>(json).unwrap())
    }

    fn body(answer: StandInAnswer) -> String {
        match answer {
            StandInAnswer::Response { status, body, .. } => {
                format!("{status} {}", String::from_utf8(body).unwrap())
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn answers_come_in_their_order_by_method_and_url() {
        let recording = recording(json!([
            { "url": "https://a.example/x", "status": 503 },
            { "url": "https://A.example/x", "body": { "n": 1 } },
            { "url": "https://a.example/x", "method": "post", "body": "plain" },
            { "url": "https://a.example/away", "unreachable": true },
        ]))
        .unwrap();
        let ask = |method: &str, url: &str| body(recording.answer(method, url));
        assert_eq!(ask("GET", "https://a.example/x"), "503 ");
        assert_eq!(ask("GET", "https://a.example/x"), r#"200 {"n":1}"#);
        assert_eq!(ask("GET", "https://a.example/x"), r#"200 {"n":1}"#);
        assert_eq!(ask("POST", "https://a.example/x"), "200 plain");
        assert_eq!(ask("GET", "https://a.example/away"), "Unreachable");
        assert!(
            ask("PUT", "https://a.example/x").contains("no answer to PUT https://a.example/x is recorded")
        );
    }

    #[test]
    fn what_cannot_be_an_answer_is_refused() {
        assert!(
            recording(json!([{ "url": "x" }]))
                .unwrap_err()
                .contains("answer 1 of `fetch`: \"x\" is not a URL")
        );
        assert!(recording(json!([{ "url": "https://a.example", "status": 99 }])).is_err());
    }
}
