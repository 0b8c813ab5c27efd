//! Natives of the engine that no deadline interrupts: what they cost the handler that calls them, and no other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use quarterdeck_contracts::handler::{
    BoxFuture, CallFacts, CancellationToken, CapabilityCall, CapabilityError, Context, Handler, HandlerFault,
    HandlerHost, HostError, HostEvent, HostObserver, LogLevel,
};
use quarterdeck_host_js::{HostConfig, JsHost};
use quarterdeck_testkit::FakeContext;
use serde_json::{Value, json};

use crate::world::{TEN_SECONDS, config, data, load_files, load_tool, within};

/// Each computes for seconds within one native function, where the engine's memory lets it. What cannot is here all
/// the same, as slow as it gets.
const NATIVES: [(&str, &str); 17] = [
    ("index_of", "'a'.repeat(400_000).indexOf('a'.repeat(200_000) + 'b')"),
    ("last_index_of", "'a'.repeat(400_000).lastIndexOf('a'.repeat(200_000) + 'b')"),
    ("includes", "'a'.repeat(400_000).includes('a'.repeat(200_000) + 'b')"),
    ("split", "'a'.repeat(400_000).split('a'.repeat(200_000) + 'b')"),
    ("replace_all", "'a'.repeat(400_000).replaceAll('a'.repeat(200_000) + 'b', '')"),
    ("locale_compare", "('a' + '\\u0315\\u0300'.repeat(150_000)).localeCompare('b')"),
    ("normalize", "('a' + '\\u0315\\u0300'.repeat(150_000)).normalize('NFD')"),
    ("concat", "const a = []; a.length = 2 ** 32 - 2; [].concat(a)"),
    ("repeat", "'ab'.repeat(15_000_000).repeat(1).length"),
    ("pad_end", "''.padEnd(30_000_000, 'ab')"),
    ("join", "const a = []; a.length = 2 ** 32 - 1; a.join('')"),
    ("sort", "const a = []; a.length = 2 ** 32 - 1; a.sort()"),
    (
        "fill",
        "const a = new Uint8Array(0); Object.defineProperty(a, 'length', { value: 3e9 }); Array.prototype.fill.call(a, 1)",
    ),
    (
        "json_stringify",
        "JSON.stringify(Array(20_000).fill({}), Array.from({ length: 60_000 }, (_, n) => 'k' + n))",
    ),
    ("json_parse", "JSON.parse('[' + '1'.repeat(10_000_000) + ']')"),
    ("regexp_exec", "/^(a+)+$/.exec('a'.repeat(40) + 'b')"),
    ("array_includes", "Array.prototype.includes.call({ length: 2 ** 33 }, 1)"),
];

/// Those that must be found to be stuck, so that the test cannot pass because nothing was slow.
const SURELY_STUCK: [&str; 9] =
    ["index_of", "last_index_of", "includes", "split", "replace_all", "concat", "join", "sort", "fill"];

const ORDINARY: &str = "export const execute = async ({ args }) => ({ ok: true, data: args.n + 1 });";

#[derive(Default)]
struct RecordedEvents(Mutex<Vec<HostEvent>>);

impl HostObserver for RecordedEvents {
    fn observe(&self, event: HostEvent) {
        self.0.lock().unwrap().push(event);
    }
}

impl RecordedEvents {
    fn quarantined(&self) -> Vec<String> {
        let events = self.0.lock().unwrap();
        let mut tools: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                HostEvent::Quarantined { quarantine, .. } => Some(quarantine.tool_id.clone()),
                _ => None,
            })
            .collect();
        tools.sort();
        tools
    }
}

fn slow(host: &JsHost, name: &str, code: &str) -> Arc<dyn Handler> {
    let source = format!("export function execute() {{ {code}; return {{ ok: true }}; }}");
    load_tool(host, name, &source).unwrap()
}

async fn ordinary_median(handler: &Arc<dyn Handler>) -> Duration {
    let mut times = Vec::new();
    for n in 0..1_000 {
        let start = Instant::now();
        assert_eq!(data(handler, json!({ "n": n })).await, n + 1);
        times.push(start.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

async fn soon(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// All natives, each called more often than there are threads, and then a thousand calls of another tool.
#[tokio::test]
async fn natives_that_never_return_cost_their_own_tools_and_no_other() {
    const CALLS_OF_EACH: usize = 20;
    let host = JsHost::new(HostConfig { max_threads: 16, ..config() }).unwrap();
    let events = Arc::new(RecordedEvents::default());
    host.observe(events.clone());
    let ordinary = load_tool(&host, "ordinary", ORDINARY).unwrap();
    let usual = ordinary_median(&ordinary).await;

    let tools: Vec<_> = NATIVES.iter().map(|(name, code)| slow(&host, name, code)).collect();
    let start = Instant::now();
    // Threads are added one by one, so that one round of calls does not take all of them.
    for round in 0..3 {
        let calls = (0..CALLS_OF_EACH)
            .flat_map(|_| tools.iter().map(|tool| tool.run(json!({}), FakeContext::new(), within(150))));
        let answers = join_all(calls).await;
        assert_eq!(answers.len(), NATIVES.len() * CALLS_OF_EACH);
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "round {round} is answered: {:?}",
            start.elapsed()
        );
    }
    // They are sent again, one after the other, until their tools are out of service.
    for (name, tool) in NATIVES.iter().zip(&tools) {
        if SURELY_STUCK.contains(&name.0) {
            let is_out = || host.health().quarantines.iter().any(|quarantine| quarantine.tool_id == name.0);
            let _ = tool.run(json!({}), FakeContext::new(), within(1_000)).await;
            soon(name.0, is_out).await;
            let refused = tool.run(json!({}), FakeContext::new(), TEN_SECONDS).await.unwrap_err();
            assert!(
                matches!(refused, HostError::Quarantined { retry_after_ms: 1_000..=30_000 }),
                "{refused}"
            );
        }
    }
    assert!(host.stats().stuck >= SURELY_STUCK.len(), "they still hold their threads: {:?}", host.stats());

    let mut seen = Vec::new();
    for _ in 0..8 {
        let now = ordinary_median(&ordinary).await;
        // On a busy machine a call takes a millisecond or two either way; one that waited for a stuck thread would take
        // until its deadline.
        if now <= usual.mul_f64(1.5).max(Duration::from_millis(5)) {
            let quarantined = events.quarantined();
            for name in SURELY_STUCK {
                assert_eq!(quarantined.iter().filter(|tool| *tool == name).count(), 1, "{quarantined:?}");
            }
            assert!(!quarantined.contains(&"ordinary".to_owned()));
            return;
        }
        seen.push(now);
    }
    panic!("ordinary calls took {usual:?} before, and {seen:?} with {:?}", host.stats());
}

#[tokio::test]
async fn one_tool_leaves_no_more_than_its_share_of_threads_stuck_and_an_operator_lifts_its_quarantine() {
    let host = JsHost::new(HostConfig { max_threads_per_handler: 3, ..config() }).unwrap();
    let events = Arc::new(RecordedEvents::default());
    host.observe(events.clone());
    let ordinary = load_tool(&host, "ordinary", ORDINARY).unwrap();
    // A few seconds.
    let stuck = slow(&host, "stuck", "'a'.repeat(160_000).indexOf('a'.repeat(80_000) + 'b')");
    let answers = join_all((0..40).map(|_| stuck.run(json!({}), FakeContext::new(), within(50)))).await;
    assert!(answers.iter().all(Result::is_err));
    soon("it is out of service", || events.quarantined() == ["stuck"]).await;
    assert!(host.stats().stuck <= 3, "{:?}", host.stats());
    for n in 0..100 {
        assert_eq!(data(&ordinary, json!({ "n": n })).await, n + 1);
    }
    assert!(
        host.lift_quarantine("stuck") && !host.lift_quarantine("stuck") && !host.lift_quarantine("other")
    );
    assert_eq!(host.health().quarantines, []);
    assert_eq!(host.health().quarantines_total, 1);
}

/// Ids are what an operator needs to find the conversation.
#[tokio::test]
async fn quarantine_event_names_the_tool_and_the_call() {
    let host = JsHost::new(config()).unwrap();
    let events = Arc::new(RecordedEvents::default());
    host.observe(events.clone());
    let tool = slow(&host, "sticky", "'a'.repeat(400_000).indexOf('a'.repeat(200_000) + 'b')");
    let context = FakeContext::new();
    assert!(tool.run(json!({}), context.clone(), within(1_000)).await.is_err());
    soon("the quarantine is reported", || !events.quarantined().is_empty()).await;
    let events = events.0.lock().unwrap();
    let [HostEvent::Quarantined { quarantine, call: Some(call) }] = &events[..] else { panic!("{events:?}") };
    let facts = context.facts();
    assert_eq!(quarantine.tool_id, "sticky");
    assert_eq!((call.session_id.as_str(), call.turn), (facts.session.id.as_str(), facts.session.turn));
    assert_eq!(call.call_id, *facts.call_id);
}

/// A top level that never returns costs the load, and no thread for good.
#[tokio::test]
async fn a_top_level_that_never_returns_is_refused_and_its_thread_replaced() {
    let host = JsHost::new(HostConfig { threads: 1, max_threads: 1, ..config() }).unwrap();
    let ordinary = load_tool(&host, "ordinary", ORDINARY).unwrap();
    let source = "'a'.repeat(400_000).indexOf('a'.repeat(200_000) + 'b'); export const execute = () => ({ ok: true });";
    let host = Arc::new(host);
    for attempt in 0..3 {
        let (host, files) = (host.clone(), [("tool/handler.js", source.to_owned() + &" ".repeat(attempt))]);
        let loaded = tokio::task::spawn_blocking(move || {
            let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
            load_files(&host, &files, &[]).map(drop)
        });
        let refused = loaded.await.unwrap().unwrap_err();
        assert!(refused.to_string().contains("top level takes too long"), "{refused}");
    }
    soon("all are found", || host.stats().stuck == 3).await;
    for n in 0..100 {
        assert_eq!(data(&ordinary, json!({ "n": n })).await, n + 1);
    }
}

/// A tool with hundreds of calls in progress leaves room for the calls of another.
#[tokio::test]
async fn one_tool_does_not_fill_the_queue_for_the_others() {
    let host = JsHost::new(HostConfig { max_queue: 40, max_calls: 80, ..config() }).unwrap();
    let ordinary = load_tool(&host, "ordinary", ORDINARY).unwrap();
    let endless = load_tool(&host, "endless", "export const execute = () => { while (true) {} };").unwrap();
    let running: Vec<_> =
        (0..200).map(|_| tokio::spawn(endless.run(json!({}), FakeContext::new(), within(1_500)))).collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    for n in 0..20 {
        assert_eq!(data(&ordinary, json!({ "n": n })).await, n + 1);
    }
    for call in running {
        let error = call.await.unwrap().unwrap_err();
        assert!(matches!(error, HostError::TimedOut { .. } | HostError::Busy { .. }), "{error}");
    }
    assert_eq!(host.health().quarantines, [], "what can be interrupted takes no tool out of service");
}

/// A context in which a line for the log takes until the gate opens: a thread that is stuck for as long as a test
/// wants it to be.
struct Gated {
    inner: Arc<FakeContext>,
    gate: (Mutex<bool>, Condvar),
    is_reached: AtomicBool,
}

impl Gated {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: FakeContext::new(),
            gate: (Mutex::new(false), Condvar::new()),
            is_reached: AtomicBool::new(false),
        })
    }

    fn open(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }
}

impl Context for Gated {
    fn facts(&self) -> &CallFacts {
        self.inner.facts()
    }

    fn now(&self) -> SystemTime {
        self.inner.now()
    }

    fn log(&self, _: LogLevel, _: &str) {
        self.is_reached.store(true, Ordering::SeqCst);
        let mut is_open = self.gate.0.lock().unwrap();
        while !*is_open {
            is_open = self.gate.1.wait(is_open).unwrap();
        }
    }

    fn report_fault(&self, fault: HandlerFault) {
        self.inner.report_fault(fault);
    }

    fn audit(&self, event: &str, data: Value) {
        self.inner.audit(event, data);
    }

    fn progress(&self, text: &str) {
        self.inner.progress(text);
    }

    fn emit(&self, chunk: Value) -> bool {
        self.inner.emit(chunk)
    }

    fn signal(&self) -> CancellationToken {
        self.inner.signal()
    }

    fn request(&self, call: CapabilityCall) -> BoxFuture<Result<Value, CapabilityError>> {
        self.inner.request(call)
    }
}

/// Calls the tool so that it gets stuck. The deadline is long enough for a busy machine to start the call: one that
/// ran out before it reached the gate would strike nothing.
async fn stuck_at_gate(tool: &Arc<dyn Handler>) -> Arc<Gated> {
    let gate = Gated::new();
    let ended = tool.run(json!({ "block": true }), gate.clone(), within(1_000)).await;
    assert!(matches!(ended, Err(HostError::TimedOut { computing: true, .. })), "{ended:?}");
    assert!(gate.is_reached.load(Ordering::SeqCst));
    gate
}

#[tokio::test]
async fn after_the_back_off_one_call_on_trial_decides_and_none_while_threads_are_stuck() {
    let backoff = Duration::from_millis(300);
    let host = JsHost::new(HostConfig { first_quarantine: backoff, ..config() }).unwrap();
    let events = Arc::new(RecordedEvents::default());
    host.observe(events.clone());
    let source = "export const execute = async ({ args, context }) => {
        if (args.block) console.log('block');
        if (args.wait) await new Promise((resolve) => setTimeout(resolve, 300));
        return { ok: true };
      };";
    let tool = load_tool(&host, "sticky", source).unwrap();
    let plain = || tool.run(json!({}), FakeContext::new(), TEN_SECONDS);
    let is_refused = |ended: Result<_, HostError>| matches!(ended, Err(HostError::Quarantined { .. }));
    let gate = stuck_at_gate(&tool).await;
    soon("it is out of service", || !events.quarantined().is_empty()).await;
    assert!(is_refused(plain().await));
    tokio::time::sleep(backoff * 2).await;
    assert!(is_refused(plain().await), "its thread is still stuck");
    gate.open();
    soon("the thread is back", || host.stats().stuck == 0).await;

    // Of calls at the same time one is let through.
    let trial = tokio::spawn(tool.run(json!({ "wait": true }), FakeContext::new(), TEN_SECONDS));
    assert!(is_refused(plain().await), "the trial is under way");
    assert!(trial.await.unwrap().is_ok());
    assert!(events.0.lock().unwrap().contains(&HostEvent::Released { tool_id: "sticky".into() }));
    for ended in join_all((0..20).map(|_| plain())).await {
        assert!(ended.is_ok(), "{ended:?}");
    }

    // The next time it takes twice as long.
    let gate = stuck_at_gate(&tool).await;
    soon("it is out of service again", || events.quarantined().len() == 2).await;
    gate.open();
    assert_eq!(host.health().quarantines[0].strikes, 2);
    soon("the thread is back", || host.stats().stuck == 0).await;
    tokio::time::sleep(backoff * 2).await;
    // A trial that gets stuck is a strike of its own.
    let gate = stuck_at_gate(&tool).await;
    soon("it is out of service for good", || events.quarantined().len() == 3).await;
    assert_eq!(host.health().quarantines[0].strikes, 3);
    gate.open();
}
