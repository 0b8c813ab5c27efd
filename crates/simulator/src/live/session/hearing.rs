//! What a client sends.

use serde_json::Value;
use tokio::time::Instant;

use super::beginning::Input;
use super::{Out, Session};
use crate::live::client_frame::{ClientFrame, Realtime, Said, text_of};
use crate::live::ears::Sign;
use crate::live::server_frame;

impl Session {
    /// Takes what a client has sent.
    pub(in crate::live) fn hear(&mut self, frame: Result<ClientFrame, String>, now: Instant) {
        if self.is_over {
            return;
        }
        if self.opens_at.is_some() {
            self.fault("something was sent between setup and setupComplete");
            return;
        }
        match frame {
            Err(fault) => {
                self.fault(&fault);
                self.end(Out::Close(1007, fault));
            }
            Ok(ClientFrame::Setup(_)) => {
                self.fault("there is a second setup");
                self.end(Out::Close(1007, "setup must only be the first message".into()));
            }
            Ok(ClientFrame::Realtime(all)) => all.into_iter().for_each(|part| self.hear_part(part, now)),
            Ok(ClientFrame::Content { turns, is_complete }) => self.hear_content(&turns, is_complete, now),
            Ok(ClientFrame::Answers(answers)) => self.hear_answers(answers, now),
            Ok(ClientFrame::Context { system, tools }) => self.change(system, tools.as_ref()),
        }
    }

    fn hear_part(&mut self, part: Realtime, now: Instant) {
        match part {
            Realtime::Audio(samples, rate) => {
                self.desk.books().report.audio_bytes += 2 * samples.len() as u64;
                if self.setup.detects_speech {
                    for sign in self.ears.listen(&samples, rate) {
                        self.hear_sign(sign, now);
                    }
                } else {
                    self.ears.pass(samples.len(), rate);
                }
            }
            Realtime::Video => {}
            Realtime::Text(text) => {
                self.desk.books().report.heard(&text);
                self.take(Input::Text(text), now);
            }
            Realtime::AudioEnded if self.setup.detects_speech => {
                let sign = self.ears.stop();
                sign.into_iter().for_each(|sign| self.hear_sign(sign, now));
            }
            Realtime::ActivityStart if !self.setup.detects_speech => {
                let sign = self.ears.begin();
                sign.into_iter().for_each(|sign| self.hear_sign(sign, now));
            }
            Realtime::ActivityEnd if !self.setup.detects_speech => {
                let sign = self.ears.end_here();
                sign.into_iter().for_each(|sign| self.hear_sign(sign, now));
            }
            Realtime::AudioEnded => self.refuse("audioStreamEnd is for automatic detection of speech"),
            Realtime::ActivityStart | Realtime::ActivityEnd => {
                self.refuse("activityStart and activityEnd are for detection of speech that is switched off");
            }
        }
    }

    fn hear_sign(&mut self, sign: Sign, now: Instant) {
        match sign {
            Sign::Begins(at) => {
                if self.setup.signals_speech {
                    self.send(&server_frame::voice_activity("ACTIVITY_START", at));
                }
                if self.may_interrupt() {
                    self.interrupt();
                }
            }
            Sign::Ends { at, length } => {
                if self.setup.signals_speech {
                    self.send(&server_frame::voice_activity("ACTIVITY_END", at));
                }
                self.spoke_for = length;
                let spoken = format!("(speech, {:.1} s)", length.as_secs_f64());
                self.desk.books().report.heard(&spoken);
                self.take(Input::Speech(length), now);
            }
        }
    }

    fn hear_content(&mut self, turns: &[Said], is_complete: bool, now: Instant) {
        // Content interrupts what is being generated, whether it asks for something or not.
        if self.turn.is_some() {
            self.interrupt();
        }
        let last = turns.iter().rev().find(|said| !said.is_model).map(|said| said.text.clone());
        for said in turns.iter().filter(|said| !said.is_model) {
            self.desk.books().report.heard(&said.text);
        }
        // The last words of the person come back with the turn that they begin.
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
