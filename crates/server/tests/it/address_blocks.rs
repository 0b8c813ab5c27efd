//! Clients that come back as others.

use quarterdeck_runtime::find_block;
use quarterdeck_server::Settings;
use serde_json::json;

use crate::http::Ask;
use crate::world::World;

const HERE: &str = "203.0.113.7";
const ELSEWHERE: &str = "203.0.113.8";
const SHOP: &str = "https://shop.example";
const HEADER: &str = "x-quarterdeck-session";

async fn world(settings: Settings) -> World {
    World::with(Settings { trust_proxy: true, origins: vec![SHOP.into()], ..settings }).await
}

fn from(ask: Ask, address: &str) -> Ask {
    ask.with("x-forwarded-for", address)
}

fn say(world: &World, text: &str, address: &str) -> Ask {
    from(world.post("/api/chat", &json!({ "message": text })), address)
}

/// A visitor who was blocked by a tool; the cookie.
async fn blocked_visitor(world: &World, address: &str) -> String {
    let cookie = from(world.get("/api/me"), address).send().await.cookie().unwrap();
    let asked = say(world, "call block me", address).with("cookie", &cookie).send().await;
    let decision = json!({ "token": asked.event("data-confirmation")["data"]["token"], "approve": true });
    let done =
        from(world.post("/api/confirmations", &decision), address).with("cookie", &cookie).send().await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(say(world, "hello", address).with("cookie", &cookie).send().await.refusal().1, "BLOCKED");
    cookie
}

#[tokio::test]
async fn a_blocked_visitor_who_drops_the_cookie_is_still_blocked() {
    let world = world(Settings::default()).await;
    let other = from(world.get("/api/me"), HERE).send().await.cookie().unwrap();
    let cookie = blocked_visitor(&world, HERE).await;
    for ask in [
        say(&world, "hello", HERE),
        say(&world, "hello", HERE).with("origin", SHOP),
        say(&world, "hello", HERE).with("cookie", "quarterdeck_client=forged"),
        // What a client says about earlier hops does not count.
        say(&world, "hello", "198.51.100.1, 203.0.113.7"),
        from(world.post("/api/voice/ticket", &json!({})), HERE),
        from(
            world.post("/v1/chat/completions", &json!({ "messages": [{ "role": "user", "content": "a" }] })),
            HERE,
        ),
        from(world.get("/voice"), HERE),
    ] {
        let answer = ask.send().await;
        assert_eq!(answer.status, 403, "{}", answer.text());
        assert!(answer.json()["timeoutUntil"].is_string());
        assert_eq!(answer.header("set-cookie"), None);
    }
    // It is told for how long, and gets no cookie with which it would not be new.
    let me = from(world.get("/api/me"), HERE).send().await;
    assert_eq!((me.status, me.header("set-cookie")), (200, None));
    assert_eq!(me.json()["block"]["message"], "Please calm down.");
    let document = from(world.get("/"), HERE).send().await;
    assert_eq!((document.status, document.header("set-cookie")), (200, None));
    // Others are not held by it: those who were here before, and those who are elsewhere.
    assert_eq!(say(&world, "hello", HERE).with("cookie", &other).send().await.status, 200);
    assert_eq!(say(&world, "hello", ELSEWHERE).send().await.status, 200);
    // Lifting the client's block lifts it.
    let client =
        from(world.get("/api/me"), HERE).with("cookie", &cookie).send().await.json()["clientId"].clone();
    let lifted =
        quarterdeck_runtime::lift_block(&*world.store, client.as_str().unwrap(), world.orchestrator.now_ms());
    assert!(lifted.await.unwrap());
    assert_eq!(say(&world, "hello", HERE).send().await.status, 200);
}

#[tokio::test]
async fn a_blocked_visitor_who_drops_the_session_token_is_still_blocked() {
    let world = world(Settings::default()).await;
    let page = |text: &str| say(&world, text, HERE).with("origin", SHOP);
    let asked = page("call block me").send().await;
    let token = asked.event("start")["messageMetadata"]["sessionToken"].as_str().unwrap().to_owned();
    let decision = json!({ "token": asked.event("data-confirmation")["data"]["token"], "approve": true });
    let decide = from(world.post("/api/confirmations", &decision), HERE).with("origin", SHOP);
    assert_eq!(decide.with(HEADER, &token).send().await.status, 200);
    assert_eq!(page("hello").with(HEADER, &token).send().await.refusal().1, "BLOCKED");
    assert_eq!(page("hello").send().await.refusal().1, "BLOCKED");
}

#[tokio::test]
async fn on_this_machine_a_block_holds_for_its_client_alone() {
    let world = World::new().await;
    let cookie = world.new_client().await;
    let asked =
        world.post("/api/chat", &json!({ "message": "call block me" })).with("cookie", &cookie).send().await;
    let decision = json!({ "token": asked.event("data-confirmation")["data"]["token"], "approve": true });
    let done = world.post("/api/confirmations", &decision).with("cookie", &cookie).send().await;
    assert_eq!(done.status, 200);
    let client = world.client_of(&cookie).await;
    let block = find_block(&*world.store, &client, world.orchestrator.now_ms()).await.unwrap().unwrap();
    assert_eq!(block.address, None);
    assert_eq!(world.post("/api/chat", &json!({ "message": "hello" })).send().await.status, 200);
}

#[tokio::test]
async fn messages_of_clients_that_are_always_new_are_counted_by_address() {
    let world = world(Settings { messages_per_minute: 2, ..Settings::default() }).await;
    let status = async |address| say(&world, "hello", address).send().await.status;
    assert_eq!((status(HERE).await, status(HERE).await, status(HERE).await), (200, 200, 429));
    assert_eq!(status(ELSEWHERE).await, 200);
    let cookie = from(world.get("/api/me"), HERE).send().await.cookie().unwrap();
    assert_eq!(
        say(&world, "hello", HERE).with("cookie", &cookie).send().await.status,
        200,
        "it has its own count"
    );
}
