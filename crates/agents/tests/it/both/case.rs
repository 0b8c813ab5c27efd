//! A case: what happens, and what each agent must come to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::Expect;
use serde_json::Value;

/// Something that may differ between the two.
#[derive(Clone)]
pub(crate) struct Each<T> {
    pub(crate) written: T,
    pub(crate) spoken: T,
}

/// The same in both.
pub(crate) fn both<T: Clone>(it: T) -> Each<T> {
    Each { written: it.clone(), spoken: it }
}

/// What the model does in a turn: messages of calls, one after the other.
pub(crate) type Rounds = Vec<Vec<ScriptedCall>>;

/// A call as a model makes it.
#[derive(Clone)]
pub(crate) struct ScriptedCall {
    pub(crate) name: &'static str,
    /// As it stands on the wire.
    pub(crate) args: String,
    pub(crate) id: Id,
}

#[derive(Clone)]
pub(crate) enum Id {
    /// One that can be relied on.
    Fresh,
    Missing,
    Given(&'static str),
}

pub(crate) fn call(name: &'static str, args: &str) -> ScriptedCall {
    ScriptedCall { name, args: args.to_owned(), id: Id::Fresh }
}

impl ScriptedCall {
    pub(crate) fn without_id(self) -> Self {
        Self { id: Id::Missing, ..self }
    }

    pub(crate) fn with_id(self, id: &'static str) -> Self {
        Self { id: Id::Given(id), ..self }
    }
}

/// What happens.
pub(crate) enum Step {
    /// The user says something, and this is what the model does before it answers.
    Turn(Each<Rounds>),
    /// Time passes.
    Later(Duration),
    /// The reply to the last confirmation request.
    Confirm {
        approves: bool,
        /// Whether a model that speaks is told of it at once and says something.
        is_noted: bool,
    },
}

/// One row of a table.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) steps: Vec<Step>,
    /// What the provider inputs, what the user was told, and what ran.
    pub(crate) expected: Each<Expect>,
}

/// An agent with a model and a user at its ends.
pub(crate) trait Harness: Sized {
    /// Sets everything up for these steps.
    async fn begin(steps: &[Step]) -> Self;
    async fn turn(&mut self, text: &str);
    async fn later(&mut self, time: Duration);
    async fn confirm(&mut self, approves: bool);
    /// What has happened since the last look, one line each.
    async fn seen(&mut self) -> Vec<String>;
    fn runs(&self) -> &Runs;
    /// The column of this harness.
    fn pick<T>(each: &Each<T>) -> &T;
}

/// Plays every case and compares what comes of it.
#[expect(clippy::print_stdout, reason = "it says which case a comparison that fails belongs to")]
pub(crate) async fn play<H: Harness>(cases: Vec<Case>) {
    for case in cases {
        let mut harness = H::begin(&case.steps).await;
        let mut lines = Vec::new();
        let mut turns = 0;
        for step in &case.steps {
            match step {
                Step::Turn(_) => {
                    turns += 1;
                    harness.turn(&format!("Turn {turns}.")).await;
                }
                Step::Later(time) => harness.later(*time).await,
                Step::Confirm { approves, .. } => harness.confirm(*approves).await,
            }
            lines.extend(harness.seen().await);
        }
        lines.push(harness.runs().received());
        println!("{}", case.name);
        H::pick(&case.expected).assert_eq(&format!("{}\n", lines.join("\n")));
    }
}

/// How often each tool has run, with what and in which turn.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<BTreeMap<(String, String), u32>>>);

impl Runs {
    pub(crate) fn count(&self, tool: &str, what: &Value) {
        *self.0.lock().unwrap().entry((tool.to_owned(), what.to_string())).or_default() += 1;
    }

    /// What a tool was run with more than once in a turn.
    pub(crate) fn repeated(&self, tool: &str) -> Vec<String> {
        let runs = self.0.lock().unwrap();
        let repeated = runs.iter().filter(|((of, _), count)| of == tool && **count > 1);
        repeated.map(|((_, what), count)| format!("{what}: {count} times")).collect()
    }

    fn received(&self) -> String {
        let mut ran: BTreeMap<String, u32> = BTreeMap::new();
        for ((tool, _), count) in &*self.0.lock().unwrap() {
            *ran.entry(tool.clone()).or_default() += count;
        }
        let ran: Vec<_> = ran.iter().map(|(tool, count)| format!("{tool} {count}")).collect();
        format!("ran: {}", if ran.is_empty() { "nothing".into() } else { ran.join(", ") })
    }
}

/// Tests of a table, one for each harness.
macro_rules! in_writing_and_in_speech {
    ($cases:ident) => {
        #[tokio::test]
        async fn in_writing() {
            crate::both::case::play::<crate::both::text_harness::TextHarness>($cases()).await;
        }

        #[tokio::test(start_paused = true)]
        async fn in_speech() {
            crate::both::case::play::<crate::both::voice_harness::VoiceCallHarness>($cases()).await;
        }
    };
}
pub(crate) use in_writing_and_in_speech;
