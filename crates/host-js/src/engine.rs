//! One engine: a QuickJS runtime that has run no call, and will run one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use quarterdeck_contracts::handler::HostError;
use rquickjs::context::intrinsic::{Date, Json, MapSet, Promise, Proxy, RegExp, TypedArrays, WeakRef};
use rquickjs::module::{Declared, Evaluated};
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Exception, Function, Module, Object, Runtime, Value};

use crate::answer::{Ending, Thrown};
use crate::bridge::{Bridge, Link};
use crate::config::HostConfig;
use crate::limits::Control;
use crate::program::{ABORT, ModuleReader, ModuleResolver, PRELUDE, Program, WEB};

/// What the language offers. `eval` and `Function` are not among it: engines are given bytecode and parse nothing.
type Language = (Date, RegExp, Json, Proxy, MapSet, TypedArrays, Promise, WeakRef);

const NO_ROOM_FOR_BODY: &str = r#"{"code":"NOT_AVAILABLE","message":"too many responses were left unread"}"#;

/// A runtime with the host's prelude installed and the handler's modules evaluated, waiting for its one call.
pub(crate) struct Engine {
    context: Context,
    bridge: Arc<Bridge>,
    _token: TrackerToken,
}

/// What an engine is resumed with.
pub(crate) enum Input {
    /// The call: `{"args": …, "facts": …}`.
    Start(String),
    /// What it asked for.
    Results(Vec<Completion>),
}

/// A request or a timer that has completed.
pub(crate) struct Completion {
    pub(crate) id: u32,
    pub(crate) result: CompletionResult,
}

pub(crate) enum CompletionResult {
    /// The value's JSON.
    Value(String),
    /// A response's head as JSON, and its body.
    Response(String, Vec<u8>),
    /// A capability's error as JSON.
    Failed(String),
    /// A timer's time has come.
    Fired,
    /// The call should stop; its id stands for nothing.
    Aborted,
}

/// Where an engine stands after a step.
pub(crate) enum Step {
    Ended(Ending),
    Waiting,
}

impl Engine {
    /// Makes an engine for a handler, within the time that `control` leaves.
    pub(crate) fn make(
        program: &Arc<Program>,
        config: &Arc<HostConfig>,
        control: Arc<Control>,
        tracker: &Arc<EngineTracker>,
    ) -> Result<Self, HostError> {
        let token = TrackerToken::new(tracker);
        let unmade =
            |error: rquickjs::Error| HostError::Crashed(format!("the engine cannot be made: {error}"));
        let runtime = Runtime::new().map_err(unmade)?;
        runtime.set_max_stack_size(config.stack_bytes);
        // Most calls end before there is anything worth collecting.
        runtime.set_gc_threshold((4 << 20).min(config.memory_bytes / 4));
        let bridge = Bridge::new(config.clone(), tracker.clone(), control);
        let interrupted = bridge.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || interrupted.must_stop())));
        let reader = ModuleReader::new(program.clone());
        runtime.set_loader(ModuleResolver(program.clone()), reader.clone());
        let context = Context::custom::<Language>(&runtime).map_err(unmade)?;
        let engine = Self { context, bridge, _token: token };
        engine.enter_with(program, |ctx| engine.install(ctx, program, &reader))?;
        // From here on code of the handler's runs; the native code that set up the engine did not expect a limit.
        runtime.set_memory_limit(config.memory_bytes);
        engine.enter_with(program, |ctx| engine.load_handler(ctx, program))?;
        Ok(engine)
    }

    fn enter_with(
        &self,
        program: &Program,
        prepare: impl FnOnce(&Ctx<'_>) -> rquickjs::Result<()>,
    ) -> Result<(), HostError> {
        self.context.with(|ctx| {
            prepare(&ctx).map_err(|error| match error {
                rquickjs::Error::Exception => failure_of_loading(&self.bridge, program, &ctx.catch()),
                other => HostError::Unloadable(other.to_string()),
            })
        })
    }

    /// Reads every module that the engine can ever need, and runs the host's own.
    ///
    /// QuickJS does not survive running out of memory while it reads bytecode, so none is read once a handler could
    /// have filled the memory: what a handler imports later has been declared here, and only runs then.
    fn install(&self, ctx: &Ctx<'_>, program: &Program, reader: &ModuleReader) -> rquickjs::Result<()> {
        let prelude = evaluate(program.host_module(PRELUDE)?.load(ctx)?)?;
        let host = self.bridge.object(ctx, program.uses_web)?;
        let calls: Object<'_> = prelude.get::<_, Function<'_>>("prepare")?.call((host.clone(),))?;
        if program.uses_web {
            let web = evaluate(program.host_module(WEB)?.load(ctx)?)?;
            let wait: Function<'_> = calls.get("wait")?;
            web.get::<_, Function<'_>>("installWeb")?.call::<_, ()>((host.clone(), wait))?;
        }
        if program.uses_abort {
            let abort = evaluate(program.host_module(ABORT)?.load(ctx)?)?;
            let bind_signal: Function<'_> = calls.get("bindSignal")?;
            abort.get::<_, Function<'_>>("installAbort")?.call::<_, ()>((host, bind_signal))?;
        }
        reader.read_all(ctx, program)?;
        // Kept where no code of the handler's can reach it.
        ctx.store_userdata(calls).map(drop).map_err(|_| rquickjs::Error::Unknown)
    }

    /// Runs the top level of the handler's modules.
    fn load_handler(&self, ctx: &Ctx<'_>, program: &Program) -> rquickjs::Result<()> {
        let imported = Module::import(ctx, program.entry.as_str())?;
        while imported.state() == PromiseState::Pending
            && !self.bridge.must_stop()
            && ctx.execute_pending_job()
        {}
        let Some(namespace) = imported.result::<Object<'_>>() else {
            return Err(Exception::throw_message(ctx, "the top level of the handler never finishes"));
        };
        let execute: Value<'_> = namespace?.get("execute")?;
        if !execute.is_function() {
            return Err(Exception::throw_type(ctx, "the handler does not export a function `execute`"));
        }
        self.enter(ctx, "bind", (execute,))
    }

    /// Ties the engine to the call that it will run.
    pub(crate) fn attach(&self, link: Link, control: Arc<Control>) {
        self.bridge.attach(link, control);
    }

    /// The call that the engine was tied to.
    pub(crate) fn link(&self) -> Option<Link> {
        self.bridge.link()
    }

    /// When that call ends.
    pub(crate) fn control(&self) -> Arc<Control> {
        self.bridge.control()
    }

    /// Runs until the handler has ended or waits for something.
    pub(crate) fn step(&self, input: Input) -> Step {
        self.context.with(|ctx| {
            let entered = match input {
                Input::Start(text) => self.enter(&ctx, "start", (text,)),
                Input::Results(completions) => {
                    completions.into_iter().try_for_each(|completion| self.deliver(&ctx, completion))
                }
            };
            if let Err(error) = entered {
                // The prelude catches what handlers throw, so this is an engine at its end.
                let ending = failure_of_call(&error, &ctx);
                return Step::Ended(if self.bridge.must_stop() { Ending::Stopped } else { ending });
            }
            match self.bridge.take_ending() {
                // What an interrupted handler seems to have thrown is the interruption.
                Some(Ending::Crashed(_)) | None if self.bridge.must_stop() => Step::Ended(Ending::Stopped),
                Some(ending) => Step::Ended(ending),
                None if self.bridge.is_waiting() => Step::Waiting,
                None => Step::Ended(Ending::Crashed(
                    "its promise never settles: nothing is pending that could settle it".into(),
                )),
            }
        })
    }

    fn deliver(&self, ctx: &Ctx<'_>, completion: Completion) -> rquickjs::Result<()> {
        let Completion { id, result } = completion;
        if matches!(result, CompletionResult::Aborted) {
            return if self.bridge.has_ended() { Ok(()) } else { self.enter(ctx, "abort", ()) };
        }
        if !self.bridge.close(id) || self.bridge.has_ended() {
            return Ok(());
        }
        match result {
            CompletionResult::Value(text) => self.enter(ctx, "settle", (id, true, text)),
            CompletionResult::Failed(text) => self.enter(ctx, "settle", (id, false, text)),
            CompletionResult::Fired => self.enter(ctx, "fire", (id,)),
            CompletionResult::Aborted => Ok(()),
            CompletionResult::Response(head, body) => match self.bridge.keep_body(id, body) {
                true => self.enter(ctx, "settle", (id, true, head)),
                false => self.enter(ctx, "settle", (id, false, NO_ROOM_FOR_BODY)),
            },
        }
    }

    /// Calls the prelude, then runs what became ready, as an event loop would.
    fn enter<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: &str,
        args: impl rquickjs::function::IntoArgs<'js>,
    ) -> rquickjs::Result<()> {
        let calls =
            ctx.userdata::<Object<'js>>().map(|calls| calls.clone()).ok_or(rquickjs::Error::Unknown)?;
        calls.get::<_, Function<'js>>(name)?.call::<_, ()>(args)?;
        while !self.bridge.has_ended() && !self.bridge.must_stop() && ctx.execute_pending_job() {}
        Ok(())
    }
}

/// Runs the top level of a module of the host's own, which waits for nothing.
fn evaluate<'js>(module: Module<'js, Declared>) -> rquickjs::Result<Module<'js, Evaluated>> {
    let (module, evaluated) = module.eval()?;
    evaluated.finish::<()>()?;
    Ok(module)
}

fn failure_of_loading(bridge: &Bridge, program: &Program, thrown: &Value<'_>) -> HostError {
    if bridge.must_stop() {
        return HostError::Unloadable("its top level takes too long".into());
    }
    let thrown = match thrown.as_exception() {
        Some(exception) => {
            let name: Option<String> = exception.get("name").ok();
            let message = exception.message().unwrap_or_default();
            let name = name.unwrap_or_else(|| "Error".into());
            Thrown { head: format!("{name}: {message}"), stack: exception.stack().unwrap_or_default() }
        }
        None => Thrown { head: format!("its top level threw {thrown:?}"), stack: String::new() },
    };
    HostError::FailedToLoad(Box::new(program.fault(&thrown)))
}

fn failure_of_call(error: &rquickjs::Error, ctx: &Ctx<'_>) -> Ending {
    let thrown = ctx.catch();
    match thrown.as_exception().and_then(|exception| exception.message()) {
        Some(message) if message == "out of memory" => Ending::OverLimit("memory"),
        Some(message) => Ending::Crashed(message.as_str().into()),
        None => Ending::Crashed(error.to_string().as_str().into()),
    }
}

/// Counts the engines of a host, and tells them to stop.
#[derive(Default)]
pub(crate) struct EngineTracker {
    engines: AtomicUsize,
    closing: AtomicBool,
}

impl EngineTracker {
    pub(crate) fn engines(&self) -> usize {
        self.engines.load(Ordering::Relaxed)
    }

    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

/// Counts an engine until it is dropped.
struct TrackerToken(Arc<EngineTracker>);

impl TrackerToken {
    fn new(tracker: &Arc<EngineTracker>) -> Self {
        tracker.engines.fetch_add(1, Ordering::Relaxed);
        Self(tracker.clone())
    }
}

impl Drop for TrackerToken {
    fn drop(&mut self) {
        self.0.engines.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::{Duration, Instant};

    use quarterdeck_contracts::handler::HandlerToLoad;
    use serde_json::json;

    use super::*;
    use crate::program::HostModules;

    /// Printed, not asserted: `cargo test -p quarterdeck-host-js --release --lib making -- --nocapture`.
    #[test]
    #[expect(clippy::print_stdout, reason = "the figures are the point")]
    fn making_an_engine_and_running_it() {
        let files = BTreeMap::from([(
            "tool/handler.js".to_owned(),
            b"export const execute = ({ args }) => ({ ok: true, data: args.n });".to_vec(),
        )]);
        let metadata = serde_json::from_value(json!({
            "toolId": "tool", "version": "1.0.0", "description": "A tool.", "category": "utility",
            "sideEffects": "none", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
            "latencyBudgetMs": 100,
        }))
        .unwrap();
        let host_modules = Arc::new(HostModules::compile().unwrap());
        let handler = HandlerToLoad { metadata: &metadata, entry: "tool/handler.js", files: &files };
        let program = Arc::new(Program::compile(handler, host_modules).unwrap());
        let (config, tracker) = (Arc::new(HostConfig::default()), Arc::new(EngineTracker::default()));
        let text = json!({ "args": { "n": 1 }, "facts": { "clientId": "c", "mode": "text", "callId": "1",
            "tool": {}, "session": {}, "clamped": {}, "declared": {} } })
        .to_string();
        let mut bytes = 0;
        let mut times = [const { Vec::new() }; 6];
        for _ in 0..300 {
            let mut lap = Instant::now();
            let mut note = |phase: usize| {
                times[phase].push(lap.elapsed());
                lap = Instant::now();
            };
            let runtime = Runtime::new().unwrap();
            let bare = Context::custom::<Language>(&runtime).unwrap();
            note(0);
            drop((bare, runtime));
            note(1);
            let control = Arc::new(Control::until(Instant::now() + Duration::from_secs(1)));
            let engine = Engine::make(&program, &config, control, &tracker).unwrap();
            note(2);
            bytes = engine.context.runtime().memory_usage().malloc_size;
            note(5);
            assert!(matches!(engine.step(Input::Start(text.clone())), Step::Ended(Ending::Answer(_))));
            note(3);
            drop(engine);
            note(4);
        }
        let names = ["bare engine", "dropping it", "whole engine", "one call in it", "dropping it"];
        for (name, times) in names.iter().zip(&mut times) {
            times.sort();
            println!("{name}: {:?}", times[times.len() / 2]);
        }
        println!("a waiting engine: {bytes} bytes");
        assert_eq!(tracker.engines(), 0);
    }
}
