//! Files of sessions: shown by signed links, in the stream and when a conversation is loaded again.

use std::time::Duration;

use quarterdeck_contracts::{ImageInfo, Overlay, Store};
use quarterdeck_runtime::SessionFile;
use quarterdeck_server::{Identity, RequiredCredentials, Settings};
use serde_json::{Value, json};

use crate::http::Answer;
use crate::world::{COOKIE_SECRET, World};

/// A picture of 12 by 8 pixels, as far as its head says.
fn picture() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x0c\0\0\0\x08".to_vec();
    bytes.extend((0..300_000).map(|index| index as u8));
    bytes
}

/// Puts a file into a session, as the capability does.
async fn put_file(world: &World, session: &str) -> String {
    let bytes = picture();
    let file = SessionFile::new(&bytes, ImageInfo::read(&bytes).unwrap(), 1).unwrap();
    let overlay = Overlay::new(world.store.clone());
    file.put(&overlay, session, &bytes);
    world.store.commit(overlay.take()).await.unwrap();
    file.id
}

/// A conversation in which a tool has shown a file: the client's cookie, the session, and the answer's stream.
async fn show_file(world: &World) -> (String, String, Answer) {
    let cookie = world.new_client().await;
    let first = world
        .post("/api/chat", &json!({ "id": "c", "message": "hello" }))
        .with("cookie", &cookie)
        .send()
        .await;
    let session = first.event("start")["messageMetadata"]["sessionId"].as_str().unwrap().to_owned();
    let id = put_file(world, &session).await;
    let asking = json!({ "id": "c", "message": format!("call show {id}") });
    let asked = world.post("/api/chat", &asking).with("cookie", &cookie).send().await;
    let (token, message) =
        (&asked.event("data-confirmation")["data"]["token"], &asked.event("start")["messageId"]);
    let part = json!({
        "type": "dynamic-tool", "toolName": "probe", "toolCallId": "1", "state": "approval-responded",
        "approval": { "id": token, "approved": true },
    });
    let messages = json!([{ "id": message, "role": "assistant", "parts": [part] }]);
    let answered = world
        .post("/api/chat", &json!({ "id": "c", "messages": messages }))
        .with("cookie", &cookie)
        .send()
        .await;
    (cookie, session, answered)
}

async fn conversation(world: &World, cookie: &str) -> Value {
    world.get("/api/sessions/c").with("cookie", cookie).send().await.json()
}

fn parts(conversation: &Value, kind: &str) -> Vec<Value> {
    let messages = conversation["messages"].as_array().unwrap().iter();
    let parts = messages.flat_map(|message| message["parts"].as_array().unwrap());
    parts.filter(|part| part["type"] == kind).cloned().collect()
}

#[tokio::test]
async fn a_file_is_shown_in_the_stream_and_served_with_headers_that_disarm_it() {
    let world = World::new().await;
    let (_, session, answered) = show_file(&world).await;
    let shown = answered.event("data-file");
    let url = shown["data"]["url"].as_str().unwrap();
    assert_eq!(
        (
            &shown["data"]["callId"],
            &shown["data"]["alt"],
            &shown["data"]["width"],
            &shown["data"]["mediaType"]
        ),
        (&json!("1"), &json!("A <b>fox</b>"), &json!(12), &json!("image/png"))
    );
    assert_eq!(answered.event("file"), json!({ "type": "file", "url": url, "mediaType": "image/png" }));
    let files = answered.events().iter().filter(|event| event["type"] == "data-file").count();
    assert_eq!(files, 1, "what is not the id of a file has no link");
    assert!(url.starts_with("/files/file_") && url.contains(&session), "{url}");
    // Without a cookie: an `<img>` of another page has none, and a signature is enough.
    let file = world.get(url).send().await;
    assert_eq!((file.status, file.bytes()), (200, &*picture()));
    for (name, value) in [
        ("content-type", "image/png"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(file.header(name), Some(value), "{name}");
    }
    let name = format!("inline; filename=\"{}.png\"", shown["id"].as_str().unwrap());
    assert_eq!(file.header("content-disposition"), Some(&*name));
    assert!(file.header("cache-control").unwrap().starts_with("private, max-age=35"), "until the link ends");
}

#[tokio::test]
async fn a_conversation_that_is_loaded_again_has_new_links() {
    let settings = Settings { file_link_lifetime: Duration::from_secs(60), ..Settings::default() };
    let world = World::with(settings).await;
    let (cookie, _, answered) = show_file(&world).await;
    let first = answered.event("data-file")["data"]["url"].as_str().unwrap().to_owned();
    world.advance_clock(Duration::from_secs(61));
    let late = world.get(&first).send().await;
    assert_eq!(
        (late.refusal().0, late.refusal().2),
        (403, "This link has expired. Load the conversation again for a new one.".into())
    );
    let loaded = conversation(&world, &cookie).await;
    let (shown, file) = (parts(&loaded, "data-file"), parts(&loaded, "file"));
    assert_eq!((shown.len(), file.len()), (1, 1));
    let url = shown[0]["data"]["url"].as_str().unwrap();
    assert_eq!(file[0]["url"], url);
    assert_ne!(url, first);
    assert_eq!(world.get(url).send().await.status, 200);
}

#[tokio::test]
async fn a_link_leads_to_one_file_of_one_session_and_to_nothing_else() {
    let world = World::new().await;
    let (_, session, answered) = show_file(&world).await;
    let url = answered.event("data-file")["data"]["url"].as_str().unwrap().to_owned();
    let id = answered.event("data-file")["id"].as_str().unwrap().to_owned();
    let other = put_file(&world, &session).await;
    let (path, query) = url.split_once('?').unwrap();
    for forged in [
        url.replace(&id, &other),
        url.replace(&session, "ses_00000000000000000000000000000000"),
        url.replace("expires=1", "expires=2"),
        format!("{}0", &url[..url.len() - 1]).replace("0000", "1111"),
        path.to_owned(),
        format!("{path}?expires=9999999999999&session={session}"),
        format!("/files/..%2F..%2Fetc%2Fpasswd?{query}"),
        format!("/files/{id}%2F000000?{query}"),
        format!("/files/%00?{query}"),
        format!("{path}?{}", query.replace(&session, &format!("{session}%0A{id}"))),
        format!("{path}?{}", query.replace("signature=", "signature=%20")),
    ] {
        if forged == url {
            continue;
        }
        let refused = world.get(&forged).send().await;
        let (status, _, message) = refused.refusal();
        let expected = "This link is not valid. Load the conversation again for a new one.";
        assert_eq!((status, &*message), (403, expected), "{forged}");
    }
    let twice = world.get(&format!("{url}&session=x")).send().await;
    assert_eq!(twice.refusal().0, 400, "a parameter that stands twice");
    assert_eq!(world.get(&format!("{url}&admin=1")).send().await.refusal().0, 400);
}

#[tokio::test]
async fn a_file_that_was_erased_is_gone_though_its_link_is_valid() {
    let world = World::new().await;
    let (cookie, _, answered) = show_file(&world).await;
    let url = answered.event("data-file")["data"]["url"].as_str().unwrap().to_owned();
    let client = world.client_of(&cookie).await;
    quarterdeck_runtime::erase_client(&*world.store, &client).await.unwrap();
    let gone = world.get(&url).send().await;
    assert_eq!((gone.refusal().0, gone.refusal().1), (404, "NOT_FOUND".into()));
}

#[tokio::test]
async fn a_link_is_enough_where_the_api_requires_a_credential_and_the_rest_still_does() {
    let required = RequiredCredentials { api: true, ..RequiredCredentials::default() };
    let settings = Settings { required, ..Settings::default() };
    let identity =
        Identity::new(COOKIE_SECRET, None, vec![quarterdeck_server::ApiKey::new("app", "the-key")]);
    let world = World::with_identity(settings, identity).await;
    assert_eq!(world.get("/api/sessions/c").send().await.status, 401);
    let id = put_file(&world, "ses_1").await;
    assert_eq!(world.get(&format!("/files/{id}?session=ses_1")).send().await.status, 403, "no signature");
}

#[tokio::test]
async fn bytes_that_are_no_image_any_more_are_not_served() {
    let world = World::new().await;
    let (_, session, answered) = show_file(&world).await;
    let shown = answered.event("data-file");
    let (url, id) = (shown["data"]["url"].as_str().unwrap(), shown["id"].as_str().unwrap());
    let key = format!("p/{session}/{id}/000000");
    let page = json!("PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==");
    let commit = quarterdeck_contracts::Commit::default().put(quarterdeck_contracts::Table::Files, key, page);
    world.store.commit(commit).await.unwrap();
    assert_eq!(world.get(url).send().await.refusal().0, 404);
}
