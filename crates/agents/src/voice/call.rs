//! One call: a task with two ends that waits for whatever happens first.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use quarterdeck_contracts::ConfirmationRequest;
use quarterdeck_runtime::{Answer, ClientEvent, Connection, DeliveryReceipt, Session};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::Inner;
use super::clock::Clock;
use super::echo::Echo;
use super::ending::{Farewell, Over};
use super::flights::{Flights, Landed};
use super::from_person::Decided;
use super::journal::{self, Journal};
use super::line::{ClientLink, Disconnect, ServerMessage};
use super::missed::Missed;
use super::missed::Shown;
use super::model_end::Retelling;
use super::notes::Notes;
use super::open::Opened;
use super::seat::Seat;
use super::speech::Speech;
use super::upstream::{News, Upstream};
use crate::briefing::Brief;
use crate::text::User;

/// How many writes are kept in mind that a model may forget. No turn has so many.
const MOST_FORGETTABLE: usize = 64;

/// Waits for a person's word to be carried out.
type Errand = Pin<Box<dyn Future<Output = Decided> + Send>>;

/// One call.
pub(super) struct Call {
    pub(super) agent: Arc<Inner>,
    pub(super) session: Session,
    pub(super) connection: Connection,
    pub(super) line: Option<Box<dyn ClientLink>>,
    pub(super) lines: mpsc::Receiver<Box<dyn ClientLink>>,
    pub(super) seat: Seat,
    pub(super) upstream: Upstream,
    pub(super) brief: Brief,
    pub(super) journal: Journal,
    pub(super) echo: Echo,
    pub(super) flights: Flights,
    /// Answers that were put in line and may not have been sent.
    pub(super) unsent: Vec<Answer>,
    /// Writes that the model was told of and would forget if it were resumed from its last handle.
    pub(super) forgettable: Vec<DeliveryReceipt>,
    pub(super) errands: FuturesUnordered<Errand>,
    pub(super) speech: Speech,
    /// What the model must be told as soon as it can listen.
    pub(super) notes: Notes,
    pub(super) retelling: Retelling,
    pub(super) questions: Vec<(Arc<str>, ConfirmationRequest)>,
    /// Calls whose results the page has.
    pub(super) shown: Shown,
    /// Counts calls that came without an id.
    pub(super) nameless: u64,
    /// Guides that were given in this turn.
    pub(super) described: Vec<String>,
    pub(super) missed: Missed,
    pub(super) is_resumed: bool,
    pub(super) is_ready: bool,
    pub(super) leaving: watch::Receiver<Option<Instant>>,
    pub(super) clock: Clock,
    /// When an end comes that was asked for.
    pub(super) farewell: Option<Farewell>,
    pub(super) over: Option<Over>,
}

/// What a call was woken by.
enum Wake {
    ClientLink(Result<(), Disconnect>),
    Model(News),
    Event(Option<ClientEvent>),
    Landed(Landed),
    Errand(Decided),
    NewLine(Option<Box<dyn ClientLink>>),
    Leaving,
    Alarm,
}

impl Call {
    pub(super) fn new(
        agent: Arc<Inner>,
        user: &User,
        opened: Opened,
        line: Box<dyn ClientLink>,
        lines: mpsc::Receiver<Box<dyn ClientLink>>,
        seat: Seat,
    ) -> Self {
        let Opened { session, journal, is_resumed, pending_request } = opened;
        let brief = agent.briefing.brief(&agent.orchestrator, &session, &user.situation);
        let (system_tokens, tool_tokens) = (brief.system_tokens, brief.tool_tokens);
        tracing::info!(session = session.id(), system_tokens, tool_tokens, "session started");
        let (system, tools) = (system_tokens as u64, tool_tokens as u64);
        agent.orchestrator.metrics().context(system, tools, system + tools, 0);
        let mut call = Self {
            brief,
            connection: session.connect(),
            upstream: Upstream::new(agent.model.clone()),
            leaving: agent.leaving.subscribe(),
            agent,
            session,
            line: Some(line),
            lines,
            seat,
            journal,
            echo: Echo::default(),
            flights: Flights::default(),
            unsent: Vec::new(),
            forgettable: Vec::new(),
            errands: FuturesUnordered::new(),
            speech: Speech::default(),
            notes: Notes::default(),
            retelling: Retelling::default(),
            questions: Vec::new(),
            shown: Shown::default(),
            nameless: 0,
            described: Vec::new(),
            missed: Missed::default(),
            is_resumed,
            is_ready: false,
            clock: Clock::new(),
            farewell: None,
            over: None,
        };
        call.speech.follow(&call.session.state());
        if let Some(request) = pending_request {
            call.sign_of_input();
            call.journal.written(&request);
        }
        call
    }

    /// Goes on until the call is over.
    pub(super) async fn run(mut self) {
        self.connect_model();
        while self.over.is_none() {
            let wake = self.wait().await;
            self.wake(wake);
            self.send_notes();
            self.flush_now().await;
        }
        self.finish().await;
    }

    async fn wait(&mut self) -> Wake {
        let may_read = self.may_read_model();
        let Self { line, lines, upstream, connection, flights, errands, leaving, clock, .. } = self;
        let Clock { alarm, model_first, .. } = clock;
        tokio::select! {
            wake = poll_fn(|context| poll_ends(line, upstream, may_read, model_first, context)) => wake,
            event = connection.next_event() => Wake::Event(event),
            landed = poll_fn(|context| flights.poll_landed(context)), if !flights.is_empty() => Wake::Landed(landed),
            Some(decided) = errands.next(), if !errands.is_empty() => Wake::Errand(decided),
            line = lines.recv() => Wake::NewLine(line),
            Ok(()) = leaving.changed() => Wake::Leaving,
            () = alarm => Wake::Alarm,
        }
    }

    fn wake(&mut self, wake: Wake) {
        match wake {
            Wake::ClientLink(Ok(())) => self.hear_person(),
            Wake::ClientLink(Err(gone)) => self.park(&gone),
            Wake::Model(News::Arrived) => self.hear_model(),
            Wake::Model(News::Opened) => self.model_opened(),
            Wake::Model(News::Lost(error)) => self.model_lost(error),
            Wake::Model(News::NotOpened(error)) => self.model_not_opened(error),
            Wake::Event(Some(event)) => self.session_says(event),
            // Another connection has taken the session over, which only a second call of it can do.
            Wake::Event(None) | Wake::NewLine(None) => self.over = Some(Over::Replaced),
            Wake::Landed(landed) => self.landed(landed),
            Wake::Errand(decided) => self.decided(decided),
            Wake::NewLine(Some(line)) => self.attach(line),
            Wake::Leaving => self.tell_leaving(),
            Wake::Alarm => self.look_at_the_clock(),
        }
    }

    /// Tells the page something, now or when it is back.
    pub(super) fn tell(&mut self, told: ServerMessage<'_>) {
        match &mut self.line {
            Some(line) => line.send(told),
            None => self.missed.keep(&told),
        }
    }

    /// Keeps what was said, so that a restart loses nothing of it.
    pub(super) fn keep_journal(&self) {
        let commit = journal::keep(self.session.id(), &self.journal, self.agent.expiry_ms());
        if let Err(error) = self.agent.orchestrator.store().queue(commit) {
            tracing::warn!(session = self.session.id(), error = %error, "what was said waits to be stored");
        }
    }

    /// Sends what can be sent at once, on both ends.
    async fn flush_now(&mut self) {
        let Self { line, upstream, .. } = self;
        poll_fn(|context| {
            if let Some(line) = line {
                // An error comes up again where the line is waited for.
                let _ = line.poll_flush(context);
            }
            upstream.flush_now(context);
            Poll::Ready(())
        })
        .await;
        if self.upstream.is_flushed() {
            let sent = self.unsent.drain(..).map(Answer::into_receipt);
            self.forgettable.extend(sent.filter(DeliveryReceipt::is_write));
            let surplus = self.forgettable.len().saturating_sub(MOST_FORGETTABLE);
            self.forgettable.drain(..surplus);
        }
    }
}

/// Waits for both ends, each in its turn first.
fn poll_ends(
    line: &mut Option<Box<dyn ClientLink>>,
    upstream: &mut Upstream,
    may_read: bool,
    model_first: &mut bool,
    context: &mut Context<'_>,
) -> Poll<Wake> {
    *model_first = !*model_first;
    let mut poll_model = |context: &mut Context<'_>| upstream.poll(context, may_read).map(Wake::Model);
    if *model_first && let Poll::Ready(wake) = poll_model(context) {
        return Poll::Ready(wake);
    }
    if let Some(line) = line {
        if line.queued_bytes() > 0
            && let Poll::Ready(Err(gone)) = line.poll_flush(context)
        {
            return Poll::Ready(Wake::ClientLink(Err(gone)));
        }
        if let Poll::Ready(filled) = line.poll_fill(context) {
            return Poll::Ready(Wake::ClientLink(filled));
        }
    }
    if !*model_first && let Poll::Ready(wake) = poll_model(context) {
        return Poll::Ready(wake);
    }
    Poll::Pending
}
