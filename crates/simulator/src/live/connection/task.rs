//! What a session cannot do itself: ask a chat model, synthesise speech.

use std::future::{Future, poll_fn};
use std::pin::Pin;

use quarterdeck_contracts::{ChatEvent, ChatStream, ModelReply};

use crate::live::session::{Task, TaskResult};
use crate::live::simulation::{ReplySource, Simulation};

pub(super) type TaskFuture = Pin<Box<dyn Future<Output = TaskResult> + Send>>;

pub(super) fn run(task: Task, simulation: &Simulation) -> TaskFuture {
    match (task, &simulation.source, &simulation.voice) {
        (Task::Ask(request), ReplySource::ChatModel(model), _) => {
            let stream = model.ask(request);
            Box::pin(async move { TaskResult::Reply(reply(stream).await) })
        }
        (Task::Ask(_), ReplySource::Scenario(_), _) => {
            Box::pin(async { TaskResult::Reply(Err("there is no chat model".into())) })
        }
        (Task::Speak(text), _, Some(voice)) => {
            let speech = voice.speak(&text);
            Box::pin(async move { TaskResult::Samples(speech.await) })
        }
        (Task::Speak(_), _, None) => Box::pin(async { TaskResult::Samples(None) }),
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
