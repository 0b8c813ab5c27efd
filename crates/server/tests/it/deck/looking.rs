//! The deck's views.

use std::io::Write;

use serde_json::json;

use super::{client_with_call, get};
use crate::world::World;

#[tokio::test]
async fn the_overview_shows_tool_health() {
    let world = World::new().await;
    let idle = get(&world, "overview").await;
    assert_eq!(idle["tools"][0]["health"], "idle");
    client_with_call(&world).await;
    let overview = get(&world, "overview").await;
    let probe = &overview["tools"][0];
    assert_eq!((&probe["id"], &probe["version"]), (&json!("probe"), &json!("1.2.3")));
    assert_eq!((&probe["health"], &probe["lately"]["calls"]), (&json!("well"), &json!(1)));
    assert_eq!((&probe["figures"]["calls"], &probe["figures"]["errors"]), (&json!(1), &json!(0)));
    assert_eq!(overview["sessions"]["text"], 1);
    assert_eq!(overview["registry"]["commit"], "a1b2c3d4");
    assert_eq!(overview["models"]["text"], "scripted/1");
    assert_eq!(overview["audit"], json!({ "isKept": true, "lostLines": 0 }));
}

#[tokio::test]
async fn the_series_starts_with_the_server() {
    let world = World::new().await;
    let hour = get(&world, "series?range=hour").await;
    assert_eq!((hour["at"].as_array().unwrap().len(), &hour["everyMs"]), (1, &json!(10_000)));
    let at = hour["at"][0].as_u64().unwrap();
    assert_eq!(get(&world, &format!("series?after={at}")).await["at"], json!([]));
    assert_eq!(get(&world, "series?range=days").await["everyMs"], 300_000);
    for bad in ["range=year", "after=-1", "after=x", "after=9007199254740992"] {
        let refused = world.get(&format!("/api/deck/series?{bad}")).send().await;
        assert_eq!(refused.refusal().0, 400, "{bad}");
    }
}

#[tokio::test]
async fn a_timeline_starts_with_the_session() {
    let world = World::new().await;
    let (_, client, session) = client_with_call(&world).await;
    client_with_call(&world).await;
    let list = get(&world, "sessions").await;
    assert_eq!((list["sessions"].as_array().unwrap().len(), &list["isComplete"]), (2, &json!(true)));
    let theirs = get(&world, &format!("sessions?client={client}&active=true&mode=text")).await;
    assert_eq!(theirs["sessions"][0]["id"], session);
    assert_eq!(get(&world, "sessions?mode=voice").await["sessions"], json!([]));
    let one = get(&world, &format!("sessions/{session}")).await;
    let told: Vec<String> = one["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| format!("{} {}", line["event"].as_str().unwrap(), line["step"].as_str().unwrap_or("")))
        .collect();
    let expected = ["session_start ", "confirmation requested", "confirmation approved", "tool_execution "];
    assert_eq!(told, expected);
    assert_eq!((&one["state"]["isActive"], &one["isComplete"]), (&json!(true), &json!(true)));
    assert_eq!(one["timeline"][3]["gates"][0]["decision"], "approved");
    for bad in ["limit=0", "limit=201", "mode=song", "sort=client"] {
        let refused = world.get(&format!("/api/deck/sessions?{bad}")).send().await;
        assert_eq!(refused.refusal().0, 400, "{bad}");
    }
    assert_eq!(world.get("/api/deck/sessions/unknown").send().await.refusal().0, 404);
}

#[tokio::test]
async fn the_audit_log_is_searched_from_its_end_page_by_page() {
    let world = World::new().await;
    let (_, client, session) = client_with_call(&world).await;
    client_with_call(&world).await;
    let found = get(&world, &format!("audit?session={session}&event=tool_execution")).await;
    assert_eq!(found["lines"].as_array().unwrap().len(), 1);
    assert_eq!((&found["lines"][0]["clientId"], &found["next"]), (&json!(client), &json!(null)));
    let newest = get(&world, "audit?limit=1").await;
    let seq = newest["lines"][0]["seq"].as_u64().unwrap();
    let older = get(&world, &format!("audit?limit=1&before={}", newest["next"])).await;
    assert_eq!(older["lines"][0]["seq"], seq - 1);
    let text = get(&world, &format!("audit?text={}", client.to_uppercase())).await;
    assert!(!text["lines"].as_array().unwrap().is_empty());
    assert_eq!(get(&world, "audit?since=2100-01-01T00:00:00Z").await["lines"], json!([]));
    assert_eq!(get(&world, "audit?tool=&before=0").await["lines"], json!([]));
    let long = "x".repeat(201);
    for bad in
        ["limit=0", "limit=201", "since=yesterday", "until=", "before=-1", "what=1", &format!("text={long}")]
    {
        let refused = world.get(&format!("/api/deck/audit?{bad}")).send().await;
        assert_eq!(refused.refusal().0, 400, "{bad}");
    }
}

#[tokio::test]
async fn damaged_lines_are_counted_where_they_are_passed_over() {
    let world = World::new().await;
    client_with_call(&world).await;
    // The server itself reports the change with a line of its own, sooner or later.
    let calls = async || get(&world, "audit?event=tool_execution").await;
    let before = calls().await;
    assert_eq!((&before["damagedLines"], before["lines"].as_array().unwrap().len()), (&json!(0), 1));
    let mut file = std::fs::OpenOptions::new().append(true).open(&world.audit_log).unwrap();
    file.write_all(b"no json\n[1]\n\xff\n").unwrap();
    let after = calls().await;
    assert_eq!((&after["damagedLines"], &after["lines"]), (&json!(3), &before["lines"]));
    // Whatever is searched for: they might have been what is looked for.
    assert_eq!(get(&world, "audit?session=unknown").await["damagedLines"], 3);
}

#[tokio::test]
async fn a_tool_that_finds_nothing_is_well_and_one_that_breaks_is_failing() {
    let world = World::new().await;
    let play = async |what: &str, times: usize| {
        let body = json!({ "tool": "probe", "args": { "do": what }, "approve": true });
        let mut types = Vec::new();
        for _ in 0..times {
            let played = world.post("/api/deck/playground", &body).send().await.json();
            types.push(played["response"]["error"]["type"].clone());
        }
        types.dedup();
        types
    };
    assert_eq!(play("find nothing", 8).await, ["NOT_FOUND"]);
    let probe = get(&world, "overview").await["tools"][0].clone();
    assert_ne!(probe["health"], "failing");
    assert_eq!(probe["lately"], json!({ "calls": 8, "errors": 0 }));
    assert_eq!(play("break", 2).await, ["PERMANENT"]);
    let probe = get(&world, "overview").await["tools"][0].clone();
    assert_eq!(
        (&probe["health"], &probe["lately"]),
        (&json!("failing"), &json!({ "calls": 10, "errors": 2 }))
    );
}

#[tokio::test]
async fn verification_detects_a_tampered_audit_log() {
    let world = World::new().await;
    client_with_call(&world).await;
    let verify = || world.ask("POST", "/api/deck/audit/verify").send();
    let whole = verify().await.json();
    assert_eq!((&whole["isWhole"], &whole["fault"]), (&json!(true), &json!(null)));
    assert!(whole["lines"].as_u64().unwrap() >= 4);
    let text = std::fs::read_to_string(&world.audit_log).unwrap();
    let mut file = std::fs::OpenOptions::new().write(true).open(&world.audit_log).unwrap();
    file.write_all(text.replacen("session_start", "session_stolen"[..13].as_ref(), 1).as_bytes()).unwrap();
    let broken = verify().await.json();
    assert_eq!(broken["isWhole"], false);
    assert!(broken["fault"].as_str().unwrap().contains("line 1"), "{broken}");
}

#[tokio::test]
async fn the_registry_is_shown_with_its_changes() {
    let world = World::new().await;
    let registry = get(&world, "registry").await;
    assert_eq!(registry["tools"][0]["parameters"]["required"], json!(["do"]));
    assert_eq!(registry["change"]["previous"], "1.0.0badcafe");
    let expected = json!({ "tool": "probe", "effect": "breaks", "what": "`do` is required", "example": {} });
    assert_eq!(registry["change"]["changes"][0], expected);
}
