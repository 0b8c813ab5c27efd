//! The page about `/metrics` has every field and every series that the server sends.

use std::path::Path;

use serde_json::{Value, json};

use crate::serve::{Server, say};

#[test]
fn every_field_and_every_series_is_on_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/METRICS.md");
    let page = std::fs::read_to_string(page).unwrap();
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    say(&server, "", json!({ "message": "What is Framheim?" }));

    let (_, metrics) = server.get("/metrics");
    let metrics: Value = serde_json::from_str(&metrics).unwrap();
    let fields = metrics.as_object().unwrap().keys().map(String::as_str);
    let missing: Vec<&str> = fields.filter(|field| !page.contains(&format!("| `{field}` |"))).collect();
    assert!(missing.is_empty(), "docs/METRICS.md lacks the fields {missing:?}");

    let (_, series) = server.get("/metrics?format=prometheus");
    let names: Vec<_> =
        series.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(names.len() > 10, "{series}");
    let missing: Vec<_> = names.iter().filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(missing.is_empty(), "docs/METRICS.md lacks the series {missing:?}");
}
