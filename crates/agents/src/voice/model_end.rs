//! The model's end of a call: opened, lost, and opened again.

use quarterdeck_contracts::{LiveError, LiveInput, LiveOpening};
use tokio::time::Instant;

use super::call::Call;
use super::ending::Over;
use super::upstream::Next;

impl Call {
    /// Opens a connection to the model that knows what was said.
    pub(super) fn connect_model(&mut self) {
        let notes = self.notes.texts();
        let retold = self.journal.retell(self.upstream.name(), &notes);
        (self.retold, self.retold_open) = (notes.len(), self.journal.is_open());
        (self.with_handle, self.retold_asks) = (retold.handle.is_some(), retold.asks);
        self.upstream.connect(LiveOpening {
            system: self.brief.system.clone(),
            tools: self.brief.tools.clone(),
            resume: retold.handle,
            history: retold.history,
            asks: retold.asks,
        });
        self.hurry();
    }

    pub(super) fn model_opened(&mut self) {
        if let Some(told) = self.notes.told(self.retold) {
            self.journal.noted(&told);
        }
        self.flights.forget_cancelled();
        // It was asked something in the opening. In a call that was resumed nobody has begun a turn for that, and what
        // else it must know would cut its answer off.
        self.speech.is_answering |= self.retold_asks && !self.speech.is_turn_open;
        // Somebody may have spoken to the old connection while this one was opened.
        if self.journal.is_open() && !self.retold_open {
            let retold = self.journal.retell("", &[]);
            if let Some(last) = retold.history.last() {
                self.upstream.send(LiveInput::Text(&last.text));
            }
        }
        let upstream = &mut self.upstream;
        self.echo.drain(|audio| {
            upstream.send(LiveInput::Audio(audio));
        });
        self.hear_model();
        if !std::mem::replace(&mut self.is_ready, true) {
            self.greet();
        } else {
            tracing::info!(
                session = self.session.id(),
                model = self.upstream.name(),
                connection = self.upstream.generation(),
                "the model is back"
            );
        }
    }

    pub(super) fn model_lost(&mut self, error: &LiveError) {
        tracing::warn!(
            session = self.session.id(), model = error.model, code = error.code, error = %error, "the model was lost"
        );
        // What may not have arrived comes back as undelivered, and is told to the next connection.
        self.unsent.clear();
        // Everything was said; only the word that it was all is missing.
        if self.journal.is_answered() {
            self.turn_complete();
        }
        self.speech.is_answering = false;
        self.keep_journal();
        if !self.upstream.is_connecting() {
            self.connect_model();
        }
    }

    pub(super) fn model_not_opened(&mut self, error: LiveError) {
        tracing::warn!(
            session = self.session.id(), model = error.model, code = error.code, error = %error,
            "the model could not be reached"
        );
        match self.upstream.after_failure(&error, self.with_handle, Instant::now()) {
            Next::Later => self.hurry(),
            Next::WithoutHandle => {
                self.journal.forget_handle();
                self.connect_model();
            }
            Next::GiveUp => self.over = Some(Over::Failed(error)),
        }
    }
}
