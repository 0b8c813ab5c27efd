//! Decides about a trace when its first span here ends, because only then is it known whether something failed.
//!
//! Until then the spans that have ended are held. Their number and bytes are bounded over all traces: beyond that a span
//! is decided about by itself, so that a trace may lose its quiet parts, but never an error.

use std::collections::HashMap;

use quarterdeck_contracts::telemetry::{SpanData, SpanStatus, TraceContext};

use crate::convert::size;

/// How many traces are held at the same time.
const MAX_TRACES: usize = 4_096;
/// How many spans of one trace are held.
const MAX_SPANS: usize = 256;
/// How many bytes of all held spans, roughly.
const MAX_HELD_BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct OpenTraces {
    traces: HashMap<[u8; 16], OpenTrace>,
    held_bytes: usize,
}

#[derive(Debug)]
struct OpenTrace {
    /// The first span of the trace here.
    root: [u8; 8],
    /// How many spans have begun and not ended.
    open: usize,
    has_error: bool,
    /// Whether it is kept, once that is decided.
    is_kept: Option<bool>,
    held: Vec<SpanData>,
}

/// What is to be sent now, and how many spans are not.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    pub(crate) kept: Vec<SpanData>,
    pub(crate) left_out: usize,
}

impl OpenTraces {
    pub(crate) fn begin(&mut self, span: TraceContext) {
        if let Some(trace) = self.traces.get_mut(&span.trace_id) {
            trace.open += 1;
        } else if self.traces.len() < MAX_TRACES {
            let root = span.span_id;
            let trace = OpenTrace { root, open: 1, has_error: false, is_kept: None, held: Vec::new() };
            self.traces.insert(span.trace_id, trace);
        }
    }

    pub(crate) fn end(&mut self, span: SpanData) -> Decided {
        let is_error = span.status == SpanStatus::Error;
        let is_sampled = span.context.is_sampled;
        let (id, bytes) = (span.context.trace_id, size(&span));
        // Too many traces were open when it began.
        let Some(trace) = self.traces.get_mut(&id) else { return Decided::of(span, is_sampled || is_error) };
        trace.open = trace.open.saturating_sub(1);
        trace.has_error |= is_error;
        let is_root = trace.root == span.context.span_id;
        let mut decided = match trace.is_kept {
            // A part that goes on after the rest was decided about.
            Some(is_kept) => Decided::of(span, is_kept || is_error),
            None if trace.held.len() >= MAX_SPANS || self.held_bytes + bytes > MAX_HELD_BYTES => {
                Decided::of(span, is_sampled || is_error)
            }
            None => {
                self.held_bytes += bytes;
                trace.held.push(span);
                Decided::default()
            }
        };
        if trace.is_kept.is_none() && (is_root || trace.open == 0) {
            let is_kept = is_sampled || trace.has_error;
            trace.is_kept = Some(is_kept);
            let held = std::mem::take(&mut trace.held);
            self.held_bytes = self.held_bytes.saturating_sub(held.iter().map(size).sum());
            match is_kept {
                true => decided.kept.extend(held),
                false => decided.left_out += held.len(),
            }
        }
        if trace.open == 0 {
            self.traces.remove(&id);
        }
        decided
    }
}

impl Decided {
    fn of(span: SpanData, is_kept: bool) -> Self {
        match is_kept {
            true => Self { kept: vec![span], left_out: 0 },
            false => Self { kept: Vec::new(), left_out: 1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use quarterdeck_contracts::telemetry::SpanKind;

    use super::*;

    fn context(trace: u8, span: u8) -> TraceContext {
        TraceContext { trace_id: [trace; 16], span_id: [span; 8], is_sampled: false, is_remote: false }
    }

    fn span(context: TraceContext, status: SpanStatus) -> SpanData {
        SpanData {
            context,
            parent: None,
            name: "work".into(),
            kind: SpanKind::Internal,
            began: UNIX_EPOCH,
            ended: UNIX_EPOCH,
            attributes: Vec::new(),
            events: Vec::new(),
            links: Vec::new(),
            status,
            dropped: 0,
        }
    }

    #[test]
    fn a_trace_with_an_error_is_kept_as_a_whole_and_a_quiet_one_is_left_out() {
        for (status, kept, left_out) in [(SpanStatus::Error, 2, 0), (SpanStatus::Unset, 0, 2)] {
            let mut traces = OpenTraces::default();
            (1..=2).for_each(|number| traces.begin(context(1, number)));
            assert!(traces.end(span(context(1, 2), status)).kept.is_empty(), "not decided yet");
            let decided = traces.end(span(context(1, 1), SpanStatus::Unset));
            assert_eq!((decided.kept.len(), decided.left_out), (kept, left_out));
            assert_eq!((traces.traces.len(), traces.held_bytes), (0, 0));
        }
    }

    #[test]
    fn what_goes_on_after_the_first_span_follows_its_decision_unless_it_fails() {
        let mut traces = OpenTraces::default();
        (1..=3).for_each(|number| traces.begin(context(1, number)));
        assert_eq!(traces.end(span(context(1, 1), SpanStatus::Unset)).left_out, 1);
        assert_eq!(traces.end(span(context(1, 2), SpanStatus::Unset)).left_out, 1);
        assert_eq!(traces.end(span(context(1, 3), SpanStatus::Error)).kept.len(), 1);
        assert!(traces.traces.is_empty());
    }

    #[test]
    fn an_error_is_kept_also_where_no_more_traces_or_spans_are_held() {
        let mut traces = OpenTraces::default();
        for number in 0..MAX_TRACES + 1 {
            let mut trace_id = [0xee; 16];
            trace_id[..8].copy_from_slice(&(number as u64).to_be_bytes());
            traces.begin(TraceContext { trace_id, ..context(1, 1) });
        }
        assert_eq!(traces.traces.len(), MAX_TRACES);
        assert_eq!(traces.end(span(context(9, 9), SpanStatus::Error)).kept.len(), 1);
        assert_eq!(traces.end(span(context(9, 9), SpanStatus::Unset)).left_out, 1);
        let mut one = OpenTraces::default();
        one.begin(context(1, 1));
        for _ in 0..MAX_SPANS + 5 {
            one.begin(context(1, 2));
            one.end(span(context(1, 2), SpanStatus::Unset));
        }
        assert_eq!(one.traces[&[1; 16]].held.len(), MAX_SPANS);
    }
}
