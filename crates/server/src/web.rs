//! The pages' files, embedded in the binary, and the HTML documents built from them.

mod bundle;
mod encoding;

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use quarterdeck_contracts::sha256;
use sha2::{Digest, Sha256};

use bundle::Bundle;
use encoding::Encoded;
pub(crate) use encoding::Encoding;

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
    files.extend(named.map(|(name, bytes)| File::new(name, bytes.into())));
    folder.dirs().for_each(|folder| collect(folder, files));
}

/// The hash of all files.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let hashes: String = FILES.iter().map(|file| sha256(&file.bytes)).collect();
    sha256(hashes.as_bytes())[..12].to_owned()
});

/// Modules that a page loads when it needs them.
const ON_DEMAND: [&str; 2] = ["page/conversations.js", "page/watch-corner.js"];

/// The chat page.
pub(crate) static PAGE: LazyLock<Document> = LazyLock::new(|| Document::build("page"));
/// The operators' page.
pub(crate) static DECK: LazyLock<Document> = LazyLock::new(|| Document::build("deck"));

/// `GET /embed.js`.
pub(crate) static EMBED: LazyLock<File> = LazyLock::new(|| {
    let text = find("embed/embed.js").map_or("", File::text);
    let text = bundle::without_comments(text).replace("VERSION", &VERSION);
    File::new("embed.js", text.into_bytes().into())
});

/// What the widget loads when it is first opened and, for a call, when that begins: its modules and the page's as one
/// file each, and their styles as one.
static WIDGET: LazyLock<Vec<File>> = LazyLock::new(|| {
    let scripts = widget_scripts().unwrap_or_else(|problem| {
        tracing::error!(problem, "widget not joined");
        Default::default()
    });
    let page = find("page/index.html").map_or("", File::text);
    let shared = style_names(page).filter(|name| *name != "page/frame.css");
    let styles = shared.chain(["embed/widget.css"]);
    let styles: String = styles.filter_map(find).map(|file| bundle::without_comments(file.text())).collect();
    let named = scripts.into_iter().chain([("embed/widget.bundle.css", styles)]);
    let worklets = FILES.iter().filter(|file| file.name.ends_with("-worklet.js"));
    let worklets = worklets.map(|file| (file.name, bundle::without_comments(file.text())));
    named.chain(worklets).map(|(name, text)| File::new(name, text.into_bytes().into())).collect()
});

/// The chat, what a call needs besides, and what is needed only at times.
fn widget_scripts() -> Result<Vec<(&'static str, String)>, String> {
    let read = |name: &str| find(name).map(File::text);
    let chat = Bundle::of("embed/widget.js", None, &read)?;
    let later = |entry| Ok::<_, String>(Bundle::of(entry, Some((&chat, "widget.bundle.js")), &read)?.text);
    let (voice, at_times) = (later("embed/voice.js")?, later("embed/at-times.js")?);
    Ok(vec![
        ("embed/voice.bundle.js", voice),
        ("embed/at-times.bundle.js", at_times),
        ("embed/widget.bundle.js", chat.text),
    ])
}

/// The style sheets that a document names between its `<style>` tags.
fn style_names(html: &str) -> impl Iterator<Item = &str> {
    let names = html.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>"));
    names.map_or("", |(names, _)| names).split_whitespace()
}

pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) bytes: Cow<'static, [u8]>,
    encoded: Encoded,
}

/// An HTML document and what its content security policy allows.
pub(crate) struct Document {
    pub(crate) html: String,
    pub(crate) policy: Policy,
}

/// The parts of a content security policy that differ between documents. All allow only our own scripts and the document's
/// own styles; nothing from elsewhere, and no text becomes markup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policy {
    /// The hashes of the styles in the document.
    pub(crate) styles: Vec<String>,
    /// Origins of images, besides our own.
    pub(crate) images: Vec<String>,
    /// Sites that may show the document in a frame.
    pub(crate) frame_ancestors: Vec<String>,
}

impl Policy {
    fn of_styles(styles: &str) -> Self {
        Self { styles: vec![style_hash(styles)], images: Vec::new(), frame_ancestors: Vec::new() }
    }

    /// The header's value.
    pub(crate) fn header(&self) -> String {
        let list = |items: &[String]| items.iter().map(|item| format!(" {item}")).collect::<String>();
        let hashes: String = self.styles.iter().map(|hash| format!(" 'sha256-{hash}'")).collect();
        let images = list(&self.images);
        let ancestors = match self.frame_ancestors.is_empty() {
            true => " 'none'".to_owned(),
            false => format!(" 'self'{}", list(&self.frame_ancestors)),
        };
        format!(
            "default-src 'none'; script-src 'self'; style-src 'self'{hashes}; connect-src 'self'; \
             img-src 'self' data:{images}; worker-src 'self'; media-src 'self' blob:; base-uri 'none'; \
             form-action 'none'; frame-ancestors{ancestors}; require-trusted-types-for 'script'; trusted-types 'none'"
        )
    }
}

/// How a policy names a style in the document.
pub(crate) fn style_hash(styles: &str) -> String {
    base64_simd::STANDARD.encode_to_string(Sha256::digest(styles))
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
            policy: Policy::of_styles(&styles),
        }
    }
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
    let is_module = |file: &&File| {
        file.name.ends_with(".js") && !file.name.ends_with("-worklet.js") && !ON_DEMAND.contains(&file.name)
    };
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

/// A file as it is served: one that is made for the widget, or one of the pages as it is.
pub(crate) fn find_served(name: &str) -> Option<&'static File> {
    WIDGET.iter().find(|file| file.name == name).or_else(|| find(name))
}

impl File {
    fn new(name: &'static str, bytes: Cow<'static, [u8]>) -> Self {
        Self { name, bytes, encoded: Encoded::default() }
    }

    /// The bytes in the best encoding that is wanted, and which one that is.
    pub(crate) async fn encoded(&'static self, wanted: Encoding) -> (&'static [u8], Encoding) {
        match self.encoded.get(&self.bytes, wanted).await {
            Some(bytes) => (bytes, wanted),
            None => (&self.bytes, Encoding::Identity),
        }
    }

    fn is_shared(&self) -> bool {
        self.name.starts_with("shared/")
    }

    fn imports(&self, shared: &File) -> bool {
        let name = shared.name.trim_start_matches("shared/");
        let specifier = if self.is_shared() { format!("'./{name}'") } else { format!("../shared/{name}'") };
        self.text().contains(&specifier)
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default()
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
    fn the_widget_is_joined_from_its_modules_and_the_pages() {
        let scripts = widget_scripts().unwrap();
        let script = |name| &scripts.iter().find(|(found, _)| *found == name).unwrap().1;
        let (chat, voice) = (script("embed/widget.bundle.js"), script("embed/voice.bundle.js"));
        let at_times = script("embed/at-times.bundle.js");
        assert!(chat.contains("class Widget") && chat.contains("class ConfirmCard"));
        assert!(!chat.contains("class ToolsView"), "nothing of the operators' page");
        assert!(
            voice.contains("class Microphone") && !chat.contains("class Microphone"),
            "a call is loaded later"
        );
        assert!(!voice.contains("function newId"), "and takes from the chat what that has");
        assert!(
            at_times.contains("class RecordPanel") && !chat.contains("class RecordPanel"),
            "so is a record"
        );
        assert!(
            at_times.contains("class MessageActions") && !chat.contains("class MessageActions"),
            "and so are ratings"
        );
        for line in [chat, voice, at_times].into_iter().flat_map(|script| script.lines()) {
            assert!(!line.starts_with("//") && !line.starts_with('*'), "a comment is left: {line}");
        }
        assert!(EMBED.text().contains(&format!("/web/{}/embed/", *VERSION)));
        for file in &*WIDGET {
            assert!(!file.bytes.is_empty(), "{}", file.name);
            assert_ne!(file.content_type(), "application/octet-stream", "{}", file.name);
        }
    }

    /// Leaving out indentation would change one.
    #[test]
    fn no_module_has_a_text_over_several_lines() {
        // Neither is joined, and indentation means nothing in their styles.
        let outside = ["embed/embed.js", "page/watch-corner.js"];
        for file in FILES.iter().filter(|file| file.name.ends_with(".js") && !outside.contains(&file.name)) {
            for line in file.text().lines().filter(|line| !line.trim_start().starts_with(['*', '/'])) {
                let ticks = line.replace("```", "").replace("[*_`#", "").matches('`').count();
                assert!(ticks % 2 == 0, "{}: {line}", file.name);
            }
        }
    }

    #[test]
    fn a_page_inlines_its_styles_and_its_policy_allows_no_others() {
        for document in [&*PAGE, &*DECK] {
            let (_, rest) = document.html.split_once("<style>").unwrap();
            let (styles, after) = rest.split_once("</style>").unwrap();
            assert!(styles.contains(find("shared/theme.css").unwrap().text()));
            assert!(!after.contains("<style"), "one style element, one hash");
            let hash = base64_simd::STANDARD.encode_to_string(Sha256::digest(styles));
            assert!(document.policy.header().contains(&format!("'sha256-{hash}'")));
        }
    }
}
