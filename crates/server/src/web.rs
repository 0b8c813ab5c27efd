//! The files that pages are made of, and the documents that name them. They are all in the binary, and nothing is loaded
//! from elsewhere.

use std::fmt::Write;
use std::sync::LazyLock;

use quarterdeck_contracts::sha256;
use sha2::{Digest, Sha256};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(File { name: $name, bytes: include_bytes!(concat!("../web/", $name)) }),*]
    };
}

static FILES: &[File] = &files![
    "deck/api.js",
    "deck/audit-view.js",
    "deck/blocks-view.js",
    "deck/deck.css",
    "deck/index.html",
    "deck/audit-line.js",
    "deck/live-view.js",
    "deck/main.js",
    "deck/playground-view.js",
    "deck/quarantines-view.js",
    "deck/registry-view.js",
    "deck/example-args.js",
    "deck/series.js",
    "deck/sessions-view.js",
    "deck/confirm-dialog.js",
    "deck/timeline.js",
    "deck/tools-view.js",
    "deck/view.js",
    "deck/views.css",
    "deck/format.js",
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
    "page/auto-scroll.js",
    "page/sources.js",
    "page/spoken-messages.js",
    "page/tool-card.js",
    "page/voice/audio.js",
    "page/voice/call-view.js",
    "page/voice/call.js",
    "page/voice/captions.js",
    "page/voice/capture-worklet.js",
    "page/voice/websocket-link.js",
    "page/voice/playback-worklet.js",
    "page/voice/call-controller.js",
    "page/welcome.js",
    "page/provider-info.js",
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
    "shared/visible.js",
];

/// What changes when any file does.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let hashes: String = FILES.iter().map(|file| sha256(file.bytes)).collect();
    sha256(hashes.as_bytes())[..12].to_owned()
});

/// The page at `/`.
pub(crate) static PAGE: LazyLock<Document> = LazyLock::new(|| Document::of("page"));
/// The operators' page.
pub(crate) static DECK: LazyLock<Document> = LazyLock::new(|| Document::of("deck"));

pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) bytes: &'static [u8],
}

/// A page's document, and what a browser may do with it.
pub(crate) struct Document {
    pub(crate) html: String,
    pub(crate) policy: String,
}

impl Document {
    /// It says under which version its files are found, and all of them at once: a browser that had to read one module
    /// to learn of the next would ask in many rounds. The page at `/` asks after its first frame (`shared/boot.js`): on a
    /// small machine forty requests hold up what is seen first. The styles of that frame are in the document itself, in
    /// the place where it names them.
    fn of(folder: &str) -> Self {
        let text = find(&format!("{folder}/index.html")).map_or("", File::text);
        let (before, rest) = text.split_once("<style>").unwrap_or((text, ""));
        let (names, after) = rest.split_once("</style>").unwrap_or_default();
        let styles: String = names.split_whitespace().filter_map(find).map(File::text).collect();
        let after = after.replace("<!-- PRELOAD -->\n", &preload(folder));
        Self {
            html: format!("{before}<style>{styles}</style>{after}").replace("VERSION", &VERSION),
            policy: policy(&styles),
        }
    }
}

/// Nothing runs that is not ours, nothing is loaded from elsewhere, no text becomes markup, and no style counts that did
/// not come with the page.
fn policy(styles: &str) -> String {
    let hash = base64_simd::STANDARD.encode_to_string(Sha256::digest(styles));
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{hash}'; connect-src 'self'; \
         img-src 'self' data:; worker-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

fn preload(folder: &str) -> String {
    let mut links = String::new();
    for file in modules(folder) {
        // Writing to a string does not fail.
        let _ = writeln!(
            links,
            "<link rel=\"modulepreload\" href=\"/web/VERSION/{}\" fetchpriority=\"low\">",
            file.name
        );
    }
    links
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

/// The file of that name.
pub(crate) fn find(name: &str) -> Option<&'static File> {
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

    /// What it is, for a browser.
    pub(crate) fn kind(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        }
    }
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
            assert_ne!(file.kind(), "application/octet-stream", "{}", file.name);
        }
    }

    #[test]
    fn the_page_names_its_files_under_their_version() {
        assert!(PAGE.html.contains(&format!("/web/{}/page/main.js", *VERSION)));
        assert!(!PAGE.html.contains("VERSION") && !PAGE.html.contains("PRELOAD"));
        assert!(!PAGE.html.contains("worklet"), "worklets are not part of the page's own modules");
        assert!(DECK.html.contains(&format!("/web/{}/deck/main.js", *VERSION)));
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

    #[test]
    fn a_page_carries_the_styles_that_it_names_and_its_policy_lets_in_no_others() {
        for document in [&*PAGE, &*DECK] {
            let (_, rest) = document.html.split_once("<style>").unwrap();
            let (styles, after) = rest.split_once("</style>").unwrap();
            assert!(styles.contains(find("shared/theme.css").unwrap().text()));
            assert!(!after.contains("<style"), "one place, and one hash");
            let hash = base64_simd::STANDARD.encode_to_string(Sha256::digest(styles));
            assert!(document.policy.contains(&format!("'sha256-{hash}'")));
        }
    }
}
