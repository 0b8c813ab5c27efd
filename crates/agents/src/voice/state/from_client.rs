//! What the person's page sends, and what comes of it.

use std::time::Duration;

use quarterdeck_contracts::{
    ConfirmationAnswer, ConfirmationRequest, ErrorType, LiveInput, Outcome, Speaker, ToolError,
};
use quarterdeck_runtime::{Answer, PendingEnd};

use super::call::Call;
use super::ending::Over;
use super::line::{ClientMessage, ServerMessage};
use crate::note::format_notes;

/// How many of a person's words are carried out at a time.
const MOST_ERRANDS: usize = 16;
/// How soon a call ends whose farewell was cut off.
const AFTER_CUT: Duration = Duration::from_secs(1);

/// What the page wants that is not audio.
enum Wish {
    Say(String),
    Confirm(String, ConfirmationAnswer),
    Drained,
    Hush,
    Stop,
    Nothing,
}

impl Call {
    /// Looks at everything that has arrived from the page.
    pub(super) fn hear_person(&mut self) {
        loop {
            let Some(line) = &mut self.line else { return };
            let wish = match line.next() {
                None => return,
                Some(ClientMessage::Audio(audio)) => {
                    self.echo.push(&audio);
                    self.upstream.send(LiveInput::Audio(audio));
                    (self.speech.mic_moved, self.speech.mic_is_on) = (true, true);
                    continue;
                }
                Some(ClientMessage::Text(text)) => Wish::Say(text.to_owned()),
                Some(ClientMessage::Confirm { token, is_approved }) => {
                    let answer =
                        if is_approved { ConfirmationAnswer::Approve } else { ConfirmationAnswer::Deny };
                    Wish::Confirm(token.to_owned(), answer)
                }
                Some(ClientMessage::Drained) => Wish::Drained,
                Some(ClientMessage::Interrupt) => Wish::Hush,
                Some(ClientMessage::Stop) => Wish::Stop,
                Some(ClientMessage::KeepAlive) => Wish::Nothing,
            };
            self.line_is_alive();
            self.grant(wish);
        }
    }

    fn grant(&mut self, wish: Wish) {
        match wish {
            Wish::Say(text) => self.say(&text),
            Wish::Confirm(token, answer) => self.confirm(token, answer),
            Wish::Drained => {
                self.speech.drained();
                self.end_if_heard();
            }
            Wish::Hush => self.hush(),
            Wish::Stop => self.over = Some(Over::Ended(PendingEnd::with_reason("user_hung_up"))),
            Wish::Nothing => {}
        }
    }

    /// The person writes instead of speaking.
    fn say(&mut self, text: &str) {
        let (was_speaking, was_awaited) = (self.speech.is_speaking(), self.speech.owes_words());
        if self.speech.is_answering {
            self.upstream.send(LiveInput::Interrupt { heard: None });
            self.cut_off();
        } else if !self.speech.unheard().is_zero() {
            // It has said everything, and faster than it is heard.
            self.upstream.send(LiveInput::Interrupt { heard: None });
            self.silence();
        }
        self.speech.cuts.written(was_speaking, was_awaited);
        self.sign_of_input();
        self.journal.written(text);
        self.tell(ServerMessage::Transcript { by: Speaker::User, text, is_final: true, is_late: false });
        // Without a connection it is in the journal, which the next one is told.
        let is_sent = self.upstream.send(LiveInput::Text(text));
        self.speech.asked(is_sent);
        self.keep_journal();
    }

    /// The person wants silence: what is on its way is thrown away, and the rest of the answer is not heard.
    fn hush(&mut self) {
        let was_speaking = self.speech.is_speaking();
        let was_about_to = self.speech.owes_words() || (self.speech.is_turn_open && self.journal.is_open());
        self.upstream.send(LiveInput::Interrupt { heard: None });
        self.cut_off();
        if (was_speaking || was_about_to) && self.upstream.is_connected() {
            self.speech.cuts.hush(was_speaking);
        }
    }

    /// An answer is cut off.
    pub(super) fn cut_off(&mut self) {
        self.silence();
        self.session.interrupt();
        self.journal.turn_over();
        self.speech.turn_over();
        let state = self.session.state();
        self.speech.follow(&state);
        self.keep_journal();
        // An end that was asked for is void now; one that nobody may undo comes all the same.
        match state.pending_end_voice_session {
            Some(_) => self.end_within(AFTER_CUT),
            None => self.farewell = None,
        }
    }

    /// What is on its way to the person, or waits to be heard, is not heard any more.
    pub(super) fn silence(&mut self) {
        if let Some(line) = &mut self.line {
            line.drop_audio(0);
        }
        self.tell(ServerMessage::Interrupted);
        self.speech.drained();
    }

    /// The first sign that the person says something begins a turn.
    pub(super) fn sign_of_input(&mut self) {
        if self.speech.is_turn_open {
            return;
        }
        self.speech.is_turn_open = true;
        self.described.clear();
        let start = self.session.begin_turn(None);
        // These belong in front of what the person is about to say, and the model is silent now.
        if !start.notes.is_empty() {
            let text = format_notes(&start.notes);
            self.journal.noted(&text);
            self.upstream.send(LiveInput::Note { text: &text, asks: false });
        }
    }

    /// The person's word about a call, which only the page can bring.
    fn confirm(&mut self, token: String, answer: ConfirmationAnswer) {
        if self.errands.len() >= MOST_ERRANDS {
            let error = ToolError::new(ErrorType::RateLimit, "One at a time, please. Try again in a moment.");
            return self.tell(ServerMessage::Error(&error));
        }
        let session = self.session.clone();
        let asked = token.clone();
        // In a task of its own: the word was given, whatever becomes of the call.
        let hearing = tokio::spawn(async move { session.resolve_confirmation(&asked, answer).await });
        self.errands.push(Box::pin(async move { Decided { token, answer: hearing.await.ok() } }));
    }

    /// The person's word was carried out, or was worth nothing.
    pub(super) fn decided(&mut self, decided: Decided) {
        let Some(answer) = decided.answer else { return };
        let failure = match &answer.response.outcome {
            Outcome::Failure(error) => Some(error.clone()),
            Outcome::Success(_) => None,
        };
        let is_open = failure.as_ref().is_some_and(|error| stays_open(error.kind));
        if !is_open {
            let is_this = |request: &ConfirmationRequest| {
                request.token.as_ref().is_some_and(|token| token.expose() == decided.token)
            };
            self.questions.retain(|(_, request)| !is_this(request));
        }
        // What came of a question is told by the session, to this page and any other. It says nothing of a word that was
        // worth nothing, or that could not be heard.
        if let Some(error) = failure.filter(|error| is_open || is_worthless(error.kind)) {
            self.tell(ServerMessage::Error(&error));
        }
        answer.mark_delivered();
        self.follow_state();
    }
}

/// What came of a person's word.
pub(super) struct Decided {
    token: String,
    answer: Option<Answer>,
}

fn is_worthless(kind: ErrorType) -> bool {
    matches!(kind, ErrorType::ConfirmationExpired | ErrorType::ConfirmationInvalid)
}

/// Whether the person may say it again.
fn stays_open(kind: ErrorType) -> bool {
    matches!(kind, ErrorType::RateLimit | ErrorType::Unavailable | ErrorType::Transient)
}
