//! Which modules a handler may import, and what each of them is.

use std::borrow::Cow;

use quarterdeck_contracts::handler::HandlerFiles;
use quarterdeck_typescript::{TypeScriptProblem, erase_types};

/// The source of the module `quarterdeck`.
pub(crate) const QUARTERDECK: &str = include_str!("quarterdeck.js");

/// A file of a handler that runs.
pub(crate) struct Script<'a> {
    /// Relative to the tools folder.
    pub(crate) path: &'a str,
    /// As its author wrote it.
    pub(crate) text: Cow<'a, str>,
    /// What runs: the text itself, or without its types. Lines and columns are the same.
    pub(crate) javascript: Result<String, Vec<TypeScriptProblem>>,
}

/// The files of a handler that run, in JavaScript and TypeScript. A build lets only UTF-8 pass.
pub(crate) fn scripts(files: &HandlerFiles) -> impl Iterator<Item = Script<'_>> {
    let scripts = files.iter().filter(|(path, _)| is_script(path));
    scripts.map(|(path, bytes)| {
        let text = String::from_utf8_lossy(bytes);
        let javascript = match is_typescript(path) {
            true => erase_types(path, &text),
            false => Ok(text.clone().into_owned()),
        };
        Script { path, text, javascript }
    })
}

fn is_script(path: &str) -> bool {
    path.ends_with(".js") || path.ends_with(".mjs") || is_typescript(path)
}

/// Files of declarations have nothing that runs, and `import type` does not reach for them.
fn is_typescript(path: &str) -> bool {
    path.ends_with(".ts") && !path.ends_with(".d.ts")
}

/// Where an import leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The module that the host provides.
    Quarterdeck,
    /// A file, by path relative to the tools folder.
    File(String),
}

/// Follows an import from the file `base` (relative to the tools folder), or says why a handler may not make it.
pub(crate) fn resolve(base: &str, specifier: &str) -> Result<Target, String> {
    if specifier == "quarterdeck" {
        return Ok(Target::Quarterdeck);
    }
    if !specifier.starts_with("./") && !specifier.starts_with("../") {
        return Err(format!(
            "\"{specifier}\" cannot be imported: handlers have no packages, files or network"
        ));
    }
    // Folders written before there was a module `quarterdeck` took its exports from files of these names, wherever
    // those lay.
    if specifier.ends_with("error-types.js") || specifier.ends_with("tool-response.js") {
        return Ok(Target::Quarterdeck);
    }
    let folder = base.split('/').next().unwrap_or("");
    let mut path: Vec<&str> = base.split('/').collect();
    path.pop();
    for step in specifier.split('/') {
        match step {
            "." | "" => {}
            ".." => {
                path.pop();
            }
            name => path.push(name),
        }
    }
    if path.len() < 2 || path[0] != folder {
        return Err(format!("\"{specifier}\" lies outside the tool's own folder"));
    }
    if !is_script(specifier) {
        return Err(format!("\"{specifier}\" is not a file in JavaScript or TypeScript"));
    }
    Ok(Target::File(path.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_reaches_its_own_folder_and_the_host_and_nothing_else() {
        let file = |path: &str| Ok(Target::File(path.to_owned()));
        let from = |specifier: &str| resolve("kb-search/lib/score.js", specifier);
        assert_eq!(from("quarterdeck"), Ok(Target::Quarterdeck));
        assert_eq!(from("../../_core/error-types.js"), Ok(Target::Quarterdeck));
        assert_eq!(from("./tool-response.js"), Ok(Target::Quarterdeck));
        assert_eq!(from("./rank.js"), file("kb-search/lib/rank.js"));
        assert_eq!(from("../handler.js"), file("kb-search/handler.js"));
        for refused in [
            "lodash",
            "node:fs",
            "/etc/passwd",
            "https://example.com/a.js",
            "../../other/handler.js",
            "../../../x.js",
            "../../kb-search",
            "./data.json",
            "../..",
            "file:///a.js",
        ] {
            assert!(from(refused).is_err(), "{refused}");
        }
    }
}
