//! The pages' files, embedded in the binary, and the HTML documents built from them.

use std::fmt::Write;
use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use quarterdeck_contracts::sha256;
use sha2::{Digest, Sha256};

/// All files under `web/`, in every profile: nothing is read from disk at run time.
static WEB: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/web");

/// The files of the pages, by name. The docs page at the top of the folder is served by its own route.
static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let mut files = Vec::new();
    for folder in WEB.dirs() {
        collect(folder, &mut files);
    }
    files.sort_unstable_by_key(|file| file.name);
    files
});

fn collect(folder: &'static Dir<'static>, files: &mut Vec<File>) {
    let named = folder.files().filter_map(|file| Some((file.path().to_str()?, file.contents())));
    files.extend(named.map(|(name, bytes)| File { name, bytes }));
    folder.dirs().for_each(|folder| collect(folder, files));
}

/// The hash of all files.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let hashes: String = FILES.iter().map(|file| sha256(file.bytes)).collect();
    sha256(hashes.as_bytes())[..12].to_owned()
});

/// The chat page.
pub(crate) static PAGE: LazyLock<Document> = LazyLock::new(|| Document::build("page"));
/// The operators' page.
pub(crate) static DECK: LazyLock<Document> = LazyLock::new(|| Document::build("deck"));

pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) bytes: &'static [u8],
}

/// An HTML document and its content security policy.
pub(crate) struct Document {
    pub(crate) html: String,
    pub(crate) policy: String,
}

impl Document {
    /// Inlines the styles, and preloads all modules: discovering them import by import would take many round trips. The
    /// chat page loads them after its first frame (`shared/boot.js`), because forty requests delay the first paint on a
    /// small machine.
    fn build(folder: &str) -> Self {
        let text = find(&format!("{folder}/index.html")).map_or("", File::text);
        let (before, rest) = text.split_once("<style>").unwrap_or((text, ""));
        let (names, after) = rest.split_once("</style>").unwrap_or_default();
        let styles: String = names.split_whitespace().filter_map(find).map(File::text).collect();
        let after = after.replace("<!-- PRELOAD -->\n", &preload(folder));
        Self {
            html: format!("{before}<style>{styles}</style>{after}").replace("VERSION", &VERSION),
            policy: content_security_policy(&styles),
        }
    }
}

/// Only our own scripts and the page's own styles; nothing from elsewhere, and no text becomes markup.
fn content_security_policy(styles: &str) -> String {
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
        // Writing to a string cannot fail.
        let _ = writeln!(
            links,
            "<link rel=\"modulepreload\" href=\"/web/VERSION/{}\" fetchpriority=\"low\">",
            file.name
        );
    }
    links
}

/// The modules of a page: its own, and the shared ones that they import.
fn modules(folder: &str) -> Vec<&'static File> {
    let is_module = |file: &&File| file.name.ends_with(".js") && !file.name.ends_with("-worklet.js");
    let mut found: Vec<&File> =
        FILES.iter().filter(is_module).filter(|file| file.name.starts_with(&format!("{folder}/"))).collect();
    let mut shared: Vec<&File> = FILES.iter().filter(is_module).filter(|file| file.is_shared()).collect();
    loop {
        let (imported, rest): (Vec<&File>, Vec<&File>) =
            shared.into_iter().partition(|shared| found.iter().any(|file| file.imports(shared)));
        shared = rest;
        if imported.is_empty() {
            return found;
        }
        found.extend(imported);
    }
}

pub(crate) fn find(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

impl File {
    fn is_shared(&self) -> bool {
        self.name.starts_with("shared/")
    }

    fn imports(&self, shared: &File) -> bool {
        let name = shared.name.trim_start_matches("shared/");
        let specifier = if self.is_shared() { format!("'./{name}'") } else { format!("../shared/{name}'") };
        self.text().contains(&specifier)
    }

    fn text(&self) -> &'static str {
        std::str::from_utf8(self.bytes).unwrap_or_default()
    }

    pub(crate) fn content_type(&self) -> &'static str {
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

    fn list_folder(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => list_folder(&entry.path(), &format!("{name}/"), found),
                false => found.push(name),
            }
        }
    }

    #[test]
    fn every_file_of_the_pages_is_embedded() {
        let mut found = Vec::new();
        list_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("web"), "", &mut found);
        found.retain(|name| name.contains('/'));
        found.sort();
        let mut listed: Vec<&str> = FILES.iter().map(|file| file.name).collect();
        listed.sort_unstable();
        assert_eq!(listed, found);
    }

    #[test]
    fn every_file_has_a_known_content_type() {
        for file in &*FILES {
            assert_ne!(file.content_type(), "application/octet-stream", "{}", file.name);
        }
    }

    #[test]
    fn a_document_references_its_files_with_the_version() {
        assert!(PAGE.html.contains(&format!("/web/{}/page/main.js", *VERSION)));
        assert!(!PAGE.html.contains("VERSION") && !PAGE.html.contains("PRELOAD"));
        assert!(!PAGE.html.contains("worklet"), "worklets are not modules of the page");
        assert!(DECK.html.contains(&format!("/web/{}/deck/main.js", *VERSION)));
    }

    #[test]
    fn a_page_preloads_exactly_the_shared_modules_that_it_imports() {
        let names = |folder| -> Vec<&str> { modules(folder).iter().map(|file| file.name).collect() };
        let (page, deck) = (names("page"), names("deck"));
        assert!(page.contains(&"shared/inline.js"), "imported by another shared module only");
        assert!(deck.contains(&"shared/chart.js") && !page.contains(&"shared/chart.js"));
        assert!(page.contains(&"shared/markdown.js") && !deck.contains(&"shared/markdown.js"));
        assert!(!deck.iter().any(|name| name.starts_with("page/")));
    }

    #[test]
    fn a_page_inlines_its_styles_and_its_policy_allows_no_others() {
        for document in [&*PAGE, &*DECK] {
            let (_, rest) = document.html.split_once("<style>").unwrap();
            let (styles, after) = rest.split_once("</style>").unwrap();
            assert!(styles.contains(find("shared/theme.css").unwrap().text()));
            assert!(!after.contains("<style"), "one style element, one hash");
            let hash = base64_simd::STANDARD.encode_to_string(Sha256::digest(styles));
            assert!(document.policy.contains(&format!("'sha256-{hash}'")));
        }
    }
}
