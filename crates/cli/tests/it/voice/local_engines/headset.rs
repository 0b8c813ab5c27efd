//! A user with a headset: the microphone sends all the time, what comes is played as fast as it is spoken, and the client
//! reports what was played, as the page does.

use std::collections::VecDeque;
use std::time::Duration;

use quarterdeck_contracts::{HEARD_RATE, SPOKEN_RATE};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::voice::page::Page;

const FRAME_TIME: Duration = Duration::from_millis(20);
const HEARD_FRAME: usize = HEARD_RATE as usize / 50;
const SPOKEN_FRAME: usize = SPOKEN_RATE as usize / 50;
/// How often the page reports what was played.
const REPORT_SAMPLES: usize = SPOKEN_RATE as usize / 4;

pub(super) struct Headset {
    pub(super) page: Page,
    /// What the user is still to say.
    microphone: VecDeque<i16>,
    queued: VecDeque<i16>,
    is_paused: bool,
    /// What the user has heard since the last interruption, and how much of that was forgotten.
    pub(super) heard: Vec<i16>,
    forgotten: usize,
    /// How much of both was reported.
    reported: usize,
    next_frame: Instant,
}

impl Headset {
    pub(super) fn new(page: Page) -> Self {
        Self {
            page,
            microphone: VecDeque::new(),
            queued: VecDeque::new(),
            is_paused: false,
            heard: Vec::new(),
            forgotten: 0,
            reported: 0,
            next_frame: Instant::now(),
        }
    }

    /// Says something, after what is being said.
    pub(super) fn say(&mut self, sound: &[i16]) {
        self.microphone.extend(sound);
    }

    /// What was said and heard so far is of no interest any more. Playback is counted on.
    pub(super) fn forget(&mut self) {
        self.page.messages.clear();
        self.forgotten += self.heard.len();
        self.heard.clear();
    }

    pub(super) fn is_playing(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Goes on until something is so.
    pub(super) async fn wait_until(&mut self, what: &str, limit: Duration, is_so: impl Fn(&Self) -> bool) {
        let is_in_time = self.comes_to_be(limit, is_so).await;
        assert!(is_in_time, "{what} took too long: {:#?}", self.page.messages);
    }

    /// Goes on until something is so, or the time is over.
    pub(super) async fn comes_to_be(&mut self, limit: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let deadline = Instant::now() + limit;
        while !is_so(self) {
            if Instant::now() >= deadline {
                return false;
            }
            self.step().await;
        }
        true
    }

    pub(super) async fn wait(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.step().await;
        }
    }

    /// 20 milliseconds.
    async fn step(&mut self) {
        let length = self.microphone.len().min(HEARD_FRAME);
        let mut frame: Vec<i16> = self.microphone.drain(..length).collect();
        frame.resize(HEARD_FRAME, 0);
        self.page.send_frame(&frame).await;
        // A microphone that was held up does not catch up: the server takes no more than twice as much as can be said.
        self.next_frame = self.next_frame.max(Instant::now() - 5 * FRAME_TIME) + FRAME_TIME;
        for message in self.page.receive_until(self.next_frame).await {
            self.obey(&message);
        }
        let audio = std::mem::take(&mut self.page.audio);
        self.queued.extend(audio.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample)));
        self.play().await;
    }

    fn obey(&mut self, message: &Value) {
        match message["type"].as_str() {
            Some("pause") => self.is_paused = true,
            Some("resume") => self.is_paused = false,
            Some("interrupted") => {
                self.is_paused = false;
                // What came before it belongs to what was interrupted.
                self.page.audio.clear();
                self.queued.clear();
                self.heard.clear();
                (self.forgotten, self.reported) = (0, 0);
            }
            _ => {}
        }
    }

    async fn play(&mut self) {
        if self.is_paused || self.queued.is_empty() {
            return;
        }
        let length = self.queued.len().min(SPOKEN_FRAME);
        self.heard.extend(self.queued.drain(..length));
        let (is_empty, played) = (self.queued.is_empty(), self.forgotten + self.heard.len());
        if is_empty || played - self.reported >= REPORT_SAMPLES {
            self.reported = played;
            let played_ms = played as u64 * 1_000 / u64::from(SPOKEN_RATE);
            self.page.send(&json!({ "type": "playback", "state": "playing", "playedMs": played_ms })).await;
        }
        if is_empty {
            self.page.send(&json!({ "type": "playback", "state": "drained" })).await;
        }
    }

    /// The messages of a type since the last interruption.
    pub(super) fn since_interruption(&self, kind: &str) -> Vec<&Value> {
        let messages = &self.page.messages;
        let begin = messages.iter().rposition(|message| message["type"] == "interrupted").unwrap_or_default();
        messages[begin..].iter().filter(|message| message["type"] == kind).collect()
    }

    /// All that the assistant has said since the last interruption.
    pub(super) fn answer(&self) -> String {
        let transcripts = self.since_interruption("transcript");
        let by_assistant = transcripts.iter().filter(|message| message["role"] == "assistant");
        by_assistant.filter_map(|message| message["text"].as_str()).collect()
    }

    /// All that the user was understood to say.
    pub(super) fn understood(&self) -> String {
        let messages = &self.page.messages;
        let by_user = messages.iter().filter(|it| it["type"] == "transcript" && it["role"] == "user");
        by_user.filter_map(|message| message["text"].as_str()).collect::<Vec<_>>().join(" ")
    }
}
