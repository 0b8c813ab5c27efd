//! What plays the model in a call: a live provider, or a pipeline of engines.

use std::time::Instant;

use serde_json::{Value, json};

use super::provider::Provider;
use super::server::{Site, TIMEOUT};
use super::speech_engines::SpeechEngines;

pub(crate) enum VoiceModel {
    Live(Provider),
    Pipeline(SpeechEngines),
}

impl VoiceModel {
    /// One of each kind that plays these turns.
    pub(crate) async fn each(turns: &Value) -> [Self; 2] {
        [Self::Live(Provider::with_turns(turns).await), Self::Pipeline(SpeechEngines::playing(turns))]
    }

    pub(crate) fn site(&self) -> Site {
        match self {
            Self::Live(provider) => Site::new(&provider.address),
            Self::Pipeline(engines) => Site::with_pipeline(&engines.base_url()),
        }
    }

    /// From now on it takes nothing and answers nothing.
    pub(crate) fn stop_reading(&self) {
        match self {
            Self::Live(provider) => provider.stop_reading(),
            Self::Pipeline(engines) => engines.pause(),
        }
    }

    /// Goes on. What it had not taken is lost.
    pub(crate) fn resume_reading(&self) {
        match self {
            Self::Live(provider) => provider.resume_reading(),
            Self::Pipeline(engines) => engines.resume(),
        }
    }

    /// What a call that the model had made before the server died was answered after it: once, and with this.
    pub(crate) async fn answer_after_restart(&self) -> Value {
        match self {
            Self::Live(provider) => {
                let report =
                    provider.wait_for_report("the turn that was cut", |report| report.turns == 2).await;
                let answers: Vec<_> =
                    report.calls.iter().map(|call| (call.connection, call.answers.len())).collect();
                assert_eq!(answers, [(1, 0), (2, 1)], "{report:#?}");
                report.calls[1].answers[0].clone()
            }
            Self::Pipeline(engines) => wait_for_result(engines).await,
        }
    }

    /// A live provider has found no fault with its client. Engines over HTTP find none.
    pub(crate) fn assert_clean(&self) {
        if let Self::Live(provider) = self {
            assert_eq!(provider.report().faults, [""; 0]);
        }
    }
}

/// The only result that a chat model was shown, in the form that a live provider gets: `output` or `error`.
async fn wait_for_result(engines: &SpeechEngines) -> Value {
    let since = Instant::now();
    loop {
        let requests = engines.requests();
        let results: Vec<_> =
            requests.last().into_iter().flatten().filter(|it| it["role"] == "tool").collect();
        if let [result] = results[..] {
            let content = result["content"].as_str().unwrap();
            let shown: Value = serde_json::from_str(content).unwrap_or_else(|_| panic!("{content}"));
            let part = if shown["ok"] == true { ("output", "data") } else { ("error", "error") };
            return json!({ part.0: shown[part.1] });
        }
        assert!(since.elapsed() < TIMEOUT, "no result came: {requests:#?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
