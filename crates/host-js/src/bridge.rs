//! The functions that `prelude.js` and `web.js` call, and what they leave behind for the host.
//!
//! They run on a worker thread inside the engine. Whatever takes time is only begun here: an [`Event`] goes to the
//! call's driver, which does the work and sends the engine back to a thread with the result.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use quarterdeck_contracts::handler::{CancelReason, CapabilityCall, Context, LogLevel};
use quarterdeck_contracts::{CapabilitySpec, Methods};
use rquickjs::{Ctx, Exception, Function, Object, Result, TypedArray};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::answer::Ending;
use crate::config::HostConfig;
use crate::engine::{Engine, EngineTracker};
use crate::fetch::FetchRequest;
use crate::limits::{Control, Quota, QuotaVerdict};
use crate::random::{self, Random};
use crate::url;

/// Requests and timers of one call, in all. Each costs the driver memory until the call ends.
const MAX_REQUESTS_PER_CALL: u32 = 10_000;

/// What an engine tells the driver of its call.
pub(crate) enum Event {
    /// Use a capability.
    Request { id: u32, call: CapabilityCall },
    /// Fetch something.
    Fetch { id: u32, request: FetchRequest },
    /// Wake the engine in so many milliseconds.
    Timer { id: u32, ms: f64 },
    /// A fetch or a timer is not waited for any more.
    Cancel { id: u32 },
    /// The engine waits without a thread for a request or timer.
    Suspended(Engine),
    /// It is over.
    Ended(Ending),
}

/// What ties an engine to the one call that it runs.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) context: Arc<dyn Context>,
    pub(crate) events: UnboundedSender<Event>,
}

/// The host's side of one engine.
pub(crate) struct Bridge {
    config: Arc<HostConfig>,
    tracker: Arc<EngineTracker>,
    control: Mutex<Arc<Control>>,
    state: Mutex<State>,
}

struct State {
    link: Option<Link>,
    ending: Option<Ending>,
    next_id: u32,
    /// Requests and timers that have not completed.
    open: HashSet<u32>,
    bodies: HashMap<u32, Vec<u8>>,
    random: Random,
    log: Quota,
    audit: Quota,
    progress: Quota,
    partial: Quota,
}

impl Bridge {
    pub(crate) fn new(
        config: Arc<HostConfig>,
        tracker: Arc<EngineTracker>,
        control: Arc<Control>,
    ) -> Arc<Self> {
        let state = State {
            link: None,
            ending: None,
            next_id: 1,
            open: HashSet::new(),
            bodies: HashMap::new(),
            random: Random::new(),
            log: Quota::new(config.max_output_bytes),
            audit: Quota::new(config.max_output_bytes),
            progress: Quota::new(config.max_output_bytes),
            partial: Quota::new(config.max_output_bytes),
        };
        Arc::new(Self { config, tracker, control: Mutex::new(control), state: Mutex::new(state) })
    }

    /// Gives the engine its call.
    pub(crate) fn attach(&self, link: Link, control: Arc<Control>) {
        *self.control.lock().unwrap_or_else(PoisonError::into_inner) = control;
        self.state().link = Some(link);
    }

    pub(crate) fn link(&self) -> Option<Link> {
        self.state().link.clone()
    }

    pub(crate) fn control(&self) -> Arc<Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn must_stop(&self) -> bool {
        self.tracker.is_closed() || self.control.lock().unwrap_or_else(PoisonError::into_inner).is_over()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state().ending.is_some()
    }

    pub(crate) fn take_ending(&self) -> Option<Ending> {
        self.state().ending.take()
    }

    /// Whether anything is in progress that could still wake the handler.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.state().open.is_empty()
    }

    /// Records that a request or timer has completed. False if the handler no longer waits for it.
    pub(crate) fn close(&self, id: u32) -> bool {
        self.state().open.remove(&id)
    }

    /// Keeps the body of a response until the handler reads it. Bodies lie outside the engine's memory, and may
    /// take as much again. False if there is no room.
    pub(crate) fn keep_body(&self, id: u32, body: Vec<u8>) -> bool {
        let mut state = self.state();
        let kept: usize = state.bodies.values().map(Vec::len).sum();
        let fits = kept + body.len() <= self.config.memory_bytes;
        if fits {
            state.bodies.insert(id, body);
        }
        fits
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn context(&self) -> Option<Arc<dyn Context>> {
        self.state().link.as_ref().map(|link| link.context.clone())
    }

    /// Milliseconds by the call's clock. The top level of a module runs before there is a call, by the system's.
    #[expect(clippy::disallowed_methods, reason = "before there is a call there is no clock of a call")]
    fn now(&self) -> f64 {
        let now = self.context().map_or_else(SystemTime::now, |context| context.now());
        match now.duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_millis() as f64,
            Err(before) => -(before.duration().as_millis() as f64),
        }
    }

    fn end(&self, ending: Ending) {
        self.state().ending.get_or_insert(ending);
    }

    /// Numbers something that takes time and tells the driver to begin it.
    fn begin(&self, ctx: &Ctx<'_>, event: impl FnOnce(u32) -> Event) -> Result<u32> {
        // Throwing may run code of the handler's, which may come back here: never while the state is locked.
        let (id, link) = self.allocate_id().map_err(|refusal| Exception::throw_message(ctx, refusal))?;
        // A call that was dropped has no receiver; its engine is about to be stopped.
        let _ = link.events.send(event(id));
        Ok(id)
    }

    fn allocate_id(&self) -> std::result::Result<(u32, Link), &'static str> {
        let mut state = self.state();
        let link = state.link.clone().ok_or("this works only while a call runs")?;
        if state.open.len() >= self.config.max_open_requests {
            return Err("too many requests and timers are open");
        }
        if state.next_id > MAX_REQUESTS_PER_CALL {
            return Err("too many requests and timers in one call");
        }
        let id = state.next_id;
        state.next_id += 1;
        state.open.insert(id);
        Ok((id, link))
    }

    fn request(&self, ctx: &Ctx<'_>, capability: &str, method: String, args: &str) -> Result<u32> {
        let args = self.parse_args(ctx, args)?;
        let Some(spec) = self.config.capabilities.iter().find(|spec| spec.name == capability) else {
            return Err(Exception::throw_message(ctx, &format!("there is no capability {capability}")));
        };
        let call = CapabilityCall { capability: spec.capability(), method, args };
        self.begin(ctx, |id| Event::Request { id, call })
    }

    fn parse_args<T: for<'de> Deserialize<'de>>(&self, ctx: &Ctx<'_>, text: &str) -> Result<T> {
        if text.len() > self.config.max_answer_bytes {
            let message = format!("a request may carry {} bytes", self.config.max_answer_bytes);
            return Err(Exception::throw_range(ctx, &message));
        }
        let read = crate::answer::read(text).ok().and_then(|value| serde_json::from_value(value).ok());
        read.ok_or_else(|| Exception::throw_type(ctx, "the request is malformed"))
    }

    /// Charges `bytes` to a channel. The first message that has to be dropped is reported in the log.
    fn charge(
        &self,
        channel: &str,
        bytes: usize,
        quota: impl Fn(&mut State) -> &mut Quota,
    ) -> Option<Arc<dyn Context>> {
        let mut state = self.state();
        let verdict = quota(&mut state).spend(bytes);
        let context = state.link.as_ref().map(|link| link.context.clone())?;
        drop(state);
        match verdict {
            QuotaVerdict::Granted => Some(context),
            QuotaVerdict::Refused => None,
            QuotaVerdict::JustExhausted => {
                context.log(
                    LogLevel::Warn,
                    &format!("the call went over its limit for {channel} output; the rest is dropped"),
                );
                None
            }
        }
    }

    fn body(&self, ctx: &Ctx<'_>, id: u32) -> Result<Vec<u8>> {
        let body = self.state().bodies.remove(&id);
        body.ok_or_else(|| Exception::throw_type(ctx, "the body has been read already"))
    }

    /// The object `host` of the prelude, and of `web.js` where that is used.
    pub(crate) fn object<'js>(self: &Arc<Self>, ctx: &Ctx<'js>, for_web: bool) -> Result<Object<'js>> {
        let host = Object::new(ctx.clone())?;
        host.set("answerLimit", self.config.max_answer_bytes)?;
        host.set("capabilities", members(&self.config.capabilities).to_string())?;
        self.add_reports(ctx, &host)?;
        self.add_random_and_clock(ctx, &host)?;
        self.add_requests(ctx, &host)?;
        if for_web {
            self.add_fetching(ctx, &host)?;
            url::add_functions(ctx, &host)?;
        }
        Ok(host)
    }

    fn add_reports<'js>(self: &Arc<Self>, ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
        let bridge = self.clone();
        let finish = move |kind: String, text: String, stack: String| {
            bridge.end(Ending::parse(&kind, text, stack));
        };
        host.set("finish", Function::new(ctx.clone(), finish)?)?;
        let bridge = self.clone();
        let log = move |level: String, text: String| {
            let level = match level.as_str() {
                "debug" => LogLevel::Debug,
                "warn" => LogLevel::Warn,
                "error" => LogLevel::Error,
                _ => LogLevel::Info,
            };
            if let Some(context) = bridge.charge("log", text.len(), |state| &mut state.log) {
                context.log(level, &text);
            }
        };
        host.set("log", Function::new(ctx.clone(), log)?)?;
        let bridge = self.clone();
        let audit = move |event: String, data: String| {
            let context = bridge.charge("audit", event.len() + data.len(), |state| &mut state.audit);
            if let Some(context) = context {
                context.audit(&event, crate::answer::read(&data).unwrap_or(Value::Null));
            }
        };
        host.set("audit", Function::new(ctx.clone(), audit)?)?;
        let bridge = self.clone();
        let progress = move |text: String| {
            if let Some(context) = bridge.charge("progress", text.len(), |state| &mut state.progress) {
                context.progress(&text);
            }
        };
        host.set("progress", Function::new(ctx.clone(), progress)?)?;
        let bridge = self.clone();
        let emit = move |chunk: String| {
            let context = bridge.charge("partial", chunk.len(), |state| &mut state.partial);
            context.is_some_and(|context| crate::answer::read(&chunk).is_ok_and(|chunk| context.emit(chunk)))
        };
        host.set("emit", Function::new(ctx.clone(), emit)?)?;
        let bridge = self.clone();
        host.set("abortReason", Function::new(ctx.clone(), move || bridge.abort_reason())?)
    }

    /// Why the call should stop, as `abort.js` reads it; empty while it should not.
    fn abort_reason(&self) -> String {
        let reason = self.context().and_then(|context| context.signal().reason());
        reason.map_or_else(String::new, |reason| {
            json!({ "message": reason.message(), "isDeadline": reason == CancelReason::Deadline }).to_string()
        })
    }

    /// Gives up something that was begun.
    fn cancel(&self, id: u32) -> bool {
        let is_open = self.close(id);
        if is_open && let Some(link) = self.link() {
            let _ = link.events.send(Event::Cancel { id });
        }
        is_open
    }

    fn add_random_and_clock<'js>(self: &Arc<Self>, ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
        let bridge = self.clone();
        host.set("now", Function::new(ctx.clone(), move || bridge.now())?)?;
        let bridge = self.clone();
        host.set("random", Function::new(ctx.clone(), move || bridge.state().random.next())?)?;
        host.set("randomUUID", Function::new(ctx.clone(), random::uuid)?)?;
        host.set("randomByte", Function::new(ctx.clone(), random::byte)?)
    }

    fn add_requests<'js>(self: &Arc<Self>, ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
        let bridge = self.clone();
        let request = move |ctx: Ctx<'_>, capability: String, method: String, args: String| {
            bridge.request(&ctx, &capability, method, &args)
        };
        host.set("request", Function::new(ctx.clone(), request)?)?;
        let bridge = self.clone();
        let wait = move |ctx: Ctx<'_>, ms: f64| bridge.begin(&ctx, |id| Event::Timer { id, ms });
        host.set("wait", Function::new(ctx.clone(), wait)?)?;
        let bridge = self.clone();
        let cancel = move |id: u32| bridge.cancel(id);
        host.set("cancel", Function::new(ctx.clone(), cancel)?)
    }

    fn add_fetching<'js>(self: &Arc<Self>, ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
        let bridge = self.clone();
        let fetch = move |ctx: Ctx<'_>, text: String| {
            let request = bridge.parse_args(&ctx, &text)?;
            bridge.begin(&ctx, |id| Event::Fetch { id, request })
        };
        host.set("fetch", Function::new(ctx.clone(), fetch)?)?;
        let bridge = self.clone();
        let text = move |ctx: Ctx<'_>, id: u32| -> Result<String> {
            let body = bridge.body(&ctx, id)?;
            Ok(String::from_utf8_lossy(body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&body)).into_owned())
        };
        host.set("bodyText", Function::new(ctx.clone(), text)?)?;
        let bridge = self.clone();
        let bytes = for_any_engine(move |ctx, id| TypedArray::new_copy(ctx.clone(), bridge.body(&ctx, id)?));
        host.set("bodyBytes", Function::new(ctx.clone(), bytes)?)
    }
}

/// What the prelude puts into a handler's context: for each member its name, the capability behind it and its methods,
/// of which a function has one.
fn members(capabilities: &[CapabilitySpec]) -> Value {
    let members = capabilities.iter().filter_map(|spec| match spec.methods {
        Methods::None => None,
        Methods::Object(member, methods) => Some(json!([member, spec.name, methods])),
        Methods::Function(member, method) => Some(json!([member, spec.name, method])),
    });
    members.collect()
}

/// Tells the compiler that a closure's result lives as long as the engine that it is given.
fn for_any_engine<F>(closure: F) -> F
where
    F: for<'js> Fn(Ctx<'js>, u32) -> Result<TypedArray<'js, u8>>,
{
    closure
}
