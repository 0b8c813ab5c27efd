//! Links to files of sessions. A link is signed, names one file of one session, and expires; who has it may read that file
//! and nothing else, because an `<img>` cannot send a credential.

use std::sync::Arc;

use quarterdeck_contracts::{ImageType, Outcome, ToolResponse};
use quarterdeck_runtime::SessionFile;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::identity::Identity;
use crate::stream::data_part::{DataPart, ServerData};

/// The first line of what is signed.
const PURPOSE: &str = "file";

/// Files of one answer that are shown.
const MAX_SHOWN_FILES: usize = 8;
const MAX_ALT_CHARS: usize = 1_000;

/// Makes links for one conversation.
#[derive(Clone)]
pub(crate) struct FileLinks {
    app: Arc<App>,
    session: String,
}

/// A file that an answer shows, with its link.
pub(crate) struct LinkedFile {
    id: String,
    pub(crate) url: String,
    pub(crate) media_type: ImageType,
    data: Value,
}

/// An entry of `files` in the data of a tool's answer.
#[derive(Deserialize)]
struct ShownFile {
    id: String,
    media_type: ImageType,
    #[serde(default)]
    width: u32,
    #[serde(default)]
    height: u32,
    #[serde(default)]
    alt: String,
}

impl FileLinks {
    pub(crate) fn new(app: Arc<App>, session: impl Into<String>) -> Self {
        Self { app, session: session.into() }
    }

    /// The same for the conversation that a stream turns out to belong to.
    pub(crate) fn set_session(&mut self, session: &str) {
        session.clone_into(&mut self.session);
    }

    /// The files that an answer shows. A tool may name any id: a link leads to a file of this session, or nowhere.
    pub(crate) fn of(&self, call: &str, response: &ToolResponse) -> Vec<LinkedFile> {
        let Outcome::Success(data) = &response.outcome else { return Vec::new() };
        let files = data.get("files").and_then(Value::as_array);
        let shown = files.into_iter().flatten().take(MAX_SHOWN_FILES);
        let shown = shown.filter_map(|file| ShownFile::deserialize(file).ok());
        shown.filter(|file| SessionFile::is_id(&file.id)).map(|file| self.link(call, file)).collect()
    }

    fn link(&self, call: &str, file: ShownFile) -> LinkedFile {
        let ShownFile { id, media_type, width, height, alt } = file;
        let lifetime = self.app.settings.file_link_lifetime.as_millis() as u64;
        let expires = self.app.orchestrator.now_ms().saturating_add(lifetime);
        let signature = sign(&self.app.identity, &self.session, &id, expires);
        let url = format!("/files/{id}?session={}&expires={expires}&signature={signature}", self.session);
        let alt: String = alt.chars().take(MAX_ALT_CHARS).collect();
        let data = json!({
            "callId": call, "id": id, "url": url, "mediaType": media_type, "width": width, "height": height,
            "alt": alt, "expires": expires,
        });
        LinkedFile { id, url, media_type, data }
    }
}

impl LinkedFile {
    /// The part for the page.
    pub(crate) fn part(&self) -> DataPart<'_> {
        ServerData::File.part(Some(&self.id), self.data.clone())
    }
}

/// A link as a client sends it.
pub(crate) struct ReceivedLink<'a> {
    pub(crate) session: &'a str,
    pub(crate) id: &'a str,
    pub(crate) expires: &'a str,
    pub(crate) signature: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkError {
    /// Not signed here for this file of this session and this time. Which of them is wrong is not told.
    Invalid,
    Expired,
}

impl ReceivedLink<'_> {
    /// How long it is still valid. The signature is compared in constant time, and before anything else is believed.
    pub(crate) fn time_left_ms(&self, identity: &Identity, now_ms: u64) -> Result<u64, LinkError> {
        let Self { session, id, expires, signature } = *self;
        // The id has no line break and the time is a number, so that what is signed can be read in one way only.
        let expires_ms = expires.parse::<u64>().ok().filter(|ms| ms.to_string() == expires);
        let Some(expires_ms) = expires_ms.filter(|_| SessionFile::is_id(id)) else {
            return Err(LinkError::Invalid);
        };
        if !identity.is_signed_for(PURPOSE, &[session, id, expires], signature) {
            return Err(LinkError::Invalid);
        }
        expires_ms.checked_sub(now_ms).filter(|left| *left > 0).ok_or(LinkError::Expired)
    }
}

fn sign(identity: &Identity, session: &str, id: &str, expires_ms: u64) -> String {
    identity.sign_for(PURPOSE, &[session, id, &expires_ms.to_string()])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW_MS: u64 = 1_760_000_000_000;

    fn identity(secret: u8) -> Identity {
        Identity::new(&[secret; 32], None, Vec::new())
    }

    fn file_id() -> impl Strategy<Value = String> {
        "file_[0-9a-f]{32}"
    }

    fn check(session: &str, id: &str, expires: &str, signature: &str, now_ms: u64) -> Result<u64, LinkError> {
        ReceivedLink { session, id, expires, signature }.time_left_ms(&identity(1), now_ms)
    }

    proptest! {
        #[test]
        fn a_signed_link_is_valid_for_its_file_session_and_time_and_for_nothing_else(
            session in "ses_[0-9a-f]{8}",
            (id, other_id) in (file_id(), file_id()),
            (left, early, late) in (1_u64..10_000_000, 0_u64..10_000_000, 0_u64..10_000_000),
            (odd, other_session) in (any::<String>(), any::<String>()),
            place in 0_usize..64,
        ) {
            let expires_ms = NOW_MS + left;
            let expires = expires_ms.to_string();
            let signature = sign(&identity(1), &session, &id, expires_ms);
            prop_assert_eq!(check(&session, &id, &expires, &signature, NOW_MS), Ok(left));
            // Until its time, and not at it.
            prop_assert!(check(&session, &id, &expires, &signature, expires_ms - 1 - early.min(expires_ms - 1)).is_ok());
            prop_assert_eq!(check(&session, &id, &expires, &signature, expires_ms + late), Err(LinkError::Expired));
            // Any part changed.
            let longer = (expires_ms + 1 + late).to_string();
            let invalid = Err(LinkError::Invalid);
            prop_assert_eq!(check(&session, &id, &longer, &signature, NOW_MS), invalid);
            for form in [format!("+{expires}"), format!("0{expires}"), format!(" {expires}"), odd.clone()] {
                prop_assert_eq!(check(&session, &id, &form, &signature, NOW_MS), invalid);
            }
            prop_assert!(other_id == id || check(&session, &other_id, &expires, &signature, NOW_MS) == invalid);
            prop_assert_eq!(check(&session, &odd, &expires, &signature, NOW_MS), invalid);
            prop_assert_eq!(check(&other_session, &id, &expires, &signature, NOW_MS), invalid);
            let moved = format!("{session}\n{id}");
            prop_assert_eq!(check(&moved, &id, &expires, &signature, NOW_MS), invalid);
            // One digit of the signature, its case, its length, another key, another purpose.
            let digit = if signature.as_bytes()[place] == b'0' { "1" } else { "0" };
            let mut turned = signature.clone();
            turned.replace_range(place..=place, digit);
            let other_key = sign(&identity(2), &session, &id, expires_ms);
            let other_purpose = identity(1).sign_for("voice-ticket", &[&session, &id, &expires]);
            let cut = signature[..63].to_owned();
            for wrong in [turned, other_key, other_purpose, cut, format!("{signature}0"), odd] {
                prop_assert_eq!(check(&session, &id, &expires, &wrong, NOW_MS), invalid);
            }
        }
    }
}
