//! One call: a task with two ends that waits for whatever happens first.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use quarterdeck_contracts::{ConfirmationRequest, LiveInput, LiveOpening};
use quarterdeck_runtime::{Answer, ClientEvent, Connection, Session};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Sleep};

use super::echo::Echo;
use super::ending::{Farewell, Over};
use super::flights::{Flights, Landed};
use super::journal::{self, Journal};
use super::line::{Gone, HangUp, Line, Told};
use super::missed::Missed;
use super::open::Opened;
use super::prepared::Prepared;
use super::speech::Speech;
use super::upstream::{News, Next, Upstream};
use super::{Inner, unavailable};
use crate::text::Visitor;

/// How often a call looks at the clock while something is under way, and while nothing is.
const SOON: Duration = Duration::from_millis(250);
const LATER: Duration = Duration::from_secs(1);
/// Past this much that waits for the page, the model is not listened to: it would only wait here instead.
const CONGESTED: usize = 64 << 10;
/// How long a page may take nothing before audio is thrown away for it, and how much of it is kept.
const STALLED: Duration = Duration::from_secs(1);
const KEPT_WHEN_STALLED: usize = 16 << 10;
/// After how long of silence a line is asked whether it is still there.
const PING_EVERY: Duration = Duration::from_secs(15);
/// How long before a provider closes its connection another one is opened at the latest.
const HANDOVER: Duration = Duration::from_secs(3);

/// Waits for a person's word to be carried out.
type Errand = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One call.
pub(super) struct Call {
    pub(super) agent: Arc<Inner>,
    pub(super) session: Session,
    pub(super) connection: Connection,
    pub(super) line: Option<Box<dyn Line>>,
    pub(super) lines: mpsc::Receiver<Box<dyn Line>>,
    pub(super) has_line: Arc<AtomicBool>,
    pub(super) upstream: Upstream,
    pub(super) prepared: Prepared,
    pub(super) journal: Journal,
    pub(super) echo: Echo,
    pub(super) flights: Flights,
    /// Answers that were put in line and may not have been sent.
    pub(super) unsent: Vec<Answer>,
    pub(super) errands: FuturesUnordered<Errand>,
    pub(super) speech: Speech,
    /// What the model must be told as soon as it can listen.
    pub(super) notes: Vec<String>,
    /// How many of them the connection that is being opened is told.
    retold: usize,
    /// Whether it is told what the person waits for.
    retold_open: bool,
    with_handle: bool,
    pub(super) questions: Vec<(Arc<str>, ConfirmationRequest)>,
    /// Guides that were given in this turn.
    pub(super) described: Vec<String>,
    missed: Missed,
    is_resumed: bool,
    is_ready: bool,
    leaving: watch::Receiver<Option<Instant>>,
    clock: Clock,
    /// When an end comes that was asked for.
    pub(super) farewell: Option<Farewell>,
    pub(super) over: Option<Over>,
}

/// When things happened that something is to be done about.
struct Clock {
    alarm: Pin<Box<Sleep>>,
    began: Instant,
    parked: Option<Instant>,
    line_seen: Instant,
    pinged: Instant,
    stalled: Option<(usize, Instant)>,
    model_first: bool,
}

/// What a call was woken by.
enum Wake {
    Line(Result<(), Gone>),
    Model(News),
    Event(Option<ClientEvent>),
    Landed(Landed),
    Errand(Answer),
    NewLine(Option<Box<dyn Line>>),
    Leaving,
    Alarm,
}

impl Call {
    pub(super) fn new(
        agent: Arc<Inner>,
        visitor: &Visitor,
        opened: Opened,
        line: Box<dyn Line>,
        lines: mpsc::Receiver<Box<dyn Line>>,
        has_line: Arc<AtomicBool>,
    ) -> Self {
        let Opened { session, journal, is_resumed, pending_request } = opened;
        let now = Instant::now();
        let mut call = Self {
            prepared: Prepared::new(&agent, &session, &visitor.situation),
            connection: session.connect(),
            upstream: Upstream::new(agent.model.clone()),
            leaving: agent.leaving.subscribe(),
            agent,
            session,
            line: Some(line),
            lines,
            has_line,
            journal,
            echo: Echo::default(),
            flights: Flights::default(),
            unsent: Vec::new(),
            errands: FuturesUnordered::new(),
            speech: Speech::default(),
            notes: Vec::new(),
            retold: 0,
            retold_open: false,
            with_handle: false,
            questions: Vec::new(),
            described: Vec::new(),
            missed: Missed::default(),
            is_resumed,
            is_ready: false,
            clock: Clock {
                alarm: Box::pin(tokio::time::sleep(SOON)),
                began: now,
                parked: None,
                line_seen: now,
                pinged: now,
                stalled: None,
                model_first: false,
            },
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
            Some(answer) = errands.next(), if !errands.is_empty() => Wake::Errand(answer),
            line = lines.recv() => Wake::NewLine(line),
            Ok(()) = leaving.changed() => Wake::Leaving,
            () = alarm => Wake::Alarm,
        }
    }

    fn wake(&mut self, wake: Wake) {
        match wake {
            Wake::Line(Ok(())) => self.hear_person(),
            Wake::Line(Err(gone)) => self.park(&gone),
            Wake::Model(News::Arrived) => self.hear_model(),
            Wake::Model(News::Opened) => self.model_opened(),
            Wake::Model(News::Lost(error)) => self.model_lost(&error),
            Wake::Model(News::NotOpened(error)) => self.model_not_opened(error),
            Wake::Event(Some(event)) => self.session_says(event),
            // Another connection has taken the session over, which only a second call of it can do.
            Wake::Event(None) | Wake::NewLine(None) => self.over = Some(Over::Replaced),
            Wake::Landed(landed) => self.landed(landed),
            Wake::Errand(answer) => self.decided(answer),
            Wake::NewLine(Some(line)) => self.attach(line),
            Wake::Leaving => self.tell_leaving(),
            Wake::Alarm => self.look_at_the_clock(),
        }
    }

    /// Tells the page something, now or when it is back.
    pub(super) fn tell(&mut self, told: Told<'_>) {
        match &mut self.line {
            Some(line) => line.send(told),
            None => self.missed.keep(&told),
        }
    }

    /// Something is under way that the clock must be looked at for.
    pub(super) fn hurry(&mut self) {
        let soon = Instant::now() + SOON;
        if self.clock.alarm.deadline() > soon {
            self.clock.alarm.as_mut().reset(soon);
        }
    }

    /// Keeps what was said, so that a restart loses nothing of it.
    pub(super) fn keep_journal(&self) {
        let commit = journal::keep(self.session.id(), &self.journal, self.agent.expiry_ms());
        if let Err(error) = self.agent.orchestrator.store().queue(commit) {
            tracing::warn!(session = self.session.id(), error = %error, "what was said waits to be stored");
        }
    }

    /// Opens a connection to the model that knows what was said.
    fn connect_model(&mut self) {
        let retold = self.journal.retell(self.upstream.name(), &self.notes);
        (self.retold, self.retold_open) = (self.notes.len(), self.journal.is_open());
        self.with_handle = retold.handle.is_some();
        self.upstream.connect(LiveOpening {
            system: self.prepared.system.clone(),
            tools: self.prepared.tools.clone(),
            resume: retold.handle,
            history: retold.history,
            asks: retold.asks,
        });
        self.hurry();
    }

    fn model_opened(&mut self) {
        let told: Vec<String> = self.notes.drain(..self.retold.min(self.notes.len())).collect();
        for note in &told {
            self.journal.noted(&crate::note::as_note(std::slice::from_ref(note)));
        }
        self.flights.forget_cancelled();
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

    /// The first thing that a line is told.
    fn greet(&mut self) {
        let (session, version) = (self.session.clone(), self.session.snapshot().version().to_owned());
        let provider = self.upstream.name().to_owned();
        let is_resumed = self.is_resumed;
        let Some(line) = &mut self.line else { return };
        line.send(Told::Ready {
            session_id: session.id(),
            is_resumed,
            tools_version: &version,
            provider: &provider,
        });
        for (id, request) in &self.questions {
            line.send(Told::Confirmation { id, request });
        }
        self.missed.tell(&mut **line);
        // Whoever calls again is in the same session.
        self.is_resumed = true;
    }

    fn model_lost(&mut self, error: &quarterdeck_contracts::LiveError) {
        tracing::warn!(
            session = self.session.id(), model = error.model, code = error.code, error = %error, "the model was lost"
        );
        // What may not have arrived comes back as undelivered, and is told to the next connection.
        self.unsent.clear();
        self.speech.is_answering = false;
        self.keep_journal();
        if !self.upstream.is_connecting() {
            self.connect_model();
        }
    }

    fn model_not_opened(&mut self, error: quarterdeck_contracts::LiveError) {
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

    /// The line is gone. The call waits for another one.
    fn park(&mut self, gone: &Gone) {
        tracing::info!(session = self.session.id(), why = ?gone, "the line is gone");
        if let Some(line) = self.line.take()
            && let Gone::Expelled(_) = gone
        {
            tokio::spawn(line.hang_up(HangUp::Refused));
        }
        self.has_line.store(false, Ordering::Release);
        self.clock.parked = Some(Instant::now());
        self.clock.stalled = None;
        if self.speech.mic_is_on {
            self.speech.mic_is_on = false;
            self.upstream.send(LiveInput::AudioEnded);
        }
        self.keep_journal();
        self.hurry();
    }

    /// A new line takes over.
    fn attach(&mut self, line: Box<dyn Line>) {
        if let Some(older) = self.line.replace(line) {
            tokio::spawn(older.hang_up(HangUp::TakenOver));
        }
        self.has_line.store(true, Ordering::Release);
        let now = Instant::now();
        self.clock.parked = None;
        self.clock.stalled = None;
        (self.clock.line_seen, self.clock.pinged) = (now, now);
        // What the older page had not played yet, this one has not got.
        self.speech.drained();
        if self.is_ready {
            self.is_resumed = true;
            self.greet();
        }
    }

    fn tell_leaving(&mut self) {
        let deadline = *self.leaving.borrow_and_update();
        if let Some(deadline) = deadline {
            let in_ms = deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
            self.tell(Told::GoingAway { in_ms });
            self.hurry();
        }
    }

    /// Whether the model is listened to: not while the page cannot take what it says.
    fn may_read_model(&mut self) -> bool {
        let waiting = self.line.as_ref().map_or(0, |line| line.waiting());
        if waiting < CONGESTED {
            self.clock.stalled = None;
            return true;
        }
        let now = Instant::now();
        match &mut self.clock.stalled {
            // It takes some of it, so it may have all.
            Some((least, since)) if waiting < *least => (*least, *since) = (waiting, now),
            Some((_, since)) if now - *since > STALLED => {
                if let Some(line) = &mut self.line {
                    let dropped = line.drop_audio(KEPT_WHEN_STALLED);
                    tracing::warn!(
                        session = self.session.id(),
                        dropped,
                        "audio was dropped: the page does not read"
                    );
                }
                return true;
            }
            Some(_) => {}
            None => {
                self.clock.stalled = Some((waiting, now));
                self.hurry();
            }
        }
        false
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        for call in self.flights.slow(now) {
            let text = format!("{} is taking a moment.", call.name);
            self.tell(Told::Progress { id: &call.shown, text: &text });
        }
        self.look_at_the_line(now);
        self.look_at_the_model(now);
        self.look_for_the_end(now);
        let is_busy = !self.flights.is_empty()
            || self.clock.stalled.is_some()
            || self.clock.parked.is_some()
            || !self.upstream.is_connected()
            || self.upstream.leaves_at().is_some()
            || self.leaving.borrow().is_some()
            || self.awaits_farewell();
        self.clock.alarm.as_mut().reset(now + if is_busy { SOON } else { LATER });
    }

    fn look_at_the_line(&mut self, now: Instant) {
        if let Some(since) = self.clock.parked
            && now - since >= self.agent.settings.parked_for
        {
            self.over = Some(Over::Left);
        }
        let moved = std::mem::take(&mut self.speech.mic_moved);
        if self.speech.mic_is_on && !moved && self.clock.line_seen + LATER < now {
            self.speech.mic_is_on = false;
            self.upstream.send(LiveInput::AudioEnded);
        }
        if moved {
            self.clock.line_seen = now;
        }
        let Some(line) = &mut self.line else { return };
        if now - self.clock.line_seen >= self.agent.settings.line_silence {
            return self.park(&Gone::Lost);
        }
        if now - self.clock.line_seen.max(self.clock.pinged) >= PING_EVERY {
            line.ping();
            self.clock.pinged = now;
        }
    }

    /// Somebody is at the other end of the line.
    pub(super) fn line_is_alive(&mut self) {
        self.clock.line_seen = Instant::now();
    }

    fn look_at_the_model(&mut self, now: Instant) {
        let is_quiet = self.speech.is_quiet() && self.flights.is_empty();
        let must_leave = self.upstream.leaves_at().is_some_and(|at| is_quiet || at <= now + HANDOVER);
        if !self.upstream.is_connecting() && (must_leave || self.upstream.is_due(now)) {
            self.connect_model();
        }
    }

    fn look_for_the_end(&mut self, now: Instant) {
        let leaving = *self.leaving.borrow();
        if let Some(deadline) = leaving
            && (self.speech.is_quiet() || deadline <= now + LATER)
        {
            self.over = Some(Over::Stopping);
        }
        if now - self.clock.began >= self.agent.settings.longest {
            self.tell(Told::Error(&unavailable("This call has become too long. Please call again.")));
            self.over = Some(Over::Ended(quarterdeck_runtime::PendingEnd::because("too_long")));
        }
        self.end_if_overdue(now);
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
            for answer in self.unsent.drain(..) {
                answer.delivered();
            }
        }
    }
}

/// Waits for both ends, each in its turn first.
fn poll_ends(
    line: &mut Option<Box<dyn Line>>,
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
        if line.waiting() > 0
            && let Poll::Ready(Err(gone)) = line.poll_flush(context)
        {
            return Poll::Ready(Wake::Line(Err(gone)));
        }
        if let Poll::Ready(filled) = line.poll_fill(context) {
            return Poll::Ready(Wake::Line(filled));
        }
    }
    if !*model_first && let Poll::Ready(wake) = poll_model(context) {
        return Poll::Ready(wake);
    }
    Poll::Pending
}
