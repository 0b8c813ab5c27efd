//! Our own ear in the machine: it pauses playback at the first sound of the user, and interrupts when that is speech.

use std::time::Duration;

use quarterdeck_contracts::Audio;
use quarterdeck_ears::{Ear, EarEvent};

use super::response_latency::ResponseLatency;
use super::{CallState, ClientOutput, Output, ProviderOutput};
use crate::voice::session::CallSession;

#[derive(Debug)]
pub(super) struct Hearing {
    ear: Option<Box<Ear>>,
    /// The provider takes from us when the user begins and stops to speak.
    relies_on_ear: bool,
    /// The client was told to pause, and neither to go on nor to throw away.
    has_paused: bool,
    /// The user has spoken, and no transcript stands for it yet.
    is_untranscribed: bool,
    pub(super) latency: ResponseLatency,
    /// Kept so that nothing is allocated for a frame.
    events: Vec<EarEvent>,
}

impl Hearing {
    /// A provider that relies on an ear has one whatever the settings say.
    pub(super) fn new(is_on: bool, relies_on_ear: bool) -> Self {
        let ear = (is_on || relies_on_ear).then(Box::default);
        Self {
            ear,
            relies_on_ear,
            has_paused: false,
            is_untranscribed: false,
            latency: ResponseLatency::default(),
            events: Vec::new(),
        }
    }

    /// Whether the user is speaking.
    pub(super) fn hears_speech(&self) -> bool {
        self.ear.as_ref().is_some_and(|ear| ear.hears_speech())
    }

    pub(super) fn has_ear(&self) -> bool {
        self.ear.is_some()
    }

    pub(super) fn relies_on_ear(&self) -> bool {
        self.relies_on_ear
    }

    /// Whether words are still to come for what the user has said.
    pub(super) fn is_untranscribed(&self) -> bool {
        self.is_untranscribed
    }

    pub(super) fn mark_untranscribed(&mut self) {
        self.is_untranscribed = true;
    }

    /// Whether the client waits for us to make up our mind.
    pub(super) fn has_paused(&self) -> bool {
        self.has_paused
    }

    /// The client will be played this.
    pub(super) fn add_playback(&mut self, audio: &Audio<'_>) {
        self.ear.iter_mut().for_each(|ear| ear.add_playback(audio));
    }

    /// The client does not play what it has.
    pub(super) fn clear_playback(&mut self) {
        self.has_paused = false;
        self.ear.iter_mut().for_each(|ear| ear.clear_playback());
    }

    /// Words stand for what was said.
    pub(super) fn on_transcribed(&mut self) {
        self.is_untranscribed = false;
    }

    /// Whether a new connection must be told that the user has spoken, or still speaks.
    pub(super) fn has_unheard_speech(&self) -> bool {
        self.relies_on_ear && (self.is_untranscribed || self.hears_speech())
    }
}

impl<S: CallSession> CallState<S> {
    /// Listens to the user.
    pub(super) fn listen(&mut self, audio: &Audio<'_>) {
        let Some(ear) = &mut self.hearing.ear else { return };
        let now = self.timing.now;
        let playback = &self.speech.playback;
        let played = playback.is_playing(now).then(|| playback.played(now));
        let mut events = std::mem::take(&mut self.hearing.events);
        ear.hear(audio, played, |event| events.push(event));
        events.drain(..).for_each(|event| self.on_ear_event(event));
        self.hearing.events = events;
    }

    /// No audio comes from the user for now.
    pub(super) fn stop_listening(&mut self) {
        if let Some(event) = self.hearing.ear.as_mut().and_then(|ear| ear.stop()) {
            self.on_ear_event(event);
        }
    }

    /// A client that was told to pause must hear on, even if the microphone was switched off in the middle of a word.
    pub(super) fn check_pause(&mut self, has_audio: bool) {
        if self.hearing.has_paused && !has_audio {
            self.stop_listening();
        }
    }

    fn on_ear_event(&mut self, event: EarEvent) {
        match event {
            EarEvent::Onset => self.pause_playback(),
            EarEvent::FalseAlarm => self.resume_playback(),
            EarEvent::SpeechStarted { ago } => self.on_speech_started(ago),
            EarEvent::SpeechEnded { ago } => {
                let is_held = self.question.is_holding();
                self.end_answer(ago);
                if !is_held {
                    self.on_speech_ended(ago);
                }
                if self.hearing.relies_on_ear && !is_held {
                    self.send_provider(ProviderOutput::SpeechEnded);
                }
            }
        }
    }

    /// From here on the user waits for an answer.
    fn on_speech_ended(&mut self, ago: Duration) {
        let now = self.timing.now;
        let latency = self.hearing.latency.on_speech_ended(now.checked_sub(ago).unwrap_or(now));
        self.report_latency(latency);
    }

    pub(super) fn report_latency(&mut self, latency: Option<Duration>) {
        self.outputs.extend(latency.map(Output::ReportLatency));
    }

    fn pause_playback(&mut self) {
        let now = self.timing.now;
        if !self.client.is_connected || !self.speech.playback.is_playing(now) {
            return;
        }
        self.speech.playback.pause(now);
        self.hearing.has_paused = true;
        self.send_client(ClientOutput::Pause);
        self.tick_soon();
    }

    fn resume_playback(&mut self) {
        if std::mem::take(&mut self.hearing.has_paused) {
            self.speech.playback.resume(self.timing.now);
            self.send_client(ClientOutput::Resume);
        }
    }

    /// The user speaks. What they talk over is interrupted, without waiting for the provider to notice; an answer that has
    /// not begun is not, because it may be the answer to this.
    fn on_speech_started(&mut self, ago: Duration) {
        let now = self.timing.now;
        // A question that is talked over is no answer of the provider's.
        let is_question = self.question.is_spoken() && self.speech.playback.is_playing(now);
        if self.begin_answer(ago) {
            return self.resume_playback();
        }
        let was_speaking = self.speech.is_speaking();
        let heard = self.speech.playback.heard(now);
        if is_question && !was_speaking {
            self.silence();
        } else if was_speaking || self.speech.playback.is_playing(now) {
            self.send_provider(ProviderOutput::Interrupt { heard });
            let was_answering = self.speech.is_answering;
            match was_answering {
                true => self.interrupt(),
                false => self.silence(),
            }
            if self.connection.is_connected {
                self.speech.interruption.on_spoken_over(was_speaking, now);
            }
            // The provider has noticed first, and these words belong to a new turn.
            if self.speech.interruption.take_spoken_into() && was_answering {
                self.begin_turn();
            }
        }
        self.resume_playback();
        self.hearing.latency.on_speech_started();
        self.hearing.is_untranscribed = true;
        if self.hearing.relies_on_ear {
            self.send_provider(ProviderOutput::SpeechStarted);
        }
    }
}
