//! Any text as a `traceparent`: refused, or a span whose header is read again as the same span.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::telemetry::TraceContext;

fuzz_target!(|data: &str| {
    if let Some(context) = TraceContext::parse(data) {
        assert_eq!(TraceContext::parse(&context.to_traceparent()), Some(context));
    }
});
