//! What the operator sets for the page.

use quarterdeck_server::{
    Colours, Logo, PageSettings, PageSettingsHandle, RequiredCredentials, Settings, Shown,
};
use serde_json::json;

use crate::world::World;

fn settings(page: PageSettings) -> Settings {
    Settings { page: PageSettingsHandle::new(page), ..Settings::default() }
}

#[tokio::test]
async fn without_settings_the_page_is_left_to_its_own_words() {
    let world = World::new().await;
    let none =
        json!({ "accent": null, "accentText": null, "background": null, "surface": null, "text": null });
    assert_eq!(
        world.get("/api/page").send().await.json(),
        json!({
            "title": null, "logo": null, "welcome": null, "suggestions": [], "colours": none, "links": [],
            "show": { "toolCards": true, "gates": true, "json": true }, "voice": true,
        })
    );
    assert_eq!(world.get("/api/page/logo").send().await.status, 404);
    assert_eq!(World::without_voice().await.get("/api/page").send().await.json()["voice"], false);
}

#[tokio::test]
async fn the_page_has_its_settings_at_once_and_new_ones_while_it_runs() {
    let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>".to_vec();
    let accent = Some("#a03".parse().unwrap());
    let page = PageSettings {
        title: Some("Harbour <desk>".into()),
        logo: Some(Logo::from_bytes(svg.clone()).unwrap()),
        suggestions: vec!["Who designed the Fram?".into()],
        colours: Colours { accent, ..Colours::default() },
        ..PageSettings::default()
    };
    let handle = PageSettingsHandle::new(page);
    let required = RequiredCredentials { api: true, ..RequiredCredentials::default() };
    let world = World::with(Settings { page: handle.clone(), required, ..Settings::default() }).await;
    let shown = world.get("/api/page").send().await.json();
    assert_eq!((&shown["title"], &shown["colours"]["accent"]), (&json!("Harbour <desk>"), &json!("#aa0033")));
    let logo = world.get(shown["logo"].as_str().unwrap()).send().await;
    assert_eq!((logo.bytes(), logo.header("content-type")), (&svg[..], Some("image/svg+xml")));
    assert!(logo.header("content-security-policy").unwrap().contains("sandbox"));
    let html = world.get("/").send().await;
    assert!(html.text().contains("<title>Harbour &lt;desk&gt;</title>"));
    let tag = html.header("etag").unwrap().to_owned();
    handle.replace(PageSettings { title: Some("Quay".into()), ..PageSettings::default() });
    assert_eq!(world.get("/api/page").send().await.json()["title"], "Quay");
    let html = world.get("/").with("if-none-match", &tag).send().await;
    assert!(html.text().contains("<title>Quay</title>"), "the old one is not taken for it");
}

#[tokio::test]
async fn the_page_may_be_framed_by_listed_sites_and_the_deck_by_none() {
    let frame_ancestors = vec!["https://shop.example".to_owned()];
    let world = World::with(Settings { frame_ancestors, ..Settings::default() }).await;
    for (path, expected) in [
        ("/", "frame-ancestors 'self' https://shop.example;"),
        ("/deck", "frame-ancestors 'none';"),
        ("/docs", "frame-ancestors 'none'"),
    ] {
        let answer = world.get(path).send().await;
        assert!(answer.header("content-security-policy").unwrap().contains(expected), "{path}");
        assert_eq!(
            answer.header("x-frame-options"),
            None,
            "it knows no list, and browsers prefer the policy"
        );
    }
}

#[tokio::test]
async fn what_is_hidden_is_in_no_answer_and_what_is_approved_is_shown() {
    let show = Shown { tool_cards: false, gates: false, json: false };
    let world = World::with(settings(PageSettings { show, ..PageSettings::default() })).await;
    let cookie = world.new_client().await;
    let asked = world
        .post("/api/chat", &json!({ "message": "call ring the bell" }))
        .with("cookie", &cookie)
        .send()
        .await;
    assert_eq!(asked.event("tool-input-available")["input"], json!({ "do": "ring the bell" }));
    let session = asked.event("start")["messageMetadata"]["sessionId"].as_str().unwrap().to_owned();
    let load = || world.get(&format!("/api/sessions/{session}")).with("cookie", &cookie).send();
    let waiting = load().await.text();
    assert!(waiting.contains("data-confirmation") && waiting.contains("dynamic-tool"), "{waiting}");
    let decision = json!({ "token": asked.event("data-confirmation")["data"]["token"], "approve": true });
    assert_eq!(world.post("/api/confirmations", &decision).with("cookie", &cookie).send().await.status, 200);
    let done = load().await.text();
    assert!(
        !done.contains("dynamic-tool") && !done.contains("data-gates") && !done.contains("probe"),
        "{done}"
    );
}
