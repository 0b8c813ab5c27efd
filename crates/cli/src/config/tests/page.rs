//! `[page]` and what frames it.

use std::fs;

use expect_test::expect;
use quarterdeck_server::{Logo, PageSettings};
use quarterdeck_testkit::tree;

use super::{config, refused, with};
use crate::arguments::serve::ServeOptions;

fn page(file: &str, variables: &[(&str, &str)]) -> PageSettings {
    PageSettings::clone(&config(file, variables).server.settings.page.load())
}

#[test]
fn page_settings_are_read_from_the_file_and_from_variables() {
    assert_eq!(page("", &[]), PageSettings::default());
    let file = r##"
        [server]
        frame_ancestors = ["https://shop.example", "https://*.example.org"]
        [page]
        title = "Harbour desk"
        logo = "https://cdn.example/logo.png"
        suggestions = ["Who designed the Fram?", "Where is she now?"]
        links = ["Imprint https://example.com/imprint", "API /docs"]
        colours.accent = "#A03"
        show.gates = false
    "##;
    let page =
        page(file, &[("QUARTERDECK_PAGE__WELCOME", "Ask us."), ("QUARTERDECK_PAGE__SHOW__JSON", "false")]);
    assert_eq!(page.title.as_deref(), Some("Harbour desk"));
    assert_eq!(page.welcome.as_deref(), Some("Ask us."));
    assert_eq!(page.suggestions.len(), 2);
    assert_eq!((&*page.links[0].label, &*page.links[1].url), ("Imprint", "/docs"));
    assert_eq!(page.colours.accent.unwrap().to_string(), "#aa0033");
    assert_eq!((page.show.tool_cards, page.show.gates, page.show.json), (true, false, false));
    assert_eq!(config(file, &[]).server.settings.frame_ancestors.len(), 2);
}

#[test]
fn a_logo_is_read_from_a_file_and_one_that_cannot_be_used_is_said() {
    let files = tree("");
    let path = files.join("logo.svg");
    fs::write(&path, "<svg xmlns=\"http://www.w3.org/2000/svg\"/>").unwrap();
    let file = format!("[page]\nlogo = {:?}\n", path.display().to_string());
    assert!(matches!(page(&file, &[]).logo, Some(Logo::File(_))));
    fs::write(&path, "not a picture").unwrap();
    let problems = with(&file, &[], ServeOptions::default()).unwrap_err().to_string();
    assert!(problems.contains("a logo is a PNG, JPEG, WebP or SVG picture"), "{problems}");
    fs::remove_file(&path).unwrap();
    assert!(with(&file, &[], ServeOptions::default()).is_err());
}

#[test]
fn page_settings_that_are_no_colours_links_or_sites_are_refused() {
    refused(
        r##"
        [server]
        frame_ancestors = ["https://*.example.org/path"]
        [page]
        links = ["Script javascript:alert(1)"]
        [page.colours]
        text = "red; } body { display: none"
        "##,
        &[],
        expect![[r#"
            the configuration has 3 problems
            quarterdeck.toml:3: `server.frame_ancestors` is "https://*.example.org/path"; it takes a list; each item is an origin such as https://app.example, or https://*.app.example for all hosts below it: lower case, no path, no slash at the end
            quarterdeck.toml:5: `page.links` is "Script javascript:alert(1)"; it takes a list; each item is a label and a URL that begins with https:// or a slash, such as "Imprint https://example.com/imprint"; at most 8
            quarterdeck.toml:7: `page.colours.text` is "red; } body { display: none"; it takes a colour such as #0d5c6b, #fff or #0d5c6bcc
        "#]],
    );
}
