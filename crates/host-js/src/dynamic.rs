//! Finds `import(…)` in a source: imports that the engine meets only when they run, and a build must see before.
//!
//! Whether a word is code or part of a text, a pattern or a comment only a whole parser knows, so the engine is asked:
//! `enum` may stand wherever a name of a property or any text may, and nowhere else. A source that no longer parses
//! with `enum` in the place of a word `import` that a bracket follows has a dynamic import there.

/// One `import(…)`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DynamicImport<'a> {
    /// Where the word `import` stands, in bytes.
    pub(crate) offset: usize,
    /// The specifier, when it is written as a plain text.
    pub(crate) specifier: Option<&'a str>,
}

const IMPORT: &str = "import";
const NEVER_CODE: &str = "enum";

/// Every dynamic import of a source. `parses` is the engine's verdict on a source; of one that does not parse nothing
/// can be said, and nothing of it will run.
pub(crate) fn find<'a>(source: &'a str, parses: impl Fn(&str) -> bool) -> Vec<DynamicImport<'a>> {
    let candidates = candidates(source);
    let mut found = Vec::new();
    if !candidates.is_empty() && parses(source) {
        search(source, &candidates, &parses, &mut found);
    }
    found.into_iter().map(|offset| DynamicImport { offset, specifier: specifier(source, offset) }).collect()
}

/// Narrows down which candidates are code. Most sources have none, and one question is enough to know; halving keeps
/// the questions few where a text is full of the word.
fn search(source: &str, candidates: &[usize], parses: &impl Fn(&str) -> bool, found: &mut Vec<usize>) {
    if candidates.is_empty() || parses(&replaced(source, candidates)) {
        return;
    }
    if let [only] = candidates {
        return found.push(*only);
    }
    let (first, second) = candidates.split_at(candidates.len() / 2);
    search(source, first, parses, found);
    search(source, second, parses, found);
}

/// The source with another word at these places.
fn replaced(source: &str, places: &[usize]) -> String {
    let mut text = String::with_capacity(source.len());
    let mut at = 0;
    for place in places {
        text.push_str(&source[at..*place]);
        text.push_str(NEVER_CODE);
        at = place + IMPORT.len();
    }
    text.push_str(&source[at..]);
    text
}

/// The places of the word `import`, in code or not, that a bracket follows.
fn candidates(source: &str) -> Vec<usize> {
    let words = source.match_indices(IMPORT).map(|(offset, _)| offset);
    words
        .filter(|offset| {
            // Letters beyond ASCII are left to the engine: some of them are spaces.
            let is_inside_word = source[..*offset].bytes().next_back().is_some_and(is_word);
            !is_inside_word && after_gap(&source[offset + IMPORT.len()..]).starts_with('(')
        })
        .collect()
}

fn specifier(source: &str, offset: usize) -> Option<&str> {
    let bracket = after_gap(&source[offset + IMPORT.len()..]);
    let inside = after_gap(bracket.strip_prefix('(')?);
    let quote = inside.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let (specifier, after) = inside[1..].split_once(quote)?;
    let is_plain = !specifier.contains('\\') && after_gap(after).starts_with([')', ',']);
    is_plain.then_some(specifier)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// What follows white space and comments.
fn after_gap(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
        rest = if rest.starts_with("//") {
            rest.find(['\n', '\r', '\u{2028}', '\u{2029}']).map_or("", |end| &rest[end..])
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else {
            return rest;
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parser::Parser;

    fn specifiers(source: &str) -> Vec<Option<&str>> {
        let parser = Parser::new().unwrap();
        find(source, |text| parser.parses(text)).into_iter().map(|import| import.specifier).collect()
    }

    #[test]
    fn plain_and_computed_imports_are_found() {
        assert_eq!(specifiers("const m = await import('./a.js');"), [Some("./a.js")]);
        assert_eq!(specifiers("import ( \"fs\" , {})"), [Some("fs")]);
        assert_eq!(specifiers("let f, name, x; f(import(name)); import('./a' + x)"), [None, None]);
        assert_eq!(specifiers("import/**/( // (\n './a.js' /* ) */ )"), [Some("./a.js")]);
        assert_eq!(specifiers("import('./\\x61.js'); import(`./a.js`); import((0, './a.js'))"), [None; 3]);
        assert_eq!(
            specifiers("`${import('./in-template.js')} ${`${{ a: import('b') }.a}`}`"),
            [Some("./in-template.js"), Some("b")]
        );
    }

    #[test]
    fn a_text_full_of_the_word_is_asked_about_once() {
        let source = format!("/* {} */", "import(x) ".repeat(10_000));
        let asked = std::cell::Cell::new(0);
        let found = find(&source, |_| {
            asked.set(asked.get() + 1);
            true
        });
        assert_eq!((found.len(), asked.get()), (0, 2));
    }

    #[test]
    fn broken_sources_do_no_harm() {
        for source in [
            "'", "`", "`${", "/", "/[", "/*", "//", "import(", "}", "`${}`}", "é/é", "\\", "`\\", "import/*",
            "import//",
        ] {
            assert_eq!(specifiers(source), [], "{source}");
        }
    }

    /// A statement, and whether it imports.
    fn statement() -> impl Strategy<Value = (String, bool)> {
        let gap = prop::sample::select(vec![
            "",
            " ",
            "\n",
            "\u{a0}",
            "\u{feff}",
            "/**/",
            "/*'*/",
            "//`\n",
            "/* import(x) */",
            "\u{2028}",
        ]);
        let shape = prop::sample::select(vec![
            ("void IMPORT;", true),
            ("`${IMPORT}`;", true),
            ("`'${`${IMPORT}`}\"`;", true),
            ("1 / IMPORT / 1;", true),
            ("({ a: IMPORT });", true),
            ("'IMPORT';", false),
            ("\"'IMPORT\";", false),
            ("`IMPORT\\${IMPORT}`;", false),
            ("({}).x?.IMPORT;", false),
            ("/'IMPORT[/\"]/;", false),
            ("// IMPORT\n", false),
            ("/* \" IMPORT */", false),
        ]);
        (gap.clone(), gap, shape).prop_map(|(before, after, (shape, imports))| {
            // In a text or a comment a gap may be the end of it.
            let is_fragile = !imports && !shape.starts_with("({");
            let import = match is_fragile {
                true => "import(x)".to_owned(),
                false => format!("import{before}({after}'./a.js')"),
            };
            (shape.replace("IMPORT", &import), imports)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn imports_are_told_from_everything_around_them(statements in prop::collection::vec(statement(), 0..12)) {
            let source: String = statements.iter().map(|(text, _)| format!("{text}\n")).collect();
            let expected = statements.iter().filter(|(_, imports)| *imports).count();
            let parser = Parser::new().unwrap();
            prop_assert!(parser.parses(&source), "{source}");
            prop_assert_eq!(specifiers(&source), vec![Some("./a.js"); expected], "{}", source);
        }

        #[test]
        fn no_text_makes_it_fail(source in "(import|[(/*'\"`${}\\\\é\u{feff}\n ]|enum){0,40}") {
            specifiers(&source);
        }
    }
}
