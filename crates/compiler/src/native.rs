//! Looks at `handler.rs` files.
//!
//! The Rust compiler is the judge of Rust. What is checked here is whether the binary in use was built with this very
//! file; if it was not, whether the text is made of balanced Rust tokens and has an `execute`. A full parse would
//! recurse as deeply as its input, and `cargo build` does it anyway.

use std::collections::BTreeMap;
use std::str::FromStr;

use proc_macro2::{TokenStream, TokenTree};
use quarterdeck_contracts::handler::{
    FileType, Finding, FindingKind, HandlerFiles, HandlerSource, Inspection, Inspector, Position,
};
use quarterdeck_contracts::{ToolId, native_source_hash};

/// Knows which native handlers are part of the running binary.
#[derive(Debug)]
pub struct NativeInspector {
    /// Tool id → `NativeHandler::source_hash` of what was compiled.
    compiled: BTreeMap<String, String>,
}

impl NativeInspector {
    /// From the table of handlers that the binary was built with.
    pub fn new(compiled: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { compiled: compiled.into_iter().collect() }
    }

    fn state(&self, source: HandlerSource<'_>) -> Option<&'static str> {
        let folder = source.entry.split('/').next().unwrap_or("");
        let id = ToolId::from_folder(folder).ok()?;
        match self.compiled.get(id.as_str()) {
            None => Some("this handler is not part of the binary in use"),
            Some(hash) if *hash != source_hash(folder, source.files) => {
                Some("this handler has changed since the binary in use was built")
            }
            Some(_) => None,
        }
    }
}

impl Inspector for NativeInspector {
    fn entry_file(&self) -> &'static str {
        "handler.rs"
    }

    fn file_types(&self) -> &'static [FileType] {
        const { &[FileType::text("rs")] }
    }

    fn inspect(&self, source: HandlerSource<'_>) -> Inspection {
        let text =
            source.files.get(source.entry).map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
        let found = |kind, position, message: String| Finding {
            kind,
            file: source.entry.to_owned(),
            position,
            message,
        };
        // What has been compiled has been judged by a better judge.
        let findings = match self.state(source) {
            None => Vec::new(),
            Some(state) => match syntax(&text) {
                Ok(true) => vec![found(FindingKind::NotCompiledIn, None, state.to_owned())],
                Ok(false) => vec![found(
                    FindingKind::NoExecute,
                    None,
                    "the handler has no `pub async fn execute(args, context)`".into(),
                )],
                Err((position, reason)) => {
                    vec![found(
                        FindingKind::Syntax,
                        Some(position),
                        format!("the handler does not parse: {reason}"),
                    )]
                }
            },
        };
        let files = rust_files(source.files).map(|(path, _)| path.clone()).collect();
        Inspection { files, findings }
    }
}

fn rust_files(files: &HandlerFiles) -> impl Iterator<Item = (&String, &Vec<u8>)> {
    files.iter().filter(|(path, _)| path.ends_with(".rs"))
}

fn source_hash(folder: &str, files: &HandlerFiles) -> String {
    let prefix = format!("{folder}/");
    native_source_hash(
        rust_files(files).map(|(path, bytes)| (path.strip_prefix(&prefix).unwrap_or(path), bytes)),
    )
}

/// Whether the text has a public `execute`, or where it stops being made of Rust's tokens.
fn syntax(text: &str) -> Result<bool, (Position, String)> {
    let tokens = TokenStream::from_str(text).map_err(|error| {
        let start = error.span().start();
        (Position { line: start.line.max(1), column: start.column + 1 }, error.to_string())
    })?;
    // Words at the top level; what stands in brackets is one token here.
    let words: Vec<String> = tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Ident(word) => word.to_string(),
            _ => String::new(),
        })
        .collect();
    Ok(words.windows(4).any(|words| words == ["pub", "async", "fn", "execute"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_async_execute_is_seen_and_nothing_else_is() {
        assert_eq!(syntax("pub async fn execute(args: Args) -> Result<(), E> { Ok(()) }"), Ok(true));
        assert_eq!(syntax("async fn execute() {}"), Ok(false));
        assert_eq!(syntax("// pub async fn execute() {}\nmod a { pub async fn execute() {} }"), Ok(false));
    }

    #[test]
    fn a_text_that_is_not_rust_is_refused_with_its_place() {
        let (position, _) = syntax("pub async fn execute() {\n  let a = (1;\n}").unwrap_err();
        assert_eq!(position.line, 3, "where the brackets stop matching");
    }

    #[test]
    fn deep_nesting_does_no_harm() {
        let deep = format!("pub async fn execute() {{ {}{} }}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(syntax(&deep), Ok(true));
    }
}
