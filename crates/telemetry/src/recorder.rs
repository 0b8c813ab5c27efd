//! Takes spans from the libraries.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use quarterdeck_contracts::telemetry::{SpanData, SpanRecorder, SpanStamp, TraceContext};

use crate::counters::Counters;
use crate::instruments::Instruments;
use crate::open_traces::OpenTraces;
use crate::queue::Queue;
use crate::sampling::Ratio;
use crate::telemetry::WallClock;

pub(crate) struct Recorder {
    pub(crate) now: WallClock,
    pub(crate) ratio: Ratio,
    pub(crate) captures_content: bool,
    /// Whether spans of other processes are followed.
    pub(crate) accepts_parents: bool,
    /// Whether spans are sent, or only measured.
    pub(crate) sends_spans: bool,
    pub(crate) traces: Mutex<OpenTraces>,
    pub(crate) queue: Arc<Queue<SpanData>>,
    pub(crate) instruments: Option<Instruments>,
    pub(crate) counters: Arc<Counters>,
}

impl SpanRecorder for Recorder {
    fn begin(&self, parent: Option<TraceContext>) -> SpanStamp {
        let parent = parent.filter(|parent| self.accepts_parents || !parent.is_remote);
        let (trace_id, is_sampled) = match parent {
            // The client that began the trace has decided.
            Some(parent) => (parent.trace_id, parent.is_sampled),
            None => {
                let trace_id = random_id();
                (trace_id, self.ratio.keeps(trace_id))
            }
        };
        let context = TraceContext { trace_id, span_id: random_id(), is_sampled, is_remote: false };
        self.traces.lock().unwrap_or_else(PoisonError::into_inner).begin(context);
        SpanStamp { context, parent, began: (self.now)() }
    }

    fn now(&self) -> SystemTime {
        (self.now)()
    }

    fn end(&self, span: SpanData) {
        if let Some(instruments) = &self.instruments {
            instruments.record(&span);
        }
        let decided = self.traces.lock().unwrap_or_else(PoisonError::into_inner).end(span);
        if !self.sends_spans {
            return;
        }
        self.counters.sampled_out.add(decided.left_out);
        for span in decided.kept {
            if !self.queue.push(span) {
                self.counters.spans.overflowed.add(1);
            }
        }
    }

    fn captures_content(&self) -> bool {
        self.captures_content
    }
}

/// Never all zeroes. Ids need to differ and not to be secret, so that an operating system without random numbers is no
/// reason to fail: a counter does then.
fn random_id<const N: usize>() -> [u8; N] {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNTER: AtomicU64 = AtomicU64::new(1);
    let mut id = [0; N];
    if getrandom::fill(&mut id).is_err() || id == [0; N] {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        id[N - 8..].copy_from_slice(&number);
    }
    id
}
