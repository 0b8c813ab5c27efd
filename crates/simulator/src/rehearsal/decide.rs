//! What to do next, from what there is.

use super::reply::Reply;
use super::scene::{Finished, Scene};
use super::{search, small_talk};

/// The next reply of a conversation.
pub(crate) fn reply(scene: &Scene<'_>) -> Reply {
    let reply = match scene.newest() {
        [] => to_person(scene),
        results => to_results(scene, results),
    };
    if reply.calls.is_empty() || scene.may_call { reply } else { in_words(scene) }
}

/// The person has said something.
fn to_person(scene: &Scene<'_>) -> Reply {
    match small_talk::answer(scene) {
        Some(text) => Reply::say(text),
        None => search::look_up(scene),
    }
}

/// Calls have come to something.
fn to_results(scene: &Scene<'_>, results: &[Finished<'_>]) -> Reply {
    let Some(last) = results.last() else { return Reply::silence() };
    match last.data() {
        Some(data) if data.get("results").is_some() => search::after_search(scene, last, data),
        Some(data) if data.get("records").is_some() => {
            Reply::say(search::from_record(scene, data).unwrap_or_default())
        }
        _ => in_words(scene),
    }
}

/// An answer when nothing more may be called.
fn in_words(scene: &Scene<'_>) -> Reply {
    Reply::say(search::from_what_there_is(scene).unwrap_or_else(|| {
        "I cannot look anything up right now, and I only say what I have looked up. Please ask again.".into()
    }))
}
