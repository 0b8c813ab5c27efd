//! The model's end of a call: opened, lost, and opened again.

use quarterdeck_contracts::{LiveError, LiveInput, LiveSetup};
use quarterdeck_runtime::DeliveryReceipt;
use tokio::time::Instant;

use super::call::Call;
use super::ending::Over;
use super::speech::Owes;
use super::upstream::Next;

/// What the connection that is being opened was told.
#[derive(Debug, Default)]
pub(super) struct Retelling {
    /// Up to which note.
    last_note: u64,
    /// Up to which change of the journal.
    revision: u64,
    /// What the person had said in the present turn.
    present: String,
    with_handle: bool,
    asks: bool,
}

impl Call {
    /// Opens a connection to the model that knows what was said.
    pub(super) fn connect_model(&mut self) {
        let (notes, last_note) = self.notes.texts();
        let retold = self.journal.retell(self.upstream.name(), &notes, self.speech.owes_words());
        self.retelling = Retelling {
            last_note,
            revision: self.journal.revision(),
            present: if self.journal.is_open() { self.journal.present().to_owned() } else { String::new() },
            with_handle: retold.handle.is_some(),
            asks: retold.asks,
        };
        self.upstream.connect(LiveSetup {
            system: self.brief.system.clone(),
            tools: self.brief.tools.clone(),
            resume: retold.handle,
            history: retold.history,
            asks: retold.asks,
        });
        self.hurry();
    }

    pub(super) fn model_opened(&mut self) {
        let is_stale = self.journal.revision() != self.retelling.revision;
        // The older connection has gone on meanwhile, and the new one would answer what was answered. Another one is
        // opened in the next pause.
        if is_stale && self.upstream.is_connected() {
            self.upstream.reject();
            return self.hurry();
        }
        // The older one has said everything, and need not say that it was all.
        if self.upstream.is_connected() && self.journal.is_answered() {
            self.turn_complete();
        }
        // What may not have been sent on the older one comes back as undelivered.
        self.unsent.clear();
        self.upstream.accept();
        // It goes on from before these, and may ask for them again.
        self.forgettable.drain(..).for_each(DeliveryReceipt::forget);
        if let Some(told) = self.notes.told(self.retelling.last_note) {
            self.journal.noted(&told);
        }
        self.flights.forget_cancelled();
        self.notes.connected();
        self.speech.model_gone();
        self.speech.owes = match (self.retelling.asks, self.journal.is_open()) {
            (false, _) => Owes::Nothing,
            (true, false) => Owes::Words,
            (true, true) => Owes::Answer,
        };
        self.catch_up();
        let upstream = &mut self.upstream;
        let mic_is_on = &mut self.speech.mic_is_on;
        self.echo.drain(|audio| {
            upstream.send(LiveInput::Audio(audio));
            // This one must be told as well when no more comes.
            *mic_is_on = true;
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

    /// Tells a connection what has happened since it was asked for, while nobody was there to hear it.
    fn catch_up(&mut self) {
        let told = std::mem::take(&mut self.retelling.present);
        if !self.journal.is_open() {
            // The person does not want to know any more.
            if !told.is_empty() && !self.journal.is_answered() {
                self.upstream.send(LiveInput::Interrupt { heard: None });
                self.speech.owes = Owes::Nothing;
                self.speech.cuts.hush(false);
            }
            return;
        }
        let present = self.journal.present();
        let new = present.strip_prefix(&told).unwrap_or(present).trim_start().to_owned();
        if !new.is_empty() {
            self.speech.cuts.written(false, self.retelling.asks);
            let is_sent = self.upstream.send(LiveInput::Text(&new));
            self.speech.asked(is_sent);
        }
    }

    pub(super) fn model_lost(&mut self, error: LiveError) {
        tracing::warn!(
            session = self.session.id(), model = error.model, code = error.code, error = %error, "the model was lost"
        );
        self.unsent.clear();
        // Everything was said; only the word that it was all is missing.
        if self.journal.is_answered() {
            self.turn_complete();
        }
        self.speech.model_gone();
        self.keep_journal();
        if !self.upstream.is_connecting() {
            let next = self.upstream.after_loss(&error, self.retelling.with_handle, Instant::now());
            self.go_on(next, error);
        } else if self.journal.revision() != self.retelling.revision {
            // The one that is being opened does not know what this one has said since, and would say it again.
            self.connect_model();
        }
    }

    pub(super) fn model_not_opened(&mut self, error: LiveError) {
        tracing::warn!(
            session = self.session.id(), model = error.model, code = error.code, error = %error,
            "the model could not be reached"
        );
        let next = self.upstream.after_failure(&error, self.retelling.with_handle, Instant::now());
        self.go_on(next, error);
    }

    fn go_on(&mut self, next: Next, error: LiveError) {
        match next {
            Next::Now => self.connect_model(),
            Next::Later => self.hurry(),
            Next::WithoutHandle => {
                self.journal.forget_handle();
                self.connect_model();
            }
            Next::GiveUp => self.over = Some(Over::Failed(error)),
        }
    }
}
