//! A caller who talks with a live model, and a log of the conversation.

use std::future::poll_fn;
use std::time::Duration;

use quarterdeck_contracts::{
    Audio, CallArguments, HandlerAnswer, LiveConnection, LiveEvent, LiveInput, LiveModel, LiveResult,
    LiveSetup, ModelCall, Provider, TranscriptStage,
};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::live_provider::{envelope, opening, owned};

/// What a conversation was, in a line for each thing that happened. Of one answer, the words are one line and the audio
/// is another.
#[derive(Default)]
pub(crate) struct Story(pub(crate) Vec<String>);

impl Story {
    fn note(&mut self, event: &LiveEvent<'_>) {
        let line = match event {
            LiveEvent::Audio(_) => "audio".to_owned(),
            LiveEvent::OutputTranscript(words) if words.stage != TranscriptStage::Final => {
                format!("said {}", words.text)
            }
            LiveEvent::InputTranscript(words) => format!("heard {}", words.text),
            LiveEvent::Calls(calls) => {
                let names: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
                format!("calls {}", names.join(", "))
            }
            LiveEvent::Interrupted { .. } => "interrupted".to_owned(),
            LiveEvent::TurnComplete { .. } => "over".to_owned(),
            LiveEvent::Warning(what) => format!("trouble: {what}"),
            _ => return,
        };
        let is_break = |line: &String| line == "over" || line == "interrupted";
        let begin = self.0.iter().rposition(is_break).map_or(0, |place| place + 1);
        let word = line.split(' ').next().unwrap_or_default();
        let known = self.0[begin..].iter_mut().find(|known| known.starts_with(word));
        match (word, known) {
            ("audio", Some(_)) => {}
            ("said", Some(known)) => known.push_str(&line["said ".len()..]),
            _ => self.0.push(line),
        }
    }
}

/// Sends audio at the pace of a microphone, and reads events meanwhile.
pub(crate) struct Caller {
    pub(crate) connection: Box<dyn LiveConnection>,
    pub(crate) story: Story,
    /// Turns that are over for good.
    pub(crate) turns: usize,
    /// The last handle, for as long as it counts.
    pub(crate) handle: Option<String>,
}

impl Caller {
    pub(crate) async fn calls(model: &dyn LiveModel, resume: Option<String>) -> Self {
        let tool = match model.declarations() {
            Provider::Openai => {
                json!({"type": "function", "function": {"name": "tide", "description": "x", "parameters": {"type": "object"}}})
            }
            _ => json!({"name": "tide", "description": "x", "parametersJsonSchema": {"type": "object"}}),
        };
        let opening = LiveSetup { tools: vec![tool].into(), resume, ..opening() };
        Self {
            connection: model.connect(opening).await.unwrap(),
            story: Story::default(),
            turns: 0,
            handle: None,
        }
    }

    /// Sends so many milliseconds of noise or of silence, and listens meanwhile.
    pub(crate) async fn speak(&mut self, milliseconds: u64, loudness: i16) {
        let piece: Vec<u8> =
            (0..320).flat_map(|n| (if n % 2 == 0 { loudness } else { -loudness }).to_le_bytes()).collect();
        for _ in 0..milliseconds / 20 {
            self.connection.send(LiveInput::Audio(Audio::Pcm(piece.as_slice().into())));
            self.listen(Duration::from_millis(20), |_| false).await;
        }
    }

    /// Listens until something happens, or for so long. Calls are answered at once.
    pub(crate) async fn listen(
        &mut self,
        limit: Duration,
        is_enough: impl Fn(&LiveEvent<'_>) -> bool,
    ) -> bool {
        let end = Instant::now() + limit;
        loop {
            while let Some(event) = self.connection.next() {
                let event = owned(event);
                self.story.note(&event);
                if let LiveEvent::Calls(calls) = &event {
                    self.answer(calls);
                }
                if let LiveEvent::ResumptionHandle(handle) = &event {
                    self.handle.clone_from(handle);
                }
                self.turns += usize::from(event == LiveEvent::TurnComplete { more_follows: false });
                if is_enough(&event) {
                    return true;
                }
            }
            let filled = poll_fn(|context| {
                let _ = self.connection.poll_flush(context);
                self.connection.poll_fill(context)
            });
            match timeout_at(end, filled).await {
                Ok(filled) => filled.unwrap(),
                Err(_) => return false,
            }
        }
    }

    fn answer(&mut self, calls: &[ModelCall]) {
        for (place, call) in calls.iter().enumerate() {
            assert!(matches!(call.arguments, CallArguments::Json(_)));
            let response = envelope(HandlerAnswer::success(json!({"metres": 2})));
            self.connection.send(LiveInput::Result(LiveResult {
                id: call.id.as_deref(),
                name: &call.name,
                response: &response,
                is_silent: false,
                is_last: place + 1 == calls.len(),
            }));
        }
    }

    /// Listens until so many turns are over, since the beginning.
    pub(crate) async fn turns(&mut self, count: usize) {
        while self.turns < count {
            let is_over = |event: &LiveEvent<'_>| matches!(event, LiveEvent::TurnComplete { .. });
            assert!(self.listen(Duration::from_secs(60), is_over).await, "{:?}", self.story.0);
        }
    }

    pub(crate) async fn hang_up(self) -> Vec<String> {
        self.connection.close().await;
        // The other end is told, and writes it down.
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.story.0
    }
}
