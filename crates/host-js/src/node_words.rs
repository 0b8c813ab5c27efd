//! Finds what only Node has: `require(…)`, `process.…`, `module.exports`, `exports.…`.
//!
//! Nothing is run, so a name that is looked up is not known to be missing; but a source that only ever uses one of these,
//! and never declares it or asks for its type, will fail when it gets there. As with dynamic imports, the engine is asked
//! whether a word is code: one that can be replaced by `enum` is the name of a property, or part of a text or a comment.

use quarterdeck_contracts::handler::FindingKind;

/// One use of a name that handlers do not have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NodeWord {
    /// Where it stands, in bytes.
    pub(crate) offset: usize,
    pub(crate) word: &'static str,
    pub(crate) kind: FindingKind,
}

/// A name, and what follows it where it is used as Node's.
const WORDS: [(&str, &[&str], FindingKind); 4] = [
    ("require", &["("], FindingKind::NodeRequire),
    ("process", &[".", "?."], FindingKind::NodeProcess),
    ("module", &[".exports"], FindingKind::CommonJs),
    ("exports", &["."], FindingKind::CommonJs),
];
/// Each costs a parse of the source.
const MAX_OCCURRENCES: usize = 20;

/// The first use of each name, if the source never declares it. `parses` is the engine's verdict on a source.
pub(crate) fn find(source: &str, parses: impl Fn(&str) -> bool) -> Vec<NodeWord> {
    let used = WORDS.iter().filter_map(|(word, followers, kind)| {
        let places: Vec<_> = occurrences(source, word).take(MAX_OCCURRENCES + 1).collect();
        if places.is_empty() || places.len() > MAX_OCCURRENCES || !parses(source) {
            return None;
        }
        let is_code = |offset: usize| {
            let changed = [&source[..offset], "enum", &source[offset + word.len()..]].concat();
            !parses(&changed)
        };
        let is_use = |offset: usize| {
            let rest = &source[offset + word.len()..];
            followers.iter().any(|follower| rest.starts_with(follower))
                && !source[..offset].trim_end().ends_with("function")
        };
        let (uses, others): (Vec<usize>, Vec<usize>) = places.into_iter().partition(|place| is_use(*place));
        let first = uses.into_iter().find(|place| is_code(*place))?;
        let is_declared = others.into_iter().any(|place| is_imported(&source[..place]) || is_code(place));
        (!is_declared).then_some(NodeWord { offset: first, word, kind: *kind })
    });
    used.collect()
}

/// Whether what follows stands among the names of an import, where the engine takes any word.
fn is_imported(before: &str) -> bool {
    before
        .rfind("import")
        .is_some_and(|start| !before[start..].contains([';', '(']) && !before[start..].contains("from"))
}

/// Where a word stands by itself and is not a property of something.
fn occurrences<'a>(source: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    source.match_indices(word).map(|(offset, _)| offset).filter(move |offset| {
        let (before, after) = (&source[..*offset], &source[offset + word.len()..]);
        !before.ends_with(|letter: char| is_letter(letter) || letter == '.') && !after.starts_with(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parser::Parser;

    fn words(source: &str) -> Vec<&'static str> {
        let parser = Parser::new().unwrap();
        find(source, |text| parser.parses(text)).into_iter().map(|found| found.word).collect()
    }

    #[test]
    fn what_only_node_has_is_found_in_code() {
        assert_eq!(words("const fs = require('fs');"), ["require"]);
        assert_eq!(words("const key = process.env.KEY; process.exit();"), ["process"]);
        assert_eq!(words("module.exports = { execute };"), ["module"]);
        assert_eq!(words("exports.execute = () => 1;"), ["exports"]);
        assert_eq!(words("`${process.env.KEY}`; require('a');"), ["require", "process"]);
    }

    #[test]
    fn what_is_declared_guarded_or_no_code_is_not() {
        for source in [
            "function require(name) { return name; } require('x');",
            "const process = { env: {} }; process.env.KEY;",
            "import { process } from './steps.js'; process.all();",
            "const run = (process) => process.env;",
            "if (typeof process !== 'undefined') process.env.KEY;",
            "globalThis.process?.env; a.require('x');",
            "// require('fs')\nconst text = \"process.env\"; /module.exports/;",
            "({ exports: 1 }).exports.a;",
            "required('x'); preprocess.env;",
            "require(",
        ] {
            assert_eq!(words(source), [""; 0], "{source}");
        }
    }

    #[test]
    fn a_text_full_of_a_word_costs_nothing() {
        let source = format!("/* {} */", "require(x) ".repeat(10_000));
        let asked = std::cell::Cell::new(0);
        assert_eq!(
            find(&source, |_| {
                asked.set(asked.get() + 1);
                true
            }),
            []
        );
        assert_eq!(asked.get(), 0);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail(source in "(require|process|module.exports|exports|[(.?'\"`${}\\\\é\n ]){0,40}") {
            words(&source);
        }
    }
}
