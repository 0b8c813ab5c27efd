//! A model that fails: what clients, probes, operators and scrapers are told, until it answers again.

use std::time::Duration;

use serde_json::{Value, json};

use crate::http::Answer;
use crate::world::World;

async fn chat(world: &World, text: &str) -> Answer {
    world.post("/api/chat", &json!({ "message": text })).send().await
}

async fn complete(world: &World, text: &str, stream: bool) -> Answer {
    let body = json!({ "messages": [{ "role": "user", "content": text }], "stream": stream });
    world.post("/v1/chat/completions", &body).send().await
}

async fn get(world: &World, target: &str) -> Value {
    let answer = world.get(target).send().await;
    assert_eq!(answer.status, 200, "{target}");
    answer.json()
}

async fn prometheus(world: &World) -> String {
    world.get("/metrics?format=prometheus").send().await.text()
}

#[tokio::test]
async fn a_failing_model_is_told_of_everywhere_until_it_answers() {
    let world = World::new().await;
    assert_eq!(get(&world, "/api/me").await["modelTrouble"], Value::Null);
    let failed = chat(&world, "fail unreachable").await;
    let errors: Vec<_> = failed.events().into_iter().filter(|part| part["type"] == "error").collect();
    let [error] = &errors[..] else { panic!("{}", failed.text()) };
    let told: Value = serde_json::from_str(error["errorText"].as_str().unwrap()).unwrap();
    assert_eq!((&told["type"], &told["retryable"]), (&json!("TRANSIENT"), &json!(true)));
    chat(&world, "fail rate_limited").await;

    let trouble = get(&world, "/api/me").await["modelTrouble"].take();
    assert_eq!(
        (&trouble["model"], &trouble["kind"], &trouble["failures"], &trouble["fallback"]),
        (&json!("scripted/1"), &json!("rate_limited"), &json!(2), &Value::Null)
    );
    let since = trouble["since"].as_str().unwrap();
    let ready = get(&world, "/readyz").await;
    assert_eq!((&ready["ready"], &ready["degraded"]), (&json!(true), &json!(true)));
    let reason =
        format!("model scripted/1 failing since {since} (rate_limited, 2 in a row); no model answers");
    assert_eq!(ready["reasons"], json!([reason]));
    assert_eq!(get(&world, "/api/deck/overview").await["models"]["trouble"], trouble);
    let models = get(&world, "/metrics").await["models"].take();
    let model = &models["scripted/1"];
    assert_eq!((&model["requests"], &model["isFailing"]), (&json!(2), &json!(true)), "{models:#}");
    assert_eq!(model["errors"], json!({ "unreachable": 1, "rate_limited": 1 }));
    let text = prometheus(&world).await;
    for line in [
        "quarterdeck_model_errors_total{provider=\"scripted\",model=\"1\",kind=\"rate_limited\"} 1",
        "quarterdeck_model_failing{provider=\"scripted\",model=\"1\"} 1",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }

    chat(&world, "hello").await;
    assert_eq!(get(&world, "/api/me").await["modelTrouble"], Value::Null);
    let ready = get(&world, "/readyz").await;
    assert_eq!((&ready["degraded"], &ready["reasons"]), (&json!(false), &json!([])));
    assert_eq!(get(&world, "/api/deck/overview").await["models"]["trouble"], Value::Null);
    let model = get(&world, "/metrics").await["models"]["scripted/1"].take();
    assert_eq!((&model["answered"], &model["isFailing"]), (&json!(1), &json!(false)));
    assert_eq!((&model["tokens"]["input"], &model["tokens"]["uncached"]), (&json!(3), &json!(3)));
    assert!(model["firstToken"]["p50"].is_number(), "{model}");
    assert!(
        prometheus(&world).await.contains("quarterdeck_model_failing{provider=\"scripted\",model=\"1\"} 0")
    );
}

#[tokio::test]
async fn the_openai_api_answers_trouble_of_the_provider_with_a_status_of_its_own() {
    let world = World::new().await;
    for (kind, status, retry_after, kind_of_error) in [
        ("unreachable", 503, Some("5"), "server_error"),
        ("overloaded", 503, Some("5"), "server_error"),
        ("silent", 503, Some("5"), "server_error"),
        // The model asks for these.
        ("rate_limited", 429, Some("17"), "rate_limit_error"),
        ("unauthorised", 502, Some("60"), "server_error"),
        ("rejected", 502, Some("60"), "server_error"),
        ("cut", 502, Some("5"), "server_error"),
        ("garbled", 502, Some("5"), "server_error"),
        ("too_long", 400, None, "invalid_request_error"),
        ("refused", 400, None, "invalid_request_error"),
    ] {
        for stream in [false, true] {
            let answer = complete(&world, &format!("fail {kind}"), stream).await;
            assert_eq!(
                (answer.status, answer.header("retry-after")),
                (status, retry_after),
                "{kind} {stream}: {}",
                answer.text()
            );
            assert_eq!(answer.json()["error"]["type"], kind_of_error, "{kind}");
            let may_retry = !matches!(kind, "unauthorised" | "rejected" | "too_long" | "refused");
            assert_eq!(answer.header("x-should-retry"), (!may_retry).then_some("false"), "{kind}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_has_begun_ends_with_the_error_inside() {
    let world = World::new().await;
    let answer = complete(&world, "half cut", true).await;
    assert_eq!(answer.status, 200);
    let events = answer.events();
    assert_eq!(events[1]["choices"][0]["delta"]["content"], "Well, ", "{}", answer.text());
    assert_eq!(events.last().unwrap()["error"]["type"], "server_error", "{}", answer.text());
    assert_eq!(complete(&world, "half cut", false).await.status, 502, "a whole answer has no half");
}

#[tokio::test]
async fn clients_are_kept_from_repeating_a_request_for_which_tools_have_run() {
    let world = World::new().await;
    let answer = complete(&world, "call then fail", false).await;
    assert_eq!((answer.status, answer.header("x-should-retry")), (503, Some("false")), "{}", answer.text());
    assert_eq!(complete(&world, "call then fail", true).await.status, 200, "the answer has begun by then");
}

#[tokio::test(start_paused = true)]
async fn a_stream_begins_without_the_model_before_proxies_give_up() {
    let world = World::new().await;
    let body = json!({ "messages": [{ "role": "user", "content": "never" }], "stream": true });
    let began = tokio::time::Instant::now();
    let mut open = world.post("/v1/chat/completions", &body).open().await;
    assert!(began.elapsed() >= Duration::from_secs(45), "{:?}", began.elapsed());
    assert_eq!(open.head().status, 200);
    open.until("\"role\":\"assistant\"").await;
}
