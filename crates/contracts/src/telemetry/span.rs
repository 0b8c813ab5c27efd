//! A span while it is open, and what a recorder gets of it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::TraceContext;

/// How many attributes a span or an event has at most; further ones are dropped and counted.
pub const MAX_ATTRIBUTES: usize = 64;
/// How many events a span has at most; further ones are dropped and counted.
pub const MAX_EVENTS: usize = 64;
/// How many bytes of a text an attribute holds; a longer one is cut at a character.
pub const MAX_TEXT_BYTES: usize = 8 << 10;

/// Takes spans. It is called from the paths of calls, so it neither waits nor does I/O.
pub trait SpanRecorder: Send + Sync {
    /// Gives a span its ids and its time. It need not follow a parent of another process. Each stamp is followed by one
    /// [`SpanRecorder::end`].
    fn begin(&self, parent: Option<TraceContext>) -> SpanStamp;

    /// The time of day, for events and ends.
    fn now(&self) -> SystemTime;

    /// A span is over.
    fn end(&self, span: SpanData);

    /// Whether what users, models and tools say may be in attributes. Sensitive arguments never are.
    fn captures_content(&self) -> bool;
}

/// What a recorder gives a span at its beginning.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names say it")]
pub struct SpanStamp {
    pub context: TraceContext,
    /// The parent, if it is followed.
    pub parent: Option<TraceContext>,
    pub began: SystemTime,
}

/// Whose work a span is, as OpenTelemetry tells them apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SpanKind {
    /// Of this process alone.
    #[default]
    Internal,
    /// A request of another process.
    Server,
    /// A request to another process.
    Client,
}

/// An attribute of a span.
pub type Attribute = (&'static str, AttributeValue);

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum AttributeValue {
    Text(Cow<'static, str>),
    Texts(Vec<Cow<'static, str>>),
    Integer(i64),
    Float(f64),
    Bool(bool),
}

/// Something that happened within a span.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct SpanEvent {
    pub name: &'static str,
    pub at: SystemTime,
    pub attributes: Vec<Attribute>,
}

/// How a span ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SpanStatus {
    /// Nothing is said about it.
    #[default]
    Unset,
    /// It failed, or was refused. The attribute `error.type` says how.
    Error,
}

/// A span that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanData {
    /// Its trace and its own id.
    pub context: TraceContext,
    /// The span that it is a part of.
    pub parent: Option<TraceContext>,
    /// Holds nothing that users or models write.
    pub name: String,
    /// Whose work it is.
    pub kind: SpanKind,
    /// When it began.
    pub began: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// What is known about it. A later value of a name is in the place of an earlier one.
    pub attributes: Vec<Attribute>,
    /// What happened within it.
    pub events: Vec<SpanEvent>,
    /// Spans of other traces that it goes back to.
    pub links: Vec<TraceContext>,
    /// How it ended.
    pub status: SpanStatus,
    /// How many attributes and events were too many.
    pub dropped: u32,
}

impl SpanData {
    /// The value of an attribute.
    pub fn find(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The value of an attribute that is a text.
    pub fn find_text(&self, name: &str) -> Option<&str> {
        match self.find(name)? {
            AttributeValue::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Where a call comes from that another process made: what its span has from there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpanOrigin {
    /// The span that the call is a part of.
    pub parent: Option<TraceContext>,
    /// Another span that led to it.
    pub link: Option<TraceContext>,
    /// The beginning of its name, where the call is a request of that protocol.
    pub request: Option<&'static str>,
    /// What the protocol knows of it.
    pub attributes: &'static [Attribute],
}

impl SpanOrigin {
    /// A call within this span.
    pub fn within(parent: Option<TraceContext>) -> Self {
        Self { parent, ..Self::default() }
    }
}

/// Opens spans, or does nothing where they are switched off.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<dyn SpanRecorder>>);

impl Tracer {
    /// Hands spans to a recorder.
    pub fn new(recorder: Arc<dyn SpanRecorder>) -> Self {
        Self(Some(recorder))
    }

    /// Whether spans are recorded at all.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether what users, models and tools say may be in attributes.
    pub fn captures_content(&self) -> bool {
        self.0.as_ref().is_some_and(|recorder| recorder.captures_content())
    }

    /// Opens a span within another, or as the first of a trace. The name is made only if it is needed.
    pub fn begin(&self, parent: Option<TraceContext>, kind: SpanKind, name: impl FnOnce() -> String) -> Span {
        let Some(recorder) = &self.0 else { return Span::none() };
        let SpanStamp { context, parent, began } = recorder.begin(parent);
        let data = SpanData {
            context,
            parent,
            name: name(),
            kind,
            began,
            ended: began,
            attributes: Vec::with_capacity(16),
            events: Vec::new(),
            links: Vec::new(),
            status: SpanStatus::Unset,
            dropped: 0,
        };
        Span(Some(Box::new(OpenSpan { recorder: recorder.clone(), data })))
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tracer").field(&self.is_on()).finish()
    }
}

/// An open span; dropping it ends it. Of one that is switched off every method does nothing.
#[derive(Debug, Default)]
pub struct Span(Option<Box<OpenSpan>>);

struct OpenSpan {
    recorder: Arc<dyn SpanRecorder>,
    data: SpanData,
}

impl Span {
    /// One that is switched off.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Whether it is recorded. What costs something to find out is found out only then.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether it may hold what users, models and tools say.
    pub fn captures_content(&self) -> bool {
        self.0.as_ref().is_some_and(|open| open.recorder.captures_content())
    }

    /// What its parts have as their parent.
    pub fn context(&self) -> Option<TraceContext> {
        self.0.as_ref().map(|open| open.data.context)
    }

    /// Sets an attribute, in the place of an earlier value of it.
    pub fn set(&mut self, name: &'static str, value: impl Into<AttributeValue>) {
        let Some(open) = &mut self.0 else { return };
        open.data.dropped += set(&mut open.data.attributes, name, value.into());
    }

    /// Sets an attribute if there is a value for it.
    pub fn set_some(&mut self, name: &'static str, value: Option<impl Into<AttributeValue>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Says that it began so long before it was opened.
    pub fn set_begun_ago(&mut self, ago: Duration) {
        let Some(open) = &mut self.0 else { return };
        open.data.began = open.data.began.checked_sub(ago).unwrap_or(open.data.began);
    }

    /// Adds something that happens now.
    pub fn add_event(&mut self, name: &'static str, attributes: impl IntoIterator<Item = Attribute>) {
        let Some(open) = &mut self.0 else { return };
        if open.data.events.len() >= MAX_EVENTS {
            open.data.dropped += 1;
            return;
        }
        let mut kept = Vec::new();
        for (name, value) in attributes {
            open.data.dropped += set(&mut kept, name, value);
        }
        open.data.events.push(SpanEvent { name, at: open.recorder.now(), attributes: kept });
    }

    /// Links a span of another trace that this one goes back to.
    pub fn link(&mut self, to: Option<TraceContext>) {
        if let (Some(open), Some(to)) = (&mut self.0, to) {
            open.data.links.push(to);
        }
    }

    /// Says that it failed or was refused, with the kind of error. Such a span is kept whatever the sampling.
    pub fn fail(&mut self, kind: impl Into<Cow<'static, str>>) {
        let Some(open) = &mut self.0 else { return };
        open.data.status = SpanStatus::Error;
        self.set(super::names::ERROR_TYPE, AttributeValue::Text(kind.into()));
    }
}

impl fmt::Debug for OpenSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Attributes may hold content.
        f.debug_struct("OpenSpan").field("context", &self.data.context).finish_non_exhaustive()
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(open) = self.0.take() else { return };
        let OpenSpan { recorder, mut data } = *open;
        // A clock that was set back must not make it end before it began.
        data.ended = recorder.now().max(data.began);
        recorder.end(data);
    }
}

/// How many attributes were dropped by it.
fn set(attributes: &mut Vec<Attribute>, name: &'static str, mut value: AttributeValue) -> u32 {
    if let AttributeValue::Text(text) = &mut value {
        cut(text);
    }
    if let Some((_, known)) = attributes.iter_mut().find(|(known, _)| *known == name) {
        *known = value;
    } else if attributes.len() < MAX_ATTRIBUTES {
        attributes.push((name, value));
    } else {
        return 1;
    }
    0
}

fn cut(text: &mut Cow<'static, str>) {
    if text.len() > MAX_TEXT_BYTES {
        let end = text.floor_char_boundary(MAX_TEXT_BYTES);
        text.to_mut().truncate(end);
    }
}

impl From<&'static str> for AttributeValue {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<f64> for AttributeValue {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<bool> for AttributeValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::UNIX_EPOCH;

    use super::*;

    #[derive(Default)]
    struct Kept(Mutex<Vec<SpanData>>);

    impl SpanRecorder for Kept {
        fn begin(&self, parent: Option<TraceContext>) -> SpanStamp {
            let trace_id = parent.map_or([1; 16], |parent| parent.trace_id);
            let context = TraceContext { trace_id, span_id: [2; 8], is_sampled: true, is_remote: false };
            SpanStamp { context, parent, began: UNIX_EPOCH + Duration::from_secs(10) }
        }

        fn now(&self) -> SystemTime {
            UNIX_EPOCH
        }

        fn end(&self, span: SpanData) {
            self.0.lock().unwrap().push(span);
        }

        fn captures_content(&self) -> bool {
            false
        }
    }

    fn record(fill: impl FnOnce(&mut Span)) -> SpanData {
        let kept = Arc::new(Kept::default());
        let mut span = Tracer::new(kept.clone()).begin(None, SpanKind::Internal, || "work".into());
        fill(&mut span);
        drop(span);
        kept.0.lock().unwrap().pop().unwrap()
    }

    #[test]
    fn a_dropped_span_is_handed_over_once_and_does_not_end_before_it_began() {
        let span = record(|span| span.fail("RATE_LIMIT"));
        assert_eq!((span.began, span.status), (span.ended, SpanStatus::Error));
        assert_eq!(span.find_text("error.type"), Some("RATE_LIMIT"));
    }

    #[test]
    fn a_span_is_bounded_whatever_is_put_into_it() {
        let span = record(|span| {
            for _ in 0..100 {
                span.add_event("event", []);
            }
            for number in 0..100 {
                span.set(Box::leak(format!("name.{number}").into_boxed_str()), "ü".repeat(MAX_TEXT_BYTES));
            }
            span.set("name.0", 1_u64);
        });
        assert_eq!((span.attributes.len(), span.events.len()), (MAX_ATTRIBUTES, MAX_EVENTS));
        assert_eq!(span.dropped, 72);
        assert_eq!(span.find("name.0"), Some(&AttributeValue::Integer(1)));
        assert_eq!(span.find_text("name.1").map(str::len), Some(MAX_TEXT_BYTES));
    }

    #[test]
    fn a_span_that_is_switched_off_computes_nothing() {
        let mut span = Tracer::default().begin(None, SpanKind::Client, || unreachable!("no name is needed"));
        span.set("a", 1_u64);
        span.fail("b");
        assert!(span.context().is_none() && !span.is_on());
    }
}
