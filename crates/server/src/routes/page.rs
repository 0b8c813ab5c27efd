//! `GET /`: the page, and the files that pages are made of. They are all in the binary, and nothing is loaded from
//! elsewhere.
//!
//! Files are asked for under a version, which is a hash of all of them: a browser keeps them for good and asks for one
//! thing when the page is loaded again.

use std::fmt::Write;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quarterdeck_contracts::sha256;
use serde_json::{Value, json};

use super::openapi::Operation;
use crate::error::ApiError;

/// Where the files are.
pub(super) const FILES_PATH: &str = "/web/{version}/{*path}";

/// Nothing runs that is not ours, nothing is loaded from elsewhere, and no text becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      worker-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(File { name: $name, bytes: include_bytes!(concat!("../../web/", $name)) }),*]
    };
}

static FILES: &[File] = &files![
    "deck/api.js",
    "deck/audit-view.js",
    "deck/blocks-view.js",
    "deck/deck.css",
    "deck/index.html",
    "deck/line.js",
    "deck/live-view.js",
    "deck/main.js",
    "deck/playground-view.js",
    "deck/registry-view.js",
    "deck/sample.js",
    "deck/samples.js",
    "deck/sessions-view.js",
    "deck/sure.js",
    "deck/timeline.js",
    "deck/tools-view.js",
    "deck/view.js",
    "deck/views.css",
    "deck/words.js",
    "page/block-view.js",
    "page/cards.css",
    "page/chat.js",
    "page/composer.js",
    "page/confirm-card.js",
    "page/explain.js",
    "page/index.html",
    "page/main.js",
    "page/message-view.js",
    "page/messages.js",
    "page/model.js",
    "page/page.css",
    "page/record-panel.js",
    "page/records.js",
    "page/scroll.js",
    "page/sources.js",
    "page/spoken.js",
    "page/tool-card.js",
    "page/voice/audio.js",
    "page/voice/call-view.js",
    "page/voice/call.js",
    "page/voice/captions.js",
    "page/voice/capture-worklet.js",
    "page/voice/line.js",
    "page/voice/playback-worklet.js",
    "page/voice/telephone.js",
    "page/welcome.js",
    "page/who.js",
    "shared/api.js",
    "shared/boot.js",
    "shared/chart.js",
    "shared/dom.js",
    "shared/icons.js",
    "shared/inline.js",
    "shared/mark.svg",
    "shared/markdown.js",
    "shared/sse.js",
    "shared/theme.css",
    "shared/time.js",
    "shared/values.js",
];

struct File {
    name: &'static str,
    bytes: &'static [u8],
}

/// What changes when any file does.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let hashes: String = FILES.iter().map(|file| sha256(file.bytes)).collect();
    sha256(hashes.as_bytes())[..12].to_owned()
});

static PAGE: LazyLock<String> = LazyLock::new(|| whole("page"));
static DECK: LazyLock<String> = LazyLock::new(|| whole("deck"));

/// `GET /`.
pub(super) async fn get(headers: HeaderMap) -> Response {
    document(&headers, &PAGE)
}

/// `GET /deck`. It holds nothing of its own: what it shows is asked for, and given to operators.
pub(super) async fn deck(headers: HeaderMap) -> Response {
    document(&headers, &DECK)
}

/// A file.
pub(super) async fn file(
    Path((version, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Some(file) = find(&path) else {
        return Err(ApiError::not_found("There is no such file."));
    };
    // A page of another version of ours, from before an upgrade, gets what there is now and does not keep it.
    let keeps = if version == *VERSION { "public, max-age=31536000, immutable" } else { "no-cache" };
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static(kind_of(file.name)));
    Ok(answer(&headers, &sha256(file.bytes), [kind, kept(keeps)], file.bytes))
}

/// A page with the headers that hold it to its own server.
fn document(headers: &HeaderMap, page: &'static str) -> Response {
    let said = |name, value| (name, HeaderValue::from_static(value));
    let policies = [
        said(header::CONTENT_TYPE, kind_of(".html")),
        kept("no-cache"),
        said(header::CONTENT_SECURITY_POLICY, POLICY),
        said(header::REFERRER_POLICY, "no-referrer"),
        said(HeaderName::from_static("permissions-policy"), "microphone=(self), camera=(), geolocation=()"),
    ];
    answer(headers, &sha256(page.as_bytes()), policies, page.as_bytes())
}

fn kept(how: &'static str) -> (HeaderName, HeaderValue) {
    (header::CACHE_CONTROL, HeaderValue::from_static(how))
}

/// The bytes, or the word that the browser has them.
fn answer<const N: usize>(
    headers: &HeaderMap,
    hash: &str,
    said: [(HeaderName, HeaderValue); N],
    bytes: &'static [u8],
) -> Response {
    let tag = format!("\"{}\"", &hash[..16]);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = known
        .flat_map(|value| value.split(','))
        .map(|tag| tag.trim().trim_start_matches("W/"))
        .any(|known| known == tag || known == "*");
    let etag = [(header::ETAG, tag)];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, said, etag).into_response(),
        false => (said, etag, bytes).into_response(),
    }
}

/// A page's document, which says under which version its files are found, and all of them at once: a browser that had to
/// read one module to learn of the next would ask in many rounds. The page at `/` asks after its first frame
/// (`shared/boot.js`): on a small machine forty requests hold up what is seen first.
fn whole(folder: &str) -> String {
    let text = find(&format!("{folder}/index.html")).map_or("", |file| file.text());
    let mut preload = String::new();
    for file in modules(folder) {
        // Writing to a string does not fail.
        let (version, name) = (&*VERSION, file.name);
        let _ = writeln!(
            preload,
            "<link rel=\"modulepreload\" href=\"/web/{version}/{name}\" fetchpriority=\"low\">"
        );
    }
    text.replace("<!-- PRELOAD -->\n", &preload).replace("VERSION", &VERSION)
}

/// The modules of a page: its own, and those of the shared ones that any of them names.
fn modules(folder: &str) -> Vec<&'static File> {
    let is_module = |file: &&File| file.name.ends_with(".js") && !file.name.ends_with("-worklet.js");
    let mut found: Vec<&File> =
        FILES.iter().filter(is_module).filter(|file| file.name.starts_with(&format!("{folder}/"))).collect();
    let mut shared: Vec<&File> = FILES.iter().filter(is_module).filter(|file| file.is_shared()).collect();
    loop {
        let (named, rest) =
            shared.into_iter().partition(|shared| found.iter().any(|file| file.names(shared)));
        shared = rest;
        let named: Vec<&File> = named;
        if named.is_empty() {
            return found;
        }
        found.extend(named);
    }
}

fn find(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

impl File {
    fn is_shared(&self) -> bool {
        self.name.starts_with("shared/")
    }

    /// Whether it says the name of a shared module, from beside it or from another folder.
    fn names(&self, shared: &File) -> bool {
        let name = shared.name.trim_start_matches("shared/");
        let said = if self.is_shared() { format!("'./{name}'") } else { format!("../shared/{name}'") };
        self.text().contains(&said)
    }

    fn text(&self) -> &'static str {
        std::str::from_utf8(self.bytes).unwrap_or_default()
    }
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

pub(super) fn described() -> Operation {
    let page = json!({ "text/html": { "schema": { "type": "string" } } });
    Operation::new("getPage", "description", "The page: talk to the agent and watch it work")
        .gives(200, "The page.", page)
        .gives(304, "The page has not changed.", Value::Null)
}

pub(super) fn deck_described() -> Operation {
    let page = json!({ "text/html": { "schema": { "type": "string" } } });
    Operation::new("getDeck", "operation", "The operators' page").gives(200, "The page.", page).gives(
        304,
        "The page has not changed.",
        Value::Null,
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Everything in a folder, by its path from `web`.
    fn in_folder(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => in_folder(&entry.path(), &format!("{name}/"), found),
                false => found.push(name),
            }
        }
    }

    #[test]
    fn every_file_of_the_pages_is_in_the_binary() {
        let mut found = Vec::new();
        in_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("web"), "", &mut found);
        found.retain(|name| name.contains('/'));
        found.sort();
        let mut listed: Vec<&str> = FILES.iter().map(|file| file.name).collect();
        listed.sort_unstable();
        assert_eq!(listed, found);
    }

    #[test]
    fn every_file_has_a_type_of_its_own() {
        for file in FILES {
            assert_ne!(kind_of(file.name), "application/octet-stream", "{}", file.name);
        }
    }

    #[test]
    fn the_page_names_its_files_under_their_version() {
        assert!(PAGE.contains(&format!("/web/{}/page/main.js", *VERSION)));
        assert!(!PAGE.contains("VERSION") && !PAGE.contains("PRELOAD"));
        assert!(!PAGE.contains("worklet"), "worklets are not part of the page's own modules");
        assert!(DECK.contains(&format!("/web/{}/deck/main.js", *VERSION)));
    }

    #[test]
    fn a_page_is_handed_the_shared_modules_that_it_uses_and_no_others() {
        let names = |folder| -> Vec<&str> { modules(folder).iter().map(|file| file.name).collect() };
        let (page, deck) = (names("page"), names("deck"));
        assert!(page.contains(&"shared/inline.js"), "which only another shared module names");
        assert!(deck.contains(&"shared/chart.js") && !page.contains(&"shared/chart.js"));
        assert!(page.contains(&"shared/markdown.js") && !deck.contains(&"shared/markdown.js"));
        assert!(!deck.iter().any(|name| name.starts_with("page/")));
    }
}
