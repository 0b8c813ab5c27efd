use std::sync::mpsc::{self, Sender};

use super::*;
use crate::handler_status::HostMonitor;

fn limits(threads: usize, max_threads: usize) -> PoolLimits {
    PoolLimits {
        threads,
        max_threads,
        max_threads_per_handler: max_threads,
        max_stuck_threads: 4,
        max_queue: 1_000,
        max_queue_per_handler: 1_000,
        stack_bytes: 64 << 10,
    }
}

fn status(name: &str) -> Arc<HandlerStatus> {
    HandlerStatus::open(name, &Arc::new(HostMonitor::default()), BACKOFF)
}

fn statuses<const N: usize>() -> [Arc<HandlerStatus>; N] {
    let monitor = Arc::new(HostMonitor::default());
    std::array::from_fn(|n| HandlerStatus::open(&format!("tool_{n}"), &monitor, BACKOFF))
}

fn job(status: &Arc<HandlerStatus>, ms: u64) -> Job {
    let limit = TimeLimit::Within(Duration::from_millis(ms));
    Job { status: status.clone(), limit, call: None }
}

/// Work that says that it has begun, and ends when it is let go of.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn work(&self, begun: &Sender<&'static str>, name: &'static str) -> Run {
        let (gate, begun) = (self.clone(), begun.clone());
        Box::new(move || {
            let _ = begun.send(name);
            let mut is_open = gate.0.0.lock().unwrap();
            while !*is_open {
                is_open = gate.0.1.wait(is_open).unwrap();
            }
        })
    }

    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

/// Work that is stuck must not outlive a test that fails.
impl Drop for Gate {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.open();
        }
    }
}

const BACKOFF: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(5);

fn soon(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < SOON, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn work_queued_at_once_is_all_started_while_threads_may_grow() {
    let status = status("tool");
    for _ in 0..100 {
        let pool = ThreadPool::new(limits(2, 8));
        let (sender, receiver) = mpsc::channel();
        let gate = Gate::default();
        for _ in 0..6 {
            pool.queue().resume(job(&status, 60_000), gate.work(&sender, "work")).unwrap();
        }
        for _ in 0..6 {
            receiver.recv_timeout(SOON).expect("all six run at once");
        }
        gate.open();
    }
}

#[test]
fn a_panic_ends_its_work_and_not_the_thread() {
    let status = status("tool");
    let pool = ThreadPool::new(limits(1, 1));
    let (sender, receiver) = mpsc::channel();
    pool.queue().resume(job(&status, 60_000), Box::new(|| panic!("on purpose"))).unwrap();
    pool.queue().resume(job(&status, 60_000), Box::new(move || sender.send(()).unwrap())).unwrap();
    receiver.recv_timeout(SOON).unwrap();
    assert_eq!(pool.queue().threads(), 1);
}

#[test]
fn one_handler_holds_no_more_than_its_share_and_the_others_work_gets_through() {
    let [greedy, modest] = statuses();
    let pool = ThreadPool::new(PoolLimits { max_threads_per_handler: 2, ..limits(1, 4) });
    let (sender, receiver) = mpsc::channel();
    let gate = Gate::default();
    for _ in 0..20 {
        pool.queue().resume(job(&greedy, 60_000), gate.work(&sender, "greedy")).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(receiver.recv_timeout(SOON), Ok("greedy"));
    }
    for _ in 0..50 {
        let sender = sender.clone();
        let run = Box::new(move || sender.send("modest").unwrap());
        pool.queue().resume(job(&modest, 60_000), run).unwrap();
        assert_eq!(receiver.recv_timeout(SOON), Ok("modest"));
    }
    gate.open();
    for _ in 0..18 {
        assert_eq!(receiver.recv_timeout(SOON), Ok("greedy"));
    }
}

#[test]
fn a_handler_that_holds_no_thread_gets_one_when_all_are_taken() {
    let [one, two, three] = statuses();
    let pool = ThreadPool::new(PoolLimits { max_threads_per_handler: 1, ..limits(1, 2) });
    let (sender, receiver) = mpsc::channel();
    let gate = Gate::default();
    for status in [&one, &two] {
        pool.queue().resume(job(status, 60_000), gate.work(&sender, "long")).unwrap();
        receiver.recv_timeout(SOON).unwrap();
    }
    pool.queue().resume(job(&three, 60_000), gate.work(&sender, "late")).unwrap();
    assert_eq!(receiver.recv_timeout(SOON), Ok("late"));
    gate.open();
    soon("they leave", || pool.queue().threads() == 1);
}

#[test]
fn a_stuck_thread_is_replaced_and_ends_when_it_comes_back() {
    let [stuck, other] = statuses();
    let pool = ThreadPool::new(limits(1, 1));
    let (sender, receiver) = mpsc::channel();
    let gate = Gate::default();
    pool.queue().resume(job(&stuck, 10), gate.work(&sender, "stuck")).unwrap();
    receiver.recv_timeout(SOON).unwrap();
    let refuser = sender.clone();
    let refuse: Run = Box::new(move || refuser.send("refused").unwrap());
    pool.queue().start(job(&stuck, 10), gate.work(&sender, "started"), refuse).unwrap();
    assert_eq!(receiver.recv_timeout(SOON), Ok("refused"), "what waited for the handler is not begun");
    let quarantine = stuck.quarantine().expect("the handler is out of service");
    assert_eq!((quarantine.strikes, quarantine.stuck_threads), (1, 1));
    assert!(other.quarantine().is_none());

    let run = {
        let sender = sender.clone();
        Box::new(move || sender.send("other").unwrap())
    };
    pool.queue().resume(job(&other, 60_000), run).unwrap();
    assert_eq!(receiver.recv_timeout(SOON), Ok("other"), "another thread has its place");
    assert_eq!(pool.queue().threads(), 1);
    assert!(stuck.admit(4).is_err() && other.admit(4).is_ok());

    gate.open();
    soon("the stuck thread is gone", || {
        let state = pool.queue().lock();
        state.replaced == 0 && state.workers.len() == 1
    });
    assert_eq!(stuck.quarantine().unwrap().stuck_threads, 0);
}

#[test]
fn beyond_the_bound_stuck_threads_keep_their_place_and_others_still_get_through() {
    let [other, stuck @ ..] = statuses::<7>();
    let pool = ThreadPool::new(PoolLimits { max_stuck_threads: 2, ..limits(1, 2) });
    let (sender, receiver) = mpsc::channel();
    let gate = Gate::default();
    for status in &stuck {
        pool.queue().resume(job(status, 10), gate.work(&sender, "stuck")).unwrap();
        assert_eq!(receiver.recv_timeout(SOON), Ok("stuck"));
    }
    soon("all are out of service", || stuck.iter().all(|status| status.quarantine().is_some()));
    assert_eq!(pool.queue().lock().replaced, 2);
    let run = {
        let sender = sender.clone();
        Box::new(move || sender.send("other").unwrap())
    };
    pool.queue().resume(job(&other, 60_000), run).unwrap();
    assert_eq!(receiver.recv_timeout(SOON), Ok("other"));
    gate.open();
    soon("all are gone", || pool.queue().lock().workers.len() <= 1);
    assert!(stuck.iter().all(|status| status.quarantine().unwrap().stuck_threads == 0));
}

#[test]
fn what_waits_behind_stuck_threads_is_let_go_of_when_its_time_is_over() {
    use crate::limits::Control;

    let [stuck, other] = statuses();
    let pool = ThreadPool::new(PoolLimits { max_threads_per_handler: 1, ..limits(1, 4) });
    let (sender, receiver) = mpsc::channel();
    let gate = Gate::default();
    pool.queue().resume(job(&stuck, 10), gate.work(&sender, "stuck")).unwrap();
    assert_eq!(receiver.recv_timeout(SOON), Ok("stuck"));
    let say = |text: &'static str| -> Run {
        let sender = sender.clone();
        Box::new(move || sender.send(text).unwrap())
    };
    let teardown = Job { limit: TimeLimit::Teardown, ..job(&stuck, 0) };
    pool.queue().run_in_background(teardown, say("taken apart"));
    // Background work begins when a thread has nothing else to do.
    pool.queue().resume(job(&other, 60_000), say("other")).unwrap();
    let mut said = [receiver.recv_timeout(SOON).unwrap(), receiver.recv_timeout(SOON).unwrap()];
    said.sort_unstable();
    assert_eq!(said, ["other", "taken apart"]);

    let control = Arc::new(Control::until(Instant::now() + Duration::from_millis(300)));
    let parked = Job { limit: TimeLimit::Call(control.clone()), ..job(&stuck, 0) };
    pool.queue().resume(parked, say("let go")).unwrap();
    assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err(), "its handler has no thread left");
    assert_eq!(receiver.recv_timeout(SOON), Ok("let go"));
    assert!(control.is_over());
    gate.open();
}
