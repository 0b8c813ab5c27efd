//! Changes beside the parameters.

use quarterdeck_contracts::{Confirmation, Metadata, Mode};
use serde_json::Value;

use super::{Effect, accepted_then_refused};

/// Fields whose changes have a sentence of their own below.
const DESCRIBED_FIELDS: [&str; 5] =
    ["toolId", "allowedModes", "requiresConfirmation", "availability", "returns"];

pub(super) fn compare(old: &Metadata, new: &Metadata) -> Vec<(Effect, String)> {
    let mut changes = Vec::new();
    compare_modes(old, new, &mut changes);
    if old.requires_confirmation != new.requires_confirmation {
        changes.push(match (old.requires_confirmation, new.requires_confirmation) {
            (Confirmation::Never, _) => {
                (Effect::Breaks, "calls that ran now wait for the user's approval".into())
            }
            (_, Confirmation::Never) => {
                (Effect::Changes, "calls no longer wait for the user's approval".into())
            }
            _ => (Effect::Changes, "when the user is asked changed".into()),
        });
    }
    if old.availability != new.availability {
        changes.push(match &new.availability {
            Some(_) => (Effect::Breaks, "the conditions for using the tool changed".into()),
            None => (Effect::Changes, "the tool is now available to all clients".into()),
        });
    }
    compare_returns(old.returns.as_ref(), new.returns.as_ref(), &mut changes);
    changes.extend(other_fields(old, new));
    changes
}

fn compare_modes(old: &Metadata, new: &Metadata, changes: &mut Vec<(Effect, String)>) {
    for (mode, name) in [(Mode::Text, "text"), (Mode::Voice, "voice")] {
        match (old.allowed_modes.contains(&mode), new.allowed_modes.contains(&mode)) {
            (true, false) => changes.push((Effect::Breaks, format!("no longer allowed in {name}"))),
            (false, true) => changes.push((Effect::Adds, format!("now allowed in {name}"))),
            _ => {}
        }
    }
}

fn compare_returns(old: Option<&Value>, new: Option<&Value>, changes: &mut Vec<(Effect, String)>) {
    match (old, new) {
        (Some(old), Some(new)) if old != new => {
            // For answers the direction is the other way round: what may come now must have been allowed before.
            changes.push(match accepted_then_refused(new, old) {
                Some(example) => (
                    Effect::Breaks,
                    format!("answers may now be something that was not allowed, such as {example}"),
                ),
                None => (Effect::Changes, "the schema of answers changed".into()),
            });
        }
        (Some(_), None) => changes.push((Effect::Breaks, "answers are no longer held to a schema".into())),
        (None, Some(_)) => changes.push((Effect::Adds, "answers are now held to a schema".into())),
        _ => {}
    }
}

fn other_fields(old: &Metadata, new: &Metadata) -> Vec<(Effect, String)> {
    let as_object = |metadata: &Metadata| match serde_json::to_value(metadata) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (old, new) = (as_object(old), as_object(new));
    let mut names: Vec<_> = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))).collect();
    names.retain(|name| !DESCRIBED_FIELDS.contains(&name.as_str()) && old.get(*name) != new.get(*name));
    let describe = |name: &String| match (old.get(name), new.get(name)) {
        (Some(Value::String(_)), Some(Value::String(_))) if name == "description" => {
            "the description changed".into()
        }
        (Some(was), Some(is)) => format!("`{name}` was {was} and is {is}"),
        (None, Some(is)) => format!("`{name}` is now {is}"),
        _ => format!("`{name}` is no longer set"),
    };
    names.into_iter().map(|name| (Effect::Changes, describe(name))).collect()
}
