//! The two forms of the metrics.

use expect_test::expect;

use super::*;
use crate::latency::Schedule;

fn some() -> Metrics {
    let metrics = Metrics::default();
    let tool: Arc<str> = "kb_search".into();
    for (size, ms, error) in [(320, 9, None), (890, 41, None), (10, 77, Some(ErrorType::Transient))] {
        let duration = Duration::from_millis(ms);
        metrics.record_execution(&tool, Sample { size, duration, error, slow: ms > 50, ended_ms: 0 });
    }
    metrics.record_replay(&tool);
    metrics.record_refusal(&tool, "budget");
    metrics.session_opened(Mode::Text);
    metrics.session_opened(Mode::Voice);
    metrics.session_ended(Mode::Voice);
    metrics.turn_started();
    metrics.tracked_turns().store(3, Ordering::Relaxed);
    metrics.context(3_200, 9_300, 18_100, 1_000_000);
    metrics
}

/// What is logged on this thread while something is done.
fn logged(what: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, what);
    String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
}

#[test]
fn a_p95_over_1500_characters_is_warned_about_once_with_the_tools_name() {
    let answers = |count: usize, size: usize| {
        let metrics = Metrics::default();
        logged(|| {
            for _ in 0..count {
                let sample = Sample { size, duration: Duration::ZERO, error: None, slow: false, ended_ms: 0 };
                metrics.record_execution(&"kb_search".into(), sample);
            }
        })
    };
    let log = answers(100, 1_501);
    let warnings: Vec<_> =
        log.lines().filter(|line| line.contains("responses of a tool are large")).collect();
    let [warning] = warnings[..] else { panic!("{log}") };
    assert!(
        warning.contains("WARN") && warning.contains("tool=kb_search") && warning.contains("p95=1501"),
        "{warning}"
    );
    assert_eq!(answers(100, 1_500), "", "1,500 is not too much");
    assert_eq!(answers(19, 9_000), "", "a few answers have no p95");
}

#[test]
fn a_few_long_answers_are_not_warned_about() {
    let metrics = Metrics::default();
    let log = logged(|| {
        for number in 0..1_000 {
            let size = if number % 25 == 24 { 50_000 } else { 100 };
            let sample = Sample { size, duration: Duration::ZERO, error: None, slow: false, ended_ms: 0 };
            metrics.record_execution(&"kb_search".into(), sample);
        }
    });
    assert_eq!(log, "");
}

#[test]
fn a_window_that_is_more_than_nine_tenths_full_is_warned_about() {
    let used = |tokens: u64, window: u64| logged(|| Metrics::default().context(10, 10, tokens, window));
    let warning = used(901, 1_000);
    assert!(warning.contains("WARN") && warning.contains("more than 90 %"), "{warning}");
    assert!(warning.contains("used=901") && warning.contains("window=1000"), "{warning}");
    assert_eq!(used(900, 1_000), "");
    assert_eq!(used(5_000, 0), "", "a model whose window is not known");
}

#[test]
fn metrics_are_written_as_json() {
    expect![[r#"
        {
          "responseSizes": {
            "kb_search": {
              "p50": 320,
              "p95": 890,
              "p99": 890
            }
          },
          "responseTokens": {
            "kb_search": {
              "avg": 102,
              "p95": 223
            }
          },
          "latency": {
            "kb_search": {
              "avg": 42.333,
              "p50": 41.0,
              "p95": 77.0,
              "p99": 77.0
            }
          },
          "context": {
            "sessionInitTokens": 12500,
            "systemPromptTokens": 3200,
            "toolDeclTokens": 9300,
            "peakTokens": 18100
          },
          "loopDetection": {
            "activeSessions": 1,
            "totalTurnsTracked": 3
          },
          "tools": {
            "kb_search": {
              "calls": 3,
              "errors": 1,
              "errorTypes": {
                "TRANSIENT": 1
              },
              "avgDuration": 42.333,
              "p50": 41.0,
              "p95": 77.0,
              "p99": 77.0,
              "cacheHits": 1,
              "overBudget": 1,
              "refused": {
                "budget": 1
              },
              "scheduled": {}
            }
          },
          "models": {},
          "voice": {},
          "versions": {},
          "mcp": {
            "requests": {}
          },
          "sessions": {
            "active": 1,
            "text": 1,
            "voice": 0,
            "total": 2
          },
          "audit": {
            "lostLines": 0
          }
        }"#]]
    .assert_eq(&format!("{:#}", some().json()));
}

#[test]
fn prometheus_reads_its_own_format() {
    let text = some().prometheus();
    for line in [
        "# TYPE quarterdeck_tool_calls_total counter",
        "quarterdeck_tool_calls_total{tool=\"kb_search\"} 3",
        "quarterdeck_tool_errors_total{tool=\"kb_search\",type=\"TRANSIENT\"} 1",
        "quarterdeck_tool_refusals_total{tool=\"kb_search\",gate=\"budget\"} 1",
        "# TYPE quarterdeck_tool_duration_seconds histogram",
        "quarterdeck_tool_duration_seconds_bucket{tool=\"kb_search\",le=\"0.025\"} 1",
        "quarterdeck_tool_duration_seconds_bucket{tool=\"kb_search\",le=\"0.05\"} 2",
        "quarterdeck_tool_duration_seconds_bucket{tool=\"kb_search\",le=\"+Inf\"} 3",
        "quarterdeck_tool_duration_seconds_count{tool=\"kb_search\"} 3",
        "quarterdeck_sessions_active{mode=\"text\"} 1",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
    }
    let fits = |line: &str| line.is_empty() || line.starts_with("# ") || line.starts_with("quarterdeck_");
    assert!(text.lines().all(fits));
}

/// The buckets of several nodes can be added, which percentiles cannot.
#[test]
fn buckets_of_two_nodes_add_up_to_those_of_one() {
    let buckets = |nodes: &[&[u64]]| -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for durations in nodes {
            let metrics = Metrics::default();
            for ms in *durations {
                let duration = Duration::from_millis(*ms);
                metrics.record_execution(
                    &"look".into(),
                    Sample { size: 1, duration, error: None, slow: false, ended_ms: 0 },
                );
            }
            metrics.run_upkeep();
            for line in metrics.prometheus().lines().filter(|line| line.contains("duration_seconds_bucket")) {
                let (bucket, count) = line.rsplit_once(' ').unwrap();
                *sums.entry(bucket.to_owned()).or_default() += count.parse::<u64>().unwrap();
            }
        }
        sums
    };
    let one = buckets(&[&[1, 7, 40, 41, 300, 90_000]]);
    assert_eq!(one.len(), 15);
    assert_eq!(one["quarterdeck_tool_duration_seconds_bucket{tool=\"look\",le=\"0.05\"}"], 4);
    assert_eq!(buckets(&[&[7, 300], &[1, 40, 41, 90_000]]), one);
}

#[test]
fn counters_are_the_same_for_programs() {
    let metrics = Metrics::default();
    let tool: Arc<str> = "kb_search".into();
    for ms in 1..=100 {
        let error = (ms % 10 == 0).then_some(ErrorType::Transient);
        let duration = Duration::from_millis(ms);
        metrics.record_execution(&tool, Sample { size: 400, duration, error, slow: ms > 90, ended_ms: 0 });
    }
    metrics.record_refusal(&tool, "budget");
    metrics.record_replay(&tool);
    for (place, schedule) in Schedule::ALL.into_iter().enumerate() {
        (0..=place).for_each(|_| metrics.record_schedule(&tool, schedule));
    }
    metrics.session_opened(Mode::Voice);
    let counters = metrics.counters();
    assert_eq!((counters.text, counters.voice, counters.total), (0, 1, 1));
    let expected = ToolCounters {
        calls: 100,
        errors: 10,
        refused: 1,
        cache_hits: 1,
        over_budget: 10,
        scheduled_inline: 1,
        scheduled_filler: 2,
        scheduled_background: 3,
        scheduled_refuse: 4,
        average: 50.5,
        p50: 50.0,
        p95: 95.0,
        p99: 99.0,
        tokens_average: 100,
        tokens_p95: 100,
    };
    assert_eq!(counters.tools, [(tool, expected)]);
}

#[test]
fn the_last_samples_have_percentiles_of_their_own() {
    let metrics = Metrics::default();
    let tool: Arc<str> = "kb_search".into();
    for ms in [500, 500, 500, 10, 30] {
        let duration = Duration::from_millis(ms);
        metrics.record_execution(
            &tool,
            Sample { size: 4 * ms as usize, duration, error: None, slow: false, ended_ms: 0 },
        );
    }
    let snapshot = metrics.snapshot();
    assert_eq!(snapshot.counters, metrics.counters());
    let last = Percentiles { p50: 10.0, p95: 30.0, tokens_average: 20, tokens_p95: 30 };
    assert_eq!(snapshot.percentiles("kb_search", 2), Some(last));
    assert_eq!(snapshot.percentiles("kb_search", 9).unwrap().p50, 500.0, "all that there are");
    assert_eq!((snapshot.percentiles("kb_search", 0), snapshot.percentiles("unheard_of", 1)), (None, None));
}
