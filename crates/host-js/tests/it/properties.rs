//! Any values and texts, through the glue between the engine and the host and back.

use std::sync::LazyLock;

use proptest::prelude::*;
use quarterdeck_contracts::Outcome;
use quarterdeck_contracts::handler::{Handler, HostError};
use quarterdeck_testkit::FakeContext;
use serde_json::{Map, Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::world::{TEN_SECONDS, host, load};

/// JSON that JavaScript has as it is: its numbers are doubles.
fn any_json() -> impl Strategy<Value = Value> {
    const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;
    let text = prop_oneof!["\\PC{0,12}", any::<String>(), Just("__proto__".to_owned())];
    let number = prop_oneof![
        (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).prop_map(Value::from),
        any::<f64>()
            .prop_filter("a number of JSON", |n| n.is_finite() && n.fract() != 0.0)
            .prop_map(Value::from),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        text.clone().prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        let pairs = prop::collection::vec((text.clone(), inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::from),
            pairs.prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

struct World {
    runtime: Runtime,
    handler: std::sync::Arc<dyn Handler>,
}

impl World {
    /// The host must outlive its handler's calls, and so is never dropped.
    fn new(source: &str) -> Self {
        let host = Box::leak(Box::new(host()));
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, handler: load(host, source) }
    }

    fn run(&self, args: Value) -> Result<Outcome, HostError> {
        let answer = self.runtime.block_on(self.handler.run(args, FakeContext::new(), TEN_SECONDS));
        answer.map(|answer| answer.outcome)
    }
}

static ECHO: LazyLock<World> =
    LazyLock::new(|| World::new("export const execute = ({ args }) => ({ ok: true, data: args.value });"));

static EVERYTHING: LazyLock<World> = LazyLock::new(|| {
    World::new(
        "const attempt = async (work) => { try { return typeof await work(); } catch (error) { return String(error); } };
         export async function execute({ args: { text, value, how }, context }) {
           const seen = [
             await attempt(() => new URL(text, 'https://example.com/').searchParams.toString()),
             await attempt(() => new TextDecoder().decode(new TextEncoder().encode(text))),
             await attempt(() => { context.progress(text); context.audit.log(text, value); context.emit(value); }),
             await attempt(() => { console.log(text, value); console.error(value); }),
             await attempt(() => context.kb.search({ query: text, value })),
             await attempt(() => structuredClone(value)),
             await attempt(() => import(text)),
             await attempt(() => fetch(text, { method: 'POST', body: text })),
           ];
           if (how === 0) throw value;
           if (how === 1) throw new Error(text);
           if (how === 2) throw Object.assign(new Error(text), { type: text, details: value });
           if (how === 3) return value;
           return { ok: true, data: seen.length };
         }",
    )
});

proptest! {
    #[test]
    fn any_arguments_come_back_as_they_are(value in any_json()) {
        let expected = Outcome::Success(value.clone());
        prop_assert_eq!(ECHO.run(json!({ "value": value })).unwrap(), expected);
    }

    #[test]
    fn any_text_and_value_end_in_an_answer_and_never_in_a_fault_of_the_engine(
        text in any::<String>(), value in any_json(), how in 0..6
    ) {
        match EVERYTHING.run(json!({ "text": text, "value": value, "how": how })) {
            Ok(Outcome::Success(data)) if how > 3 => prop_assert_eq!(data, json!(8)),
            Ok(_) | Err(HostError::BadAnswer(_)) => {}
            Err(HostError::Crashed(message)) => {
                prop_assert!(how <= 3 && !message.contains("wasm"), "{}", message);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
