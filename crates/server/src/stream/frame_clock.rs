//! When frames of answers go out: together, a few milliseconds apart.
//!
//! Most of what a token costs is the write to its connection, and half of a write is to wake the reader at the other end, or the network
//! card. Frames that go out one right after the other share that, and a model that writes faster than the clock has several tokens in a
//! frame. On a server where little happens, each frame goes out at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How far apart the ticks are at least. A screen shows a new picture every 16 ms.
const TICK_INTERVAL: Duration = Duration::from_millis(5);

/// The clock of all answers of a server.
#[derive(Debug, Default)]
pub(crate) struct FrameClock(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    tick: Tick,
    /// When the last tick was; `None` before the first.
    last: Option<Instant>,
    /// Wakes those whose frames go out with the next tick. While there is one, a task waits for that tick.
    waiting: Vec<Waker>,
}

/// The number of a tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tick(u64);

impl FrameClock {
    /// The present tick, if a frame may go out with it: it is not `sent`, with which the last one went. Otherwise the task is woken with
    /// the next.
    pub(crate) fn poll_tick(self: &Arc<Self>, sent: Option<Tick>, context: &Context<'_>) -> Poll<Tick> {
        let mut state = self.lock();
        if Some(state.tick) == sent && !state.begin_tick_if_due() {
            self.enter(state, context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(state.tick)
    }

    /// Wakes a task with the next tick, which is now if the last one was long enough ago.
    fn wake(self: &Arc<Self>, waker: Waker) {
        let mut state = self.lock();
        if state.waiting.is_empty() && state.begin_tick_if_due() {
            drop(state);
            return waker.wake();
        }
        self.enter(state, waker);
    }

    fn enter(self: &Arc<Self>, mut state: MutexGuard<'_, State>, waker: Waker) {
        state.waiting.push(waker);
        if state.waiting.len() == 1 {
            let next = state.last.unwrap_or_else(Instant::now) + TICK_INTERVAL;
            tokio::spawn(self.clone().tick_at(next));
        }
    }

    async fn tick_at(self: Arc<Self>, next: Instant) {
        sleep_until(next).await;
        let waiting = {
            let mut state = self.lock();
            state.begin_tick(Instant::now());
            std::mem::take(&mut state.waiting)
        };
        // Not under the lock: what is woken may ask the clock at once.
        waiting.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn begin_tick_if_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.last.is_none_or(|last| now >= last + TICK_INTERVAL);
        if is_due {
            self.begin_tick(now);
        }
        is_due
    }

    fn begin_tick(&mut self, now: Instant) {
        self.tick.0 += 1;
        self.last = Some(now);
    }
}

/// A waker that wakes its task with the next tick.
#[derive(Debug, Default)]
pub(crate) struct TickWaker(Option<(Waker, Waker)>);

impl TickWaker {
    /// The waker for this task. It is made anew only where another task asks.
    pub(crate) fn for_task(&mut self, clock: &Arc<FrameClock>, context: &Context<'_>) -> &Waker {
        let task = context.waker();
        let known = self.0.take().filter(|(known, _)| known.will_wake(task));
        let made = || {
            let waker = WakeWithTick { clock: clock.clone(), task: task.clone() };
            (task.clone(), Arc::new(waker).into())
        };
        let (_, waker) = self.0.insert(known.unwrap_or_else(made));
        waker
    }
}

struct WakeWithTick {
    clock: Arc<FrameClock>,
    task: Waker,
}

impl Wake for WakeWithTick {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.clock.wake(self.task.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Woken {
        fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn setup() -> (Arc<FrameClock>, Arc<Woken>) {
        (Arc::default(), Arc::default())
    }

    #[tokio::test(start_paused = true)]
    async fn task_is_woken_at_once_where_nothing_went_out_lately() {
        let (clock, woken) = setup();
        for count in 1..4 {
            clock.wake(woken.clone().into());
            assert_eq!(woken.count(), count);
            tokio::time::sleep(TICK_INTERVAL).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_that_follow_closely_are_woken_together_with_the_next_tick() {
        let (clock, woken) = setup();
        clock.wake(woken.clone().into());
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            clock.wake(woken.clone().into());
        }
        assert_eq!(woken.count(), 1);
        tokio::time::sleep(Duration::from_millis(3)).await;
        assert_eq!(woken.count(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn one_frame_goes_out_with_a_tick() {
        let (clock, woken) = setup();
        let waker = woken.clone().into();
        let context = Context::from_waker(&waker);
        let Poll::Ready(first) = clock.poll_tick(None, &context) else { panic!("the first may go out") };
        let began = Instant::now();
        let Poll::Ready(second) = clock.poll_tick(Some(first), &context) else {
            panic!("no tick was lately")
        };
        assert_ne!(first, second);
        assert!(clock.poll_tick(Some(second), &context).is_pending());
        while woken.count() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(began.elapsed() >= TICK_INTERVAL);
        assert!(matches!(clock.poll_tick(Some(second), &context), Poll::Ready(third) if third != second));
    }

    #[tokio::test(start_paused = true)]
    async fn waker_is_made_once_for_a_task() {
        let (clock, woken) = setup();
        let (one, other) = (woken.clone().into(), Waker::noop());
        let mut waker = TickWaker::default();
        let first = waker.for_task(&clock, &Context::from_waker(&one)).clone();
        assert!(waker.for_task(&clock, &Context::from_waker(&one)).will_wake(&first));
        assert!(!waker.for_task(&clock, &Context::from_waker(other)).will_wake(&first));
        first.wake();
        assert_eq!(woken.count(), 1);
    }
}
