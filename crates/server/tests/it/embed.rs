//! The script that embeds the chat, and the files that it loads.

use crate::world::World;

const SHOP: &str = "https://shop.example";

/// The address of a file that the script loads.
async fn file_path(world: &World, name: &str) -> String {
    let script = world.get("/embed.js").send().await.text();
    let (_, rest) = script.split_once("/web/").unwrap();
    let (version, _) = rest.split_once('/').unwrap();
    format!("/web/{version}/{name}")
}

#[tokio::test]
async fn a_page_of_any_origin_loads_the_script_and_its_files_without_a_cookie() {
    let world = World::new().await;
    let bundle = file_path(&world, "embed/widget.bundle.js").await;
    for path in ["/embed.js", &bundle] {
        for headers in
            [vec![("origin", SHOP)], vec![("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")]]
        {
            let request =
                headers.iter().fold(world.get(path), |request, (name, value)| request.with(name, value));
            let answer = request.send().await;
            assert_eq!(answer.status, 200, "{path} {headers:?}");
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{path}");
            assert_eq!(answer.header("cross-origin-resource-policy"), Some("cross-origin"), "{path}");
            assert_eq!(answer.header("content-type"), Some("text/javascript; charset=utf-8"), "{path}");
            assert_eq!(answer.header("set-cookie"), None, "{path}");
        }
    }
    assert_eq!(world.get("/api/me").with("origin", SHOP).send().await.status, 403, "the API stays closed");
}

#[tokio::test]
async fn files_are_compressed_as_the_client_accepts_it() {
    let world = World::new().await;
    let path = file_path(&world, "embed/widget.bundle.js").await;
    let get = async |accepts| world.get(&path).with("accept-encoding", accepts).send().await;
    let plain = get("identity").await;
    assert_eq!(plain.header("content-encoding"), None);
    let mut sizes = vec![plain.bytes().len()];
    for (accepts, encoding) in [("gzip", "gzip"), ("gzip, deflate, br", "br")] {
        let answer = get(accepts).await;
        assert_eq!(answer.header("content-encoding"), Some(encoding));
        // Other layers add what they look at, each in a header of its own.
        assert!(answer.headers("vary").any(|value| value == "accept-encoding"));
        assert_ne!(answer.header("etag"), plain.header("etag"), "another encoding has another tag");
        sizes.push(answer.bytes().len());
    }
    assert!(sizes.is_sorted_by(|larger, smaller| larger > smaller), "{sizes:?}");
}
