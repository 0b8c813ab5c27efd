//! What a session cannot do itself: ask a chat model, make words heard.

use std::future::{Future, poll_fn};
use std::pin::Pin;

use quarterdeck_contracts::{ChatEvent, ChatStream, ModelReply};

use crate::live::desk::{Desk, Mind};
use crate::live::session::{Done, Errand};

/// Something that is being done.
pub(super) type Running = Pin<Box<dyn Future<Output = Done> + Send>>;

/// Does an errand.
pub(super) fn run(errand: Errand, desk: &Desk) -> Running {
    match (errand, &desk.mind, &desk.voice) {
        (Errand::Ask(request), Mind::Answers(model), _) => {
            let stream = model.ask(request);
            Box::pin(async move { Done::Reply(reply(stream).await) })
        }
        (Errand::Ask(_), Mind::Plays(_), _) => {
            Box::pin(async { Done::Reply(Err("there is no chat model".into())) })
        }
        (Errand::Speak(text), _, Some(voice)) => {
            let speaking = voice.speak(&text);
            Box::pin(async move { Done::Samples(speaking.await) })
        }
        (Errand::Speak(_), _, None) => Box::pin(async { Done::Samples(None) }),
    }
}

/// A reply as a whole.
async fn reply(mut stream: ChatStream) -> Result<ModelReply, String> {
    while let Some(event) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
        match event {
            Ok(ChatEvent::Done(reply)) => return Ok(reply),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("the chat model ended without an answer".into())
}
