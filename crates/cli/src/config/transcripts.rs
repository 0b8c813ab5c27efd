//! `[transcripts]`: whether operators may read conversations, for how long, and what they are encrypted with.

use std::time::Duration;

use quarterdeck_runtime::Policy;
use quarterdeck_store::{SealingKey, SealingKeys};

use super::kinds::{choice, choices, days};
use super::reader::{Reader, settings};

const DAY: Duration = Duration::from_secs(24 * 3_600);
/// How many replaced keys may still be read with.
const MAX_PREVIOUS_KEYS: usize = 20;

choices! {
    /// Whether operators may read what users said.
    enum Keep {
        Off = "off",
        On = "on",
    }
}

/// Sets how long conversations are kept for operators, and answers with the keys that they are encrypted with.
pub(super) fn transcripts(from: &mut Reader, policy: &mut Policy) -> SealingKeys {
    from.table("transcripts", "Conversations that operators may read, and what they are encrypted with.");
    let (mut keep, mut retention) = (Keep::Off, 30 * DAY);
    settings! { from;
        "keep": choice() => keep,
            "Whether operators may read what users said, beyond the session and with an audit line for each opening; it needs a key. \
             Tell your users";
        "retain_days": days(1, 3_650) => retention, "How long conversations are kept for operators";
    }
    let about = "A file that holds the key that conversations in the store are encrypted with, 32 bytes in base64; the variable \
                 QUARTERDECK_TRANSCRIPTS__KEY wins over it";
    let way_out = "set QUARTERDECK_TRANSCRIPTS__KEY to the output of `openssl rand -base64 32`, or name a file that holds it in \
                   `transcripts.key_file`";
    let (key, file) = from.secret("key", &["QUARTERDECK_TRANSCRIPTS__KEY"], about, way_out);
    let about = "A file with keys that were used before, one in a line, so that what they encrypted can be read; the variable \
                 QUARTERDECK_TRANSCRIPTS__PREVIOUS_KEYS wins over it";
    let previous_way_out = "set QUARTERDECK_TRANSCRIPTS__PREVIOUS_KEYS, with commas between keys, or name a file in \
                            `transcripts.previous_keys_file`";
    let (previous, _) =
        from.secret("previous_keys", &["QUARTERDECK_TRANSCRIPTS__PREVIOUS_KEYS"], about, previous_way_out);
    if keep == Keep::On && key.is_none() && file.is_none() {
        let message = "conversations are kept only encrypted, and there is no key".to_owned();
        from.add_serve_problem("transcripts.keep", message, Some(way_out.into()));
    }
    policy.transcript_retention = (keep == Keep::On).then_some(retention);
    let current = key.and_then(|key| parse(from, "transcripts.key", key.expose()));
    let previous = previous.map_or_else(Vec::new, |keys| {
        let keys = keys.expose().split([',', '\n']).map(str::trim).filter(|key| !key.is_empty());
        let keys = keys.take(MAX_PREVIOUS_KEYS).map(str::to_owned).collect::<Vec<_>>();
        keys.iter().filter_map(|key| parse(from, "transcripts.previous_keys", key)).collect()
    });
    SealingKeys::new(current, previous)
}

/// A key; one that is none becomes a problem, for every command: what it reads would otherwise seem to be missing.
fn parse(from: &mut Reader, key: &str, text: &str) -> Option<SealingKey> {
    match SealingKey::from_base64(text) {
        Ok(key) => Some(key),
        Err(error) => {
            from.add_serve_problem(key, format!("`{key}` is no key"), Some(error.to_string()));
            None
        }
    }
}
