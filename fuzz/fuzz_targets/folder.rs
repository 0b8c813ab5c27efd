//! Any bytes as the files of a tool folder: diagnostics or an artifact, never a panic.
//! The input is cut at NUL bytes into schema.json, guide.md and handler.js.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Style, Tree, compile, render, to_json};
use quarterdeck_contracts::handler::NATIVE_KIND;
use quarterdeck_host_js::{JS_KIND, JsInspector};

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(3, |byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
    let names = ["schema.json", "guide.md", "handler.js"];
    let files = names.map(|name| (format!("tool/{name}"), parts.next().unwrap_or_default()));
    let inspectors = Inspectors::default()
        .with(JS_KIND, Arc::new(JsInspector))
        .with(NATIVE_KIND, Arc::new(NativeInspector::new([])));
    let compilation = compile(
        &Tree::from_texts(files),
        &Options { deny_lossy: true, ..Options::new(inspectors, Stamp { timestamp: String::new(), commit: None }) },
    );
    for diagnostic in &compilation.diagnostics {
        render(diagnostic, "tools", Style::Plain);
        to_json(diagnostic);
    }
});
