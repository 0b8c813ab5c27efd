//! What a client without sessions carries between the question and the answer. It is signed, and good for one call of
//! one client alone. It says which confirmation is meant and holds nothing that redeems one.

use quarterdeck_contracts::canonical_json;
use quarterdeck_runtime::{ConfirmationId, random_hex};
use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How long a state may be that is looked at. Ours have about 200 bytes.
const MAX_STATE_BYTES: usize = 1_024;
const KEY_BYTES: usize = 32;

/// Seals states, and opens those that it has sealed. The key is this process's own: a session does not outlive it either.
pub(crate) struct RequestStates {
    codec: Option<RequestStateCodec>,
}

/// What a state is bound to. None of it is in the state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding<'a> {
    pub(crate) client: &'a str,
    pub(crate) session: &'a str,
    /// Tool and canonical arguments, as the client has sent them.
    pub(crate) content: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StateError {
    /// Not sealed here for this call of this client. Which of them is wrong is not told.
    #[error("This approval is not for this call, or was used before. Nothing was done.")]
    Invalid,
    #[error("The approval came too late. Nothing was done.")]
    Expired,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    confirmation: String,
    /// In milliseconds since 1970.
    expires: u64,
}

impl RequestStates {
    pub(crate) fn new() -> Self {
        let key = random_hex(KEY_BYTES);
        Self { codec: key.and_then(|key| RequestStateCodec::try_new(key.into_bytes()).ok()) }
    }

    /// The state for a question; `None` if the operating system had no random numbers for the key.
    pub(crate) fn seal(&self, to: Binding<'_>, id: &ConfirmationId, expires_ms: u64) -> Option<String> {
        let payload = Payload { confirmation: id.as_str().to_owned(), expires: expires_ms };
        let payload = serde_json::to_vec(&payload).ok()?;
        let bound = to.to_bytes();
        Some(self.codec.as_ref()?.seal_with(&payload, &SealOptions::new().associated_data(&bound)))
    }

    /// The confirmation that a state is about.
    pub(crate) fn open(
        &self,
        bound: Binding<'_>,
        state: &str,
        now_ms: u64,
    ) -> Result<ConfirmationId, StateError> {
        let codec = self.codec.as_ref().filter(|_| state.len() <= MAX_STATE_BYTES);
        let payload = codec.and_then(|codec| codec.open_with(state, &bound.to_bytes()).ok());
        let payload = payload.and_then(|payload| serde_json::from_slice::<Payload>(&payload).ok());
        let payload = payload.ok_or(StateError::Invalid)?;
        let id = ConfirmationId::parse(&payload.confirmation).ok_or(StateError::Invalid)?;
        if now_ms < payload.expires { Ok(id) } else { Err(StateError::Expired) }
    }
}

/// Whether a text opens as a state, as itself or as the change of one that was sealed here. None does: a state has one
/// spelling, and the key cannot be guessed.
#[cfg(feature = "fuzzing")]
pub fn opens_as_state(text: &str) -> bool {
    let bound = Binding { client: "client", session: "session", content: "tool {}" };
    let states = RequestStates::new();
    let id = ConfirmationId::parse(&"0123456789abcdef".repeat(4));
    let sealed = id.and_then(|id| states.seal(bound, &id, u64::MAX)).unwrap_or_default();
    let appended = format!("{sealed}{text}");
    [text, &appended].into_iter().any(|state| *state != sealed && states.open(bound, state, 0).is_ok())
}

impl Binding<'_> {
    /// In a form that can be read in one way only.
    fn to_bytes(self) -> Vec<u8> {
        let Self { client, session, content } = self;
        canonical_json(&json!([client, session, content])).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW_MS: u64 = 1_760_000_000_000;

    fn id() -> ConfirmationId {
        ConfirmationId::parse(&"0123456789abcdef".repeat(4)).unwrap()
    }

    proptest! {
        #[test]
        fn a_state_is_good_for_its_call_client_session_and_time_and_for_nothing_else(
            (client, session, content) in ("[a-z]{1,8}", "ses_[0-9a-f]{8}", "[a-z]{1,8}\n\\{[a-z\" ]{0,20}\\}"),
            (other, noise) in (any::<String>(), any::<String>()),
            (left, late) in (1_u64..10_000_000, 0_u64..10_000_000),
            place in any::<prop::sample::Index>(),
        ) {
            let states = RequestStates::new();
            let bound = Binding { client: &client, session: &session, content: &content };
            let state = states.seal(bound, &id(), NOW_MS + left).unwrap();
            prop_assert!(state.len() <= MAX_STATE_BYTES);
            prop_assert_eq!(states.open(bound, &state, NOW_MS), Ok(id()));
            prop_assert_eq!(states.open(bound, &state, NOW_MS + left + late), Err(StateError::Expired));
            let invalid = Err(StateError::Invalid);
            for wrong in [
                Binding { client: &other, ..bound },
                Binding { session: &other, ..bound },
                Binding { content: &other, ..bound },
                // What is moved from one part to another is something else.
                Binding { client: &session, session: &client, ..bound },
            ] {
                let is_same = (wrong.client, wrong.session, wrong.content) == (&*client, &*session, &*content);
                prop_assert!(is_same || states.open(wrong, &state, NOW_MS) == invalid);
            }
            // Another process, a changed character, and what is no state at all.
            prop_assert_eq!(RequestStates::new().open(bound, &state, NOW_MS), invalid.clone());
            let at = place.index(state.len());
            let turned = if &state[at..=at] == "A" { "B" } else { "A" };
            let changed = format!("{}{turned}{}", &state[..at], &state[at + 1..]);
            prop_assert_eq!(states.open(bound, &changed, NOW_MS), invalid.clone());
            for wrong in [noise.clone(), format!("{state}{noise}x"), "x".repeat(MAX_STATE_BYTES + 1)] {
                prop_assert_eq!(states.open(bound, &wrong, NOW_MS), invalid.clone());
            }
        }
    }
}
