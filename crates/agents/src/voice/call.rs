//! One call: the task that drives its state machine between the client's link and the provider's.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use quarterdeck_contracts::telemetry::Span;
use quarterdeck_contracts::{Audio, ConfirmationAnswer, LiveEvent, LiveInput};
use quarterdeck_runtime::{
    ClientEvent, ConfirmationDecision, Connection, DecisionSource, HeardReceipt, PendingEnd, Reply, Session,
    SpokenWords,
};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Sleep};

use super::VoiceCore;
use super::active_calls::{ActiveCall, CallCommand};
use super::answers::Answers;
use super::backpressure::{Backpressure, is_congested};
use super::journal::{self, Journal};
use super::link::{ClientLink, ClientMessage, CloseReason, Disconnect, ServerMessage};
use super::open::OpenedSession;
use super::provider_link::{ProviderEvent, ProviderLink};
use super::question_tasks::QuestionEvent;
use super::session::RuntimeSession;
use super::spans;
use super::state::{CallIdentity, CallStart, CallState, Input, Output, ProviderOutput, SpokenReply};
use super::tasks::{
    BatchEvent, BatchReply, CallTasks, ResolvedConfirmation, follow_batch, resolve_confirmation,
};
use super::transcript::SpokenTranscript;
use crate::prompt::ToldTime;
use crate::text::User;
use crate::transcripts;

pub(super) struct Call {
    pub(super) core: Arc<VoiceCore>,
    pub(super) session: Session,
    events: Connection,
    pub(super) client: Option<Box<dyn ClientLink>>,
    /// What it is told from outside.
    pub(super) incoming: mpsc::Receiver<CallCommand>,
    pub(super) active: ActiveCall,
    pub(super) provider: ProviderLink,
    /// Whether the provider was polled first the last time; the two links take turns.
    polled_provider_first: bool,
    tasks: CallTasks,
    answers: Answers,
    pub(super) records: CallRecords,
    stopping: watch::Receiver<Option<Instant>>,
    timer: Pin<Box<Sleep>>,
    backpressure: Backpressure,
    pub(super) state: CallState<RuntimeSession>,
}

/// What operators get of the call, where they want it.
#[derive(Default)]
pub(super) struct CallRecords {
    pub(super) transcript: SpokenTranscript,
    /// The span of the provider's outage, while there is one.
    outage: Span,
}

/// What a call was woken by.
enum Wake {
    Client(Result<(), Disconnect>),
    Command(Option<CallCommand>),
    Provider(ProviderEvent),
    Session(Option<ClientEvent>),
    Batch(BatchEvent),
    Confirmation(ResolvedConfirmation),
    Question(QuestionEvent),
    Stopping,
    Timer,
    /// The client has taken enough of what was queued for it: the provider may be read again.
    ClientCaughtUp,
}

impl Call {
    pub(super) fn new(
        core: Arc<VoiceCore>,
        user: &User,
        opened: OpenedSession,
        client: Box<dyn ClientLink>,
        (incoming, active): (mpsc::Receiver<CallCommand>, ActiveCall),
    ) -> Self {
        let OpenedSession { session, journal, is_resumed, pending_request } = opened;
        let brief = core.briefing.brief(&core.orchestrator, &session, &user.situation, ToldTime::Now);
        let (system_tokens, tool_tokens) = (brief.system_tokens, brief.tool_tokens);
        tracing::info!(session = session.id(), system_tokens, tool_tokens, "session started");
        let (system, tools) = (system_tokens as u64, tool_tokens as u64);
        core.orchestrator.metrics().context(system, tools, system + tools, 0);
        let stopping = core.stopping.subscribe();
        let start = CallStart {
            settings: core.settings.clone(),
            model: core.model.name().into(),
            relies_on_ear: core.model.relies_on_ear(),
            journal,
            is_resumed,
            pending_request,
            spoken: core.spoken_questions(user),
            stop_deadline: *stopping.borrow(),
        };
        let machine_session = RuntimeSession::new(core.clone(), session.clone(), brief.describes);
        let state = CallState::new(start, machine_session, Instant::now());
        let (locale, tracer) =
            (user.situation.locale.clone(), spans::conversation_tracer(core.orchestrator.tracer(), &session));
        Self {
            events: session.connect(),
            provider: ProviderLink::new(core.model.clone(), brief, locale, tracer),
            timer: Box::pin(tokio::time::sleep_until(state.next_tick())),
            core,
            session,
            client: Some(client),
            incoming,
            active,
            polled_provider_first: false,
            tasks: CallTasks::default(),
            answers: Answers::default(),
            records: CallRecords::default(),
            stopping,
            backpressure: Backpressure::default(),
            state,
        }
    }

    /// Goes on until the call is over.
    pub(super) async fn run(mut self) {
        self.perform_outputs();
        while !self.state.is_ended() {
            let wake = self.wait().await;
            self.handle(wake);
            self.perform_outputs();
            if self.state.has_notes() {
                self.feed(Input::BatchDone);
            }
            self.flush_now().await;
            self.set_timer();
        }
        self.finish().await;
    }

    async fn wait(&mut self) -> Wake {
        let may_read = self.backpressure.may_read(self.client.as_mut(), self.session.id());
        let Self { client, incoming, provider, polled_provider_first, events, tasks, .. } = self;
        let CallTasks { batches, confirmations, question } = tasks;
        let (stopping, timer) = (&mut self.stopping, &mut self.timer);
        tokio::select! {
            wake = poll_fn(|context| poll_links(client, provider, may_read, polled_provider_first, context)) => wake,
            event = events.next_event() => Wake::Session(event),
            Some(event) = batches.next(), if !batches.is_empty() => Wake::Batch(event),
            Some(resolved) = confirmations.next(), if !confirmations.is_empty() => Wake::Confirmation(resolved),
            event = question.next(may_read) => Wake::Question(event),
            command = incoming.recv() => Wake::Command(command),
            Ok(()) = stopping.changed() => Wake::Stopping,
            () = timer => Wake::Timer,
        }
    }

    fn handle(&mut self, wake: Wake) {
        match wake {
            Wake::Client(Ok(())) => self.receive_from_client(),
            Wake::Client(Err(disconnect)) => {
                self.drop_client(&disconnect);
                self.feed(Input::ClientLost);
            }
            Wake::Command(Some(CallCommand::Link(link))) => self.attach_client(link),
            Wake::Command(Some(CallCommand::HandOver(done))) => {
                self.active.handing_over = Some(done);
                self.feed(Input::HandedOver);
            }
            Wake::Session(None) if self.session.is_lost() => self.feed(Input::HandedOver),
            Wake::Session(None) | Wake::Command(None) => self.feed(Input::SessionReplaced),
            Wake::Provider(event) => self.on_provider(event),
            Wake::Session(Some(event)) => {
                let input = self.session_input(event);
                self.feed(input);
            }
            Wake::Batch(BatchEvent::Reply(reply)) => self.on_reply(reply),
            Wake::Batch(BatchEvent::LongWait { calls }) => self.feed(Input::LongWait { calls }),
            Wake::Confirmation(ResolvedConfirmation { token, answer }) => {
                let answer = answer.map(|answer| self.answers.hold(answer));
                self.feed(Input::ConfirmationResolved { token, answer });
            }
            Wake::Question(event) => self.on_question_event(event),
            Wake::Stopping => {
                let deadline = *self.stopping.borrow_and_update();
                if let Some(deadline) = deadline {
                    self.feed(Input::ServerStopping { deadline });
                }
            }
            Wake::Timer if Instant::now() >= self.state.next_tick() => self.feed(Input::Tick),
            Wake::Timer | Wake::ClientCaughtUp => {}
        }
    }

    /// Gives the machine an input and does what it wants done.
    fn feed(&mut self, input: Input<'_>) {
        self.state.on(input, Instant::now());
        self.perform_outputs();
    }

    fn perform_outputs(&mut self) {
        while let Some(output) = self.state.pop_output() {
            self.perform(output);
        }
    }

    fn perform(&mut self, output: Output) {
        match output {
            Output::Client(message) => {
                let Some(client) = &mut self.client else { return };
                client.send(message.as_message(CallIdentity {
                    session_id: self.session.id(),
                    tools_version: self.session.snapshot().version(),
                    provider: self.provider.name(),
                    speaks: self.provider.speaks(),
                }));
            }
            Output::DropClientAudio => {
                self.client.as_mut().map(|client| client.drop_audio(0));
            }
            Output::PingClient => self.client.iter_mut().for_each(|client| client.ping()),
            Output::DetachClient => self.drop_client(&Disconnect::Lost),
            Output::Provider(message) => self.send_provider(&message),
            Output::ReplayInputAudio => {
                let provider = &mut self.provider;
                self.state.drain_input_audio(|audio| provider.send(LiveInput::Audio(audio)));
            }
            Output::Connect(replay) => self.provider.connect(replay),
            Output::AcceptConnection => self.provider.accept(),
            Output::RejectConnection => self.provider.reject(),
            Output::Submit { calls, requested, generation } => {
                self.tasks.batches.push(follow_batch(self.events.submit(calls), requested, generation));
            }
            Output::ResolveConfirmation { token, answer, spoken } => {
                let decision = self.decision(answer, spoken);
                self.tasks.confirmations.push(resolve_confirmation(self.session.clone(), token, decision));
            }
            Output::SpeakQuestion { number, text, language } => {
                self.tasks.question.speak(&self.core.engines, number, text, language);
            }
            Output::TranscribeAnswer { number, samples, language } => {
                self.tasks.question.transcribe(&self.core.engines, number, samples, language);
            }
            Output::StopQuestion => self.tasks.question.stop(),
            Output::SendHeldAudio(samples) => self.provider.send(LiveInput::Audio(pcm(&samples))),
            Output::DeliverAnswer(id) => self.answers.deliver(id),
            Output::ReturnAnswer(id) => self.answers.give_back(id),
            Output::SettleReceipts => self.answers.settle_receipts(),
            Output::ForgetReceipts => self.answers.forget_receipts(),
            Output::StoreJournal => store_journal(&self.core, &self.session, self.state.journal()),
            Output::ReportLatency(latency) => {
                self.core.orchestrator.metrics().record_first_audio(self.provider.name(), latency);
                let tracer = self.core.orchestrator.tracer();
                spans::record_first_audio(tracer, &self.session, self.provider.name(), latency);
            }
            Output::RecordTurn(turn) => {
                self.records.transcript.record(&self.core.orchestrator, &self.session, turn);
            }
            Output::AmendTurn(words) => {
                self.records.transcript.amend(&self.core.orchestrator, &self.session, &words);
            }
            Output::ReportHeard(receipt) => self.record_heard(receipt),
        }
    }

    fn send_provider(&mut self, message: &ProviderOutput) {
        if let ProviderOutput::Result { id, name, response, .. } = message {
            self.records.transcript.add_call(&self.session, id.as_deref(), name, response);
        }
        self.provider.send(message.as_input());
    }

    pub(super) fn record_heard(&self, receipt: HeardReceipt) {
        self.session.record_heard(receipt);
        transcripts::record_heard(&self.core.orchestrator, &self.session, receipt);
    }

    /// Handles everything that has arrived from the client. Audio goes straight to the provider.
    fn receive_from_client(&mut self) {
        while !self.state.is_ended() {
            let Some(client) = &mut self.client else { return };
            match client.next() {
                None => return,
                Some(ClientMessage::Audio(audio)) => {
                    if self.state.on_client_audio(&audio, Instant::now()) {
                        self.provider.send(LiveInput::Audio(audio));
                    }
                    self.perform_outputs();
                }
                Some(message) => {
                    self.state.on(Input::Client(message), Instant::now());
                    self.perform_outputs();
                }
            }
        }
    }

    /// Handles everything that has arrived from the provider. Audio goes straight to the client.
    fn receive_from_provider(&mut self) {
        let now = Instant::now();
        while !self.state.is_ended() {
            let Some(live) = self.provider.live() else { return };
            let mut event = match live.next() {
                None => return,
                Some(LiveEvent::Audio(audio)) => {
                    if self.state.admit_model_audio(&audio, now)
                        && let Some(client) = &mut self.client
                    {
                        client.send(ServerMessage::Audio(audio));
                    }
                    continue;
                }
                Some(event) => event.into_owned(),
            };
            self.provider.restore_names(&mut event);
            self.report(&event);
            self.feed(Input::Provider(event));
        }
    }

    /// What of a provider's event is for the operator.
    fn report(&self, event: &LiveEvent<'_>) {
        let (session, model) = (self.session.id(), self.provider.name());
        match event {
            LiveEvent::GoingAway { left } => {
                let left_ms = left.map(|left| left.as_millis() as u64);
                tracing::info!(session, model, left_ms, "provider closes the connection soon");
            }
            LiveEvent::Warning(what) => tracing::warn!(session, model, what, "provider warning"),
            LiveEvent::Usage(usage) => {
                let (system, tools, window) = self.provider.token_budget();
                let used = usage.input_tokens + usage.output_tokens;
                self.core.orchestrator.metrics().context(system, tools, used, window);
            }
            _ => {}
        }
    }

    fn on_provider(&mut self, event: ProviderEvent) {
        let session = self.session.id();
        match event {
            ProviderEvent::Received => self.receive_from_provider(),
            ProviderEvent::Opened => {
                let generation = self.state.generation();
                self.feed(Input::ProviderOpened);
                if self.state.generation() == generation {
                    return;
                }
                if generation > 0 {
                    let model = self.provider.name();
                    tracing::info!(session = self.session.id(), model, "provider connection restored");
                    self.records.outage = Span::none();
                }
                self.receive_from_provider();
                self.feed(Input::ProviderCaughtUp);
            }
            ProviderEvent::Lost(error) => {
                tracing::warn!(
                    session, model = error.model, code = error.code, error = %error,
                    "provider connection lost, reconnecting"
                );
                let (tracer, code) = (self.core.orchestrator.tracer(), format!("{:?}", error.kind));
                self.records.outage = spans::begin_reconnect(tracer, &self.session, &error.model, code);
                self.feed(Input::ProviderLost(error));
            }
            ProviderEvent::Unreachable(error) => {
                tracing::warn!(
                    session, model = error.model, code = error.code, error = %error, "provider connection failed"
                );
                self.feed(Input::ProviderUnreachable(error));
            }
        }
    }

    /// How a decision was given, with the time by the session's clock at which the words of a spoken one began.
    fn decision(&self, answer: ConfirmationAnswer, spoken: Option<SpokenReply>) -> ConfirmationDecision {
        let Some(SpokenReply { transcript, confidence, code, began_at }) = spoken else {
            return answer.into();
        };
        let now = self.core.orchestrator.now();
        let heard_at = now.checked_sub(began_at.elapsed()).unwrap_or(now);
        let words = SpokenWords { transcript, confidence, heard_at, code };
        ConfirmationDecision::new(answer, DecisionSource::Spoken(words))
    }

    fn on_question_event(&mut self, event: QuestionEvent) {
        let session = self.session.id();
        match event {
            QuestionEvent::Speech(number, samples) => {
                let audio = pcm(&samples);
                if self.state.admit_question_audio(number, &audio, Instant::now())
                    && let Some(client) = &mut self.client
                {
                    client.send(ServerMessage::Audio(audio));
                }
            }
            QuestionEvent::Spoken(number) => self.feed(Input::QuestionSpoken { number }),
            QuestionEvent::Failed(number, error) => {
                tracing::warn!(session, error = %error, "question could not be spoken, the page asks alone");
                self.feed(Input::QuestionFailed { number });
            }
            QuestionEvent::Transcribed(number, result) => {
                if let Err(error) = &result {
                    tracing::warn!(session, error = %error, "spoken answer could not be transcribed");
                }
                self.feed(Input::AnswerTranscribed { number, transcript: result.ok() });
            }
        }
    }

    fn on_reply(&mut self, reply: BatchReply) {
        let BatchReply { call, reply, generation, is_last } = reply;
        let answer = match reply {
            Reply::Answer(answer) => Some(self.answers.hold(answer)),
            // In voice a call is answered first and confirmed later.
            Reply::AwaitingConfirmation { .. } => {
                tracing::error!(
                    session = self.session.id(),
                    tool = call.name,
                    "voice call waits for a confirmation"
                );
                None
            }
        };
        self.feed(Input::CallCompleted { call, answer, generation, is_last });
    }

    fn session_input(&mut self, event: ClientEvent) -> Input<'static> {
        match event {
            ClientEvent::Message(value) => Input::ToolMessage(value),
            ClientEvent::Progress { call_id, text } => Input::Progress { call_id, text },
            ClientEvent::Partial { call_id, response } => Input::Partial { call_id, response },
            ClientEvent::Confirmation { call_id, request } => {
                Input::ConfirmationRequested { call_id, request }
            }
            ClientEvent::Answer { reason, answer } => {
                Input::LateAnswer { reason, answer: self.answers.hold(answer) }
            }
            ClientEvent::End(end) => Input::SessionEnded(end),
            // Only written conversations get it: a call ends.
            ClientEvent::Blocked { message } => Input::SessionEnded(PendingEnd {
                closing_message: Some(message.to_string()),
                ..PendingEnd::with_reason("blocked")
            }),
        }
    }

    fn attach_client(&mut self, link: Box<dyn ClientLink>) {
        if let Some(older) = self.client.replace(link) {
            tokio::spawn(older.close(CloseReason::TakenOver));
        }
        self.active.set_connected(true);
        self.backpressure.reset();
        self.session.warn_if_tools_changed(&self.core.registry);
        self.feed(Input::ClientAttached);
    }

    fn drop_client(&mut self, disconnect: &Disconnect) {
        tracing::info!(session = self.session.id(), reason = ?disconnect, "client link lost");
        if let Some(client) = self.client.take()
            && let Disconnect::Rejected(_) = disconnect
        {
            tokio::spawn(client.close(CloseReason::Refused));
        }
        self.active.set_connected(false);
        self.backpressure.reset();
    }

    /// Sends what can be sent at once, on both links.
    async fn flush_now(&mut self) {
        let Self { client, provider, .. } = self;
        poll_fn(|context| {
            if let Some(client) = client {
                // An error comes up again where the link is waited for.
                let _ = client.poll_flush(context);
            }
            provider.flush_now(context);
            Poll::Ready(())
        })
        .await;
        if self.provider.is_flushed() {
            self.answers.deliver_to_model(self.state.take_sent_answers());
        }
    }

    fn set_timer(&mut self) {
        let next_tick = self.state.next_tick();
        let at = self.backpressure.stalls_at().map_or(next_tick, |at| at.min(next_tick));
        if self.timer.deadline() != at {
            self.timer.as_mut().reset(at);
        }
    }
}

/// Queues the journal for the store, so that a restart loses nothing of it.
fn store_journal(core: &VoiceCore, session: &Session, journal: &Journal) {
    session.store_soon(journal::put(session.id(), journal, core.expiry_ms()));
}

/// Samples as they travel.
fn pcm(samples: &[i16]) -> Audio<'static> {
    Audio::Pcm(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<_>>().into())
}

/// Waits for both links, each in its turn first.
fn poll_links(
    client: &mut Option<Box<dyn ClientLink>>,
    provider: &mut ProviderLink,
    may_read: bool,
    provider_first: &mut bool,
    context: &mut Context<'_>,
) -> Poll<Wake> {
    *provider_first = !*provider_first;
    let mut poll_provider = |context: &mut Context<'_>| provider.poll(context, may_read).map(Wake::Provider);
    if *provider_first && let Poll::Ready(wake) = poll_provider(context) {
        return Poll::Ready(wake);
    }
    if let Some(client) = client {
        if client.queued_bytes() > 0 {
            if let Poll::Ready(Err(disconnect)) = client.poll_flush(context) {
                return Poll::Ready(Wake::Client(Err(disconnect)));
            }
            if !may_read && !is_congested(&**client) {
                return Poll::Ready(Wake::ClientCaughtUp);
            }
        }
        if let Poll::Ready(filled) = client.poll_fill(context) {
            return Poll::Ready(Wake::Client(filled));
        }
    }
    if !*provider_first && let Poll::Ready(wake) = poll_provider(context) {
        return Poll::Ready(wake);
    }
    Poll::Pending
}
