use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

fn conversation(answers: Vec<Answer>) -> Conversation {
    let mut conversation = Conversation::new(Answers::InOrder(answers.into()), SharedReport::default());
    conversation.handle_event(&json!({"type": "session.update", "session": {"type": "realtime"}}));
    assert_eq!(kinds(&mut conversation), ["session.created", "session.updated"]);
    conversation
}

/// The types of the events since the last time, with the active response played to its end.
fn kinds(conversation: &mut Conversation) -> Vec<String> {
    while conversation.is_speaking() {
        conversation.advance();
    }
    sent(conversation).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

fn sent(conversation: &mut Conversation) -> Vec<Value> {
    conversation.out.drain(..).collect()
}

fn faults(conversation: &Conversation) -> Vec<String> {
    conversation.report.lock().faults.clone()
}

fn output(id: &str) -> Value {
    let item = json!({"type": "function_call_output", "call_id": id, "output": "2"});
    json!({"type": "conversation.item.create", "item": item})
}

fn respond() -> Value {
    json!({"type": "response.create"})
}

fn call() -> Answer {
    Answer::Call { name: "tide".to_owned(), arguments: json!({"at": "Oslo"}), then: "Two.".to_owned() }
}

#[test]
fn a_call_has_one_output_and_is_reported_on_request() {
    let mut conversation = conversation(vec![call(), Answer::Say("Bye.".to_owned())]);
    conversation.handle_event(&respond());
    let made = kinds(&mut conversation);
    assert_eq!(made[made.len() - 2..], ["response.output_item.done", "response.done"]);
    let id = conversation.report.lock().calls[0].id.clone();
    conversation.handle_event(&output(&id));
    assert_eq!(kinds(&mut conversation), Vec::<String>::new(), "nothing answers by itself");
    conversation.handle_event(&respond());
    conversation.advance();
    conversation.advance();
    assert_eq!(sent(&mut conversation)[2]["delta"], "Two.");
    kinds(&mut conversation);
    assert_eq!(faults(&conversation), Vec::<String>::new());
    conversation.handle_event(&output(&id));
    conversation.handle_event(&output("another"));
    let complaints = faults(&conversation);
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert_eq!(conversation.report.lock().calls[0].outputs, ["2", "2"]);
}

#[test]
fn one_response_is_active_at_a_time_and_waits_for_outputs() {
    let mut conversation = conversation(vec![call(), Answer::Say("Bye.".to_owned())]);
    conversation.handle_event(&respond());
    sent(&mut conversation);
    conversation.handle_event(&respond());
    assert_eq!(sent(&mut conversation)[0]["error"]["code"], "conversation_already_has_active_response");
    kinds(&mut conversation);
    conversation.handle_event(&respond());
    assert_eq!(faults(&conversation), ["a response was asked for while a call waits for its result"]);
}

#[test]
fn speech_interrupts_a_response_and_is_answered_after_silence() {
    let mut conversation =
        conversation(vec![Answer::Say("One two.".to_owned()), Answer::Say("Yes?".to_owned())]);
    let audio = |loudness: i16| {
        let pcm: Vec<u8> = (0..2_400).flat_map(|_| loudness.to_le_bytes()).collect();
        json!({"type": "input_audio_buffer.append", "audio": base64_simd::STANDARD.encode_to_string(pcm)})
    };
    conversation.handle_event(&respond());
    conversation.advance();
    conversation.advance();
    conversation.advance();
    sent(&mut conversation);
    conversation.handle_event(&audio(9_000));
    let events = sent(&mut conversation);
    assert_eq!(events[0]["type"], "input_audio_buffer.speech_started");
    let ends: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(
        ends[1..],
        [
            "response.output_audio.done",
            "response.output_audio_transcript.done",
            "response.output_item.done",
            "response.done"
        ],
        "what it was in the middle of ends too"
    );
    assert_eq!(events.last().unwrap()["response"]["status_details"]["reason"], "turn_detected");
    let item = conversation.spoken.clone().unwrap().0;
    let truncate =
        |end: u64| json!({"type": "conversation.item.truncate", "item_id": item, "audio_end_ms": end});
    conversation.handle_event(&truncate(150));
    assert_eq!(faults(&conversation), Vec::<String>::new());
    conversation.handle_event(&truncate(250));
    assert_eq!(faults(&conversation).len(), 1, "there are 200 ms of it");
    sent(&mut conversation);
    for _ in 0..3 {
        conversation.handle_event(&audio(10));
    }
    let begun = kinds(&mut conversation);
    assert_eq!(begun[..2], ["input_audio_buffer.speech_stopped", "input_audio_buffer.committed"]);
    assert_eq!(begun.last().map(String::as_str), Some("response.done"));
}

#[test]
fn settings_that_the_provider_does_not_take_are_refused() {
    for session in [
        json!({}),
        json!({"type": "realtime", "tools": [{"type": "function", "function": {"name": "tide"}}]}),
        json!({"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcm", "rate": 16_000}}}}),
    ] {
        let mut conversation = Conversation::new(Answers::InOrder(Arc::new([])), SharedReport::default());
        conversation.handle_event(&json!({"type": "session.update", "session": session}));
        assert_eq!(kinds(&mut conversation), ["session.created", "error"], "{session}");
    }
    let mut conversation = Conversation::new(Answers::InOrder(Arc::new([])), SharedReport::default());
    conversation.handle_event(&respond());
    conversation.handle_event(&Value::Null);
    assert_eq!(faults(&conversation).len(), 3);
}
