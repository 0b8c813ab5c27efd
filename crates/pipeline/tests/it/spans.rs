//! The spans of requests to the chat model.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quarterdeck_contracts::telemetry::{
    AttributeValue, ConversationTracer, SpanData, SpanRecorder, SpanStamp, SpanStatus, TraceContext, Tracer,
    names,
};
use quarterdeck_contracts::{ChatErrorKind, LiveInput, LiveSetup};
use serde_json::json;

use super::harness::{Reply, Talk, says, script};

/// Keeps spans, whose ids count from 1.
#[derive(Default)]
struct SpanList {
    begun: Mutex<u8>,
    ended: Mutex<Vec<SpanData>>,
}

impl SpanRecorder for SpanList {
    fn begin(&self, parent: Option<TraceContext>) -> SpanStamp {
        let mut begun = self.begun.lock().unwrap();
        *begun += 1;
        let (trace_id, span_id) = ([*begun; 16], [*begun; 8]);
        let context = TraceContext { trace_id, span_id, is_sampled: true, is_remote: false };
        SpanStamp { context, parent, began: UNIX_EPOCH }
    }

    fn now(&self) -> SystemTime {
        UNIX_EPOCH
    }

    fn end(&self, span: SpanData) {
        self.ended.lock().unwrap().push(span);
    }

    fn captures_content(&self) -> bool {
        true
    }
}

impl SpanList {
    async fn open(self: &Arc<Self>, replies: impl IntoIterator<Item = Reply>) -> Talk {
        let tracer = ConversationTracer::new(Tracer::new(self.clone()), "session-7", "voice");
        Talk::connect(script(replies), LiveSetup { tracer, ..LiveSetup::default() }).await
    }

    fn take(&self) -> Vec<SpanData> {
        std::mem::take(&mut self.ended.lock().unwrap())
    }
}

fn finish_reason(span: &SpanData) -> Option<&str> {
    match span.find(names::RESPONSE_FINISH_REASONS)? {
        AttributeValue::Texts(reasons) => reasons.first().map(|reason| &**reason),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn each_request_to_the_model_is_a_span_that_the_model_is_told() {
    let spans = Arc::new(SpanList::default());
    let calls = Reply::Calls(String::new(), vec!["kb_search"]);
    let mut talk = spans.open([calls, says("Colin Archer.")]).await;
    talk.send(LiveInput::Text("Who built her?"));
    talk.run_until("calls").await;
    talk.answer(0, json!({"hits": ["Archer"]}), false);
    talk.run_until("turn complete, more follows: false").await;

    let ended = spans.take();
    let reasons: Vec<_> = ended.iter().map(finish_reason).collect();
    assert_eq!(reasons, [Some("tool_calls"), Some("stop")]);
    for span in &ended {
        assert_eq!((span.name.as_str(), span.status), ("chat chat", SpanStatus::Unset));
        assert_eq!(span.find_text(names::PROVIDER_NAME), Some("fake"));
        assert_eq!(span.find_text(names::CONVERSATION_ID), Some("session-7"));
        assert_eq!(span.find_text(names::CHANNEL), Some("voice"));
        assert_eq!(span.find(names::USAGE_INPUT_TOKENS), Some(&AttributeValue::Integer(10)));
        // A word takes 30 ms here, and so does a reply that is nothing but calls.
        let first = Duration::from_millis(30).as_secs_f64();
        assert_eq!(span.find(names::RESPONSE_TIME_TO_FIRST_CHUNK), Some(&AttributeValue::Float(first)));
        assert!(!format!("{:?}", span.attributes).contains("Archer"), "{span:?}");
    }
    let told: Vec<_> = talk.script.requests.lock().unwrap().iter().map(|request| request.span).collect();
    assert_eq!(told, ended.iter().map(|span| Some(span.context)).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn request_that_fails_is_an_error_and_one_that_is_interrupted_just_ends() {
    let spans = Arc::new(SpanList::default());
    let fails = Reply::Fails(ChatErrorKind::Overloaded);
    let mut talk = spans.open([fails, says("One two three four five six seven eight nine ten.")]).await;
    talk.send(LiveInput::Text("Count."));
    talk.run_for(Duration::from_millis(100)).await;
    let [failed] = &spans.take()[..] else { panic!("the failed request alone has ended") };
    assert_eq!(failed.status, SpanStatus::Error);
    assert_eq!(failed.find_text(names::ERROR_TYPE), Some(ChatErrorKind::Overloaded.as_str()));
    assert_eq!(failed.find(names::RESPONSE_TIME_TO_FIRST_CHUNK), None);

    talk.interrupt();
    let [interrupted] = &spans.take()[..] else { panic!("the interrupted request ends at once") };
    assert_eq!((interrupted.status, finish_reason(interrupted)), (SpanStatus::Unset, None));
    assert!(interrupted.find(names::RESPONSE_TIME_TO_FIRST_CHUNK).is_some());
}
