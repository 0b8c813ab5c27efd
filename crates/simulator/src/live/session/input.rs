//! Frames of the client.

use serde_json::Value;
use tokio::time::Instant;

use super::turn_start::Input;
use super::{Output, Session};
use crate::live::client_frame::{ClientFrame, ContentTurn, Realtime, text_of};
use crate::live::server_frame;
use crate::speech_detector::SpeechEvent;

impl Session {
    pub(in crate::live) fn take_frame(&mut self, frame: Result<ClientFrame, String>, now: Instant) {
        if self.is_over {
            return;
        }
        if self.setup_complete_at.is_some() {
            self.fault("something was sent between setup and setupComplete");
            return;
        }
        match frame {
            Err(fault) => {
                self.fault(&fault);
                self.end(Output::Close(1007, fault));
            }
            Ok(ClientFrame::Setup(_)) => {
                self.fault("there is a second setup");
                self.end(Output::Close(1007, "setup must only be the first message".into()));
            }
            Ok(ClientFrame::Realtime(all)) => all.into_iter().for_each(|part| self.take_realtime(part, now)),
            Ok(ClientFrame::Content { turns, is_complete }) => self.take_content(&turns, is_complete, now),
            Ok(ClientFrame::ToolResponse(answers)) => self.take_responses(answers, now),
            Ok(ClientFrame::Context { system, tools }) => self.change(system, tools.as_ref()),
        }
    }

    fn take_realtime(&mut self, part: Realtime, now: Instant) {
        match part {
            Realtime::Audio(samples, rate) => {
                self.simulation.state().report.audio_bytes += 2 * samples.len() as u64;
                if self.setup.detects_speech {
                    for event in self.speech_detector.process(&samples, rate) {
                        self.take_speech(event, now);
                    }
                } else {
                    self.speech_detector.skip(samples.len(), rate);
                }
            }
            Realtime::Video => {}
            Realtime::Text(text) => {
                self.simulation.state().report.heard(&text);
                self.take(Input::Text(text), now);
            }
            Realtime::AudioEnded if self.setup.detects_speech => {
                let event = self.speech_detector.end_stream();
                event.into_iter().for_each(|event| self.take_speech(event, now));
            }
            Realtime::ActivityStart if !self.setup.detects_speech => {
                let event = self.speech_detector.start_activity();
                event.into_iter().for_each(|event| self.take_speech(event, now));
            }
            Realtime::ActivityEnd if !self.setup.detects_speech => {
                let event = self.speech_detector.end_activity();
                event.into_iter().for_each(|event| self.take_speech(event, now));
            }
            Realtime::AudioEnded => self.refuse("audioStreamEnd is for automatic detection of speech"),
            Realtime::ActivityStart | Realtime::ActivityEnd => {
                self.refuse("activityStart and activityEnd are for detection of speech that is switched off");
            }
        }
    }

    fn take_speech(&mut self, event: SpeechEvent, now: Instant) {
        match event {
            SpeechEvent::Started(at) => {
                if self.setup.signals_speech {
                    self.send(&server_frame::voice_activity("ACTIVITY_START", at));
                }
                if self.may_interrupt() {
                    self.interrupt();
                }
            }
            SpeechEvent::Ended { at, length } => {
                if self.setup.signals_speech {
                    self.send(&server_frame::voice_activity("ACTIVITY_END", at));
                }
                self.last_speech = length;
                let spoken = format!("(speech, {:.1} s)", length.as_secs_f64());
                self.simulation.state().report.heard(&spoken);
                self.take(Input::Speech(length), now);
            }
        }
    }

    fn take_content(&mut self, turns: &[ContentTurn], is_complete: bool, now: Instant) {
        // Content interrupts what is being generated, whether it asks for something or not.
        if self.turn.is_some() {
            self.interrupt();
        }
        let last = turns.iter().rev().find(|said| !said.is_model).map(|said| said.text.clone());
        for said in turns.iter().filter(|said| !said.is_model) {
            self.simulation.state().report.heard(&said.text);
        }
        // The last text of the user is added with the turn that it starts.
        let asked =
            turns.iter().rposition(|said| !said.is_model).filter(|at| is_complete && at + 1 == turns.len());
        for (at, said) in turns.iter().enumerate() {
            if Some(at) != asked {
                self.conversation.add(said);
            }
        }
        if is_complete {
            let has_new = asked.is_some();
            let said = turns.iter().filter(|said| !said.is_model).map(|said| said.text.as_str());
            let all = said.collect::<Vec<_>>().join("\n");
            self.take(Input::Content { text: last.unwrap_or_default(), is_new: has_new, all }, now);
        } else {
            // What is told again and asks for nothing are turns that are over.
            self.conversation.position += turns.iter().filter(|said| said.is_model).count();
            self.offer_handle(now);
        }
    }

    fn change(&mut self, system: Option<Value>, tools: Option<&Value>) {
        if let Some(system) = system {
            self.setup.system = text_of(&system);
        }
        if let Some(tools) = tools
            && let Err(fault) = self.setup.declare(Some(tools))
        {
            self.refuse(&fault);
        }
    }
}
