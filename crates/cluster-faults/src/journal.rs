//! What the clients asked for and what they were told.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;

/// What a client was told about something that it asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It was done, with the number of the proof where the client has read it.
    Done(Option<u64>),
    /// It may have been done.
    Unknown,
    /// It was not done, for this reason.
    NotDone(String),
}

impl Told {
    /// What an envelope says; nothing when it only says that the user has to decide, or that a repetition was refused.
    pub fn from_envelope(envelope: &Value) -> Option<Self> {
        if envelope["ok"] == true {
            return Some(Self::Done(envelope["data"]["receipt"].as_u64()));
        }
        let error = &envelope["error"];
        match error["type"].as_str()? {
            // That a repetition was refused says nothing of what it repeats.
            "CONFIRMATION_REQUIRED" | "CONFIRMATION_INVALID" | "LOOP_DETECTED" => None,
            _ if error["details"]["outcome"] == "unknown" || error["partialSideEffects"] == true => {
                Some(Self::Unknown)
            }
            // Calls and cards are shown the words alone.
            _ if error["message"].as_str().is_some_and(leaves_open) => Some(Self::Unknown),
            kind => Some(Self::NotDone(format!("{kind}: {}", error["message"].as_str().unwrap_or_default()))),
        }
    }
}

/// Whether these words say that something may have been done.
fn leaves_open(words: &str) -> bool {
    ["is not known", "unknown whether", "stays done", "will be reported"]
        .iter()
        .any(|sign| words.contains(sign))
}

/// One thing that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ask {
    /// The client and its session, as far as it knew it.
    pub client: String,
    pub session: String,
    pub told: Vec<Told>,
    /// What happened on the way, to look for the reason when a promise was broken.
    pub story: Vec<String>,
}

/// Everything that was asked for, by its key, which no two have in common.
#[derive(Debug, Default)]
pub struct Journal {
    asks: Mutex<BTreeMap<String, Ask>>,
    strays: Mutex<Vec<String>>,
    times: Mutex<BTreeMap<&'static str, Vec<Duration>>>,
    refusals: Mutex<BTreeMap<String, usize>>,
}

impl Journal {
    pub fn ask(&self, key: &str, client: &str) {
        let ask = Ask { client: client.into(), ..Ask::default() };
        self.asks.lock().unwrap().insert(key.into(), ask);
    }

    pub fn set_session(&self, key: &str, session: &str) {
        if let Some(ask) = self.asks.lock().unwrap().get_mut(key) {
            ask.session = session.into();
        }
    }

    pub fn tell(&self, key: &str, told: Told) {
        if let Some(ask) = self.asks.lock().unwrap().get_mut(key)
            && ask.told.last() != Some(&told)
        {
            ask.told.push(told);
        }
    }

    /// Looks for keys in something that a client was sent: it must see none but its own.
    pub fn look_for_strays(&self, client: &str, text: &str) {
        for key in keys_in(text) {
            if owner_of(key) != client {
                self.strays.lock().unwrap().push(format!("{client} was sent {key}"));
            }
        }
    }

    pub fn strays(&self) -> Vec<String> {
        self.strays.lock().unwrap().clone()
    }

    pub fn asks(&self) -> BTreeMap<String, Ask> {
        self.asks.lock().unwrap().clone()
    }

    /// Notes a step on the way, with its time, so that it can be found in the logs of the nodes.
    pub fn note(&self, key: &str, step: &str) {
        if let Some(ask) = self.asks.lock().unwrap().get_mut(key) {
            #[expect(clippy::disallowed_methods, reason = "the nodes are processes that read it too")]
            let now = jiff::Timestamp::now();
            ask.story.push(format!("{now:.3} {step}"));
        }
    }

    pub fn is_told(&self, key: &str) -> bool {
        self.asks.lock().unwrap().get(key).is_some_and(|ask| !ask.told.is_empty())
    }

    /// Counts a request that was refused as a whole: it is asked again.
    pub fn refused(&self, status: u16, text: String) {
        let text: String = text.chars().take(160).collect();
        *self.refusals.lock().unwrap().entry(format!("{status} {text}")).or_default() += 1;
    }

    /// The reasons for which requests were refused, and how often.
    pub fn refusals(&self) -> BTreeMap<String, usize> {
        self.refusals.lock().unwrap().clone()
    }

    /// Notes how long something took.
    pub fn took(&self, what: &'static str, time: Duration) {
        self.times.lock().unwrap().entry(what).or_default().push(time);
    }

    /// The times of one kind, the shortest first.
    pub fn times(&self, what: &str) -> Vec<Duration> {
        let mut times = self.times.lock().unwrap().get(what).cloned().unwrap_or_default();
        times.sort();
        times
    }

    pub fn answered(&self) -> usize {
        self.asks.lock().unwrap().values().filter(|ask| !ask.told.is_empty()).count()
    }
}

/// The client of a key: `c17` of `c17-3`.
pub fn owner_of(key: &str) -> &str {
    key.split_once('-').map_or(key, |(client, _)| client)
}

/// The keys in a text: `c17-3` of a chat, `v4-12` of a call.
pub fn keys_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric() && !"-_".contains(character));
    words.filter(|word| {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let Some((client, number)) = word.split_once('-') else { return false };
        let Some(client) = client.strip_prefix(['c', 'v']) else { return false };
        is_number(client) && is_number(number)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_found_in_what_a_client_is_sent() {
        let text = r#"{"did":"c1-2","receipt":7} book v30-11. msg_c1-2 c-1 x1-2 c1 c1-2x"#;
        assert_eq!(keys_in(text).collect::<Vec<_>>(), ["c1-2", "v30-11"]);
        let journal = Journal::default();
        journal.look_for_strays("c1", text);
        assert_eq!(journal.strays(), ["c1 was sent v30-11"]);
    }

    #[test]
    fn envelopes_say_done_unknown_or_not_done() {
        let told = |envelope| Told::from_envelope(&envelope);
        assert_eq!(told(json!({ "ok": true, "data": { "receipt": 3 } })), Some(Told::Done(Some(3))));
        let unknown = json!({ "type": "INTERNAL", "details": { "outcome": "unknown" }, "message": "" });
        assert_eq!(told(json!({ "ok": false, "error": unknown })), Some(Told::Unknown));
        let words = json!({ "type": "ERROR", "message": "It is unknown whether it was done." });
        assert_eq!(told(json!({ "ok": false, "error": words })), Some(Told::Unknown));
        let transient = json!({ "type": "TRANSIENT", "message": "Nothing was done." });
        let not_done = Told::NotDone("TRANSIENT: Nothing was done.".into());
        assert_eq!(told(json!({ "ok": false, "error": transient })), Some(not_done));
        let waits = json!({ "type": "CONFIRMATION_REQUIRED", "message": "" });
        assert_eq!(told(json!({ "ok": false, "error": waits })), None);
        let repeated = json!({ "type": "LOOP_DETECTED", "message": "book was called 3 times." });
        assert_eq!(told(json!({ "ok": false, "error": repeated })), None);
    }
}
