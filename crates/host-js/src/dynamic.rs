//! Finds `import(…)` in a source: imports that the engine meets only when they run, and a build must see before.
//!
//! A small scanner that knows what is code and what is a comment, a text or a pattern. It need not understand the
//! code, only never take a text for it.

/// One `import(…)`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DynamicImport<'a> {
    /// Where the word `import` stands, in bytes.
    pub(crate) offset: usize,
    /// The specifier, when it is written as a plain text.
    pub(crate) specifier: Option<&'a str>,
}

/// Every dynamic import of a source that parses.
pub(crate) fn find(source: &str) -> Vec<DynamicImport<'_>> {
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    // The last byte of code before this one; decides whether a slash divides or begins a pattern.
    let mut before = b';';
    // Braces that were opened inside `${…}` of each template that is being read.
    let mut templates: Vec<usize> = Vec::new();
    while let Some(&byte) = bytes.get(at) {
        let rest = &source[at..];
        match byte {
            b'/' if rest.starts_with("//") => at += rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => at += rest.find("*/").map_or(rest.len(), |end| end + 2),
            b'/' if begins_pattern(source, at, before) => {
                at += pattern_length(rest);
                before = b')';
            }
            b'"' | b'\'' => {
                at += text_length(rest, byte);
                before = b')';
            }
            b'`' => {
                at = template_end(source, at + 1, &mut templates);
                before = b')';
            }
            b'}' if templates.last() == Some(&0) => {
                templates.pop();
                at = template_end(source, at + 1, &mut templates);
                before = b')';
            }
            _ => {
                if let Some(open) = templates.last_mut() {
                    *open = match byte {
                        b'{' => *open + 1,
                        b'}' => *open - 1,
                        _ => *open,
                    };
                }
                let is_inside_word = at > 0 && is_word(bytes[at - 1]);
                if rest.starts_with("import") && !is_inside_word && before != b'.' {
                    found.extend(dynamic_import(rest, at));
                }
                if !byte.is_ascii_whitespace() {
                    before = byte;
                }
                at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
    }
    found
}

fn dynamic_import(rest: &str, offset: usize) -> Option<DynamicImport<'_>> {
    let inside = rest["import".len()..].trim_start().strip_prefix('(')?.trim_start();
    let specifier = inside.chars().next().filter(|quote| matches!(quote, '"' | '\'')).and_then(|quote| {
        let (specifier, after) = inside[1..].split_once(quote)?;
        let is_plain = !specifier.contains('\\') && after.trim_start().starts_with([')', ',']);
        is_plain.then_some(specifier)
    });
    Some(DynamicImport { offset, specifier })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// A slash after a value divides; after an operator, or a word such as `return`, it begins a pattern.
fn begins_pattern(source: &str, at: usize, before: u8) -> bool {
    if is_word(before) {
        let code = source[..at].trim_end();
        return ["return", "typeof", "case", "of", "in", "do", "else", "void", "delete", "await", "yield"]
            .iter()
            .any(|word| code.ends_with(word));
    }
    !matches!(before, b')' | b']' | b'}')
}

fn pattern_length(rest: &str) -> usize {
    let mut is_class = false;
    let mut is_escaped = false;
    for (index, character) in rest.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            '/' if !is_class => return index + 1,
            '\n' => return 1,
            _ => {}
        }
    }
    1
}

fn text_length(rest: &str, quote: u8) -> usize {
    let mut is_escaped = false;
    for (index, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            _ if byte == quote => return index + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Where a template ends, or where its next `${` begins code.
fn template_end(source: &str, from: usize, templates: &mut Vec<usize>) -> usize {
    let bytes = source.as_bytes();
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'`' => return at + 1,
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                templates.push(0);
                return at + 2;
            }
            _ => at += 1,
        }
    }
    source.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specifiers(source: &str) -> Vec<Option<&str>> {
        find(source).into_iter().map(|import| import.specifier).collect()
    }

    #[test]
    fn plain_and_computed_imports_are_found() {
        assert_eq!(specifiers("const m = await import('./a.js');"), [Some("./a.js")]);
        assert_eq!(specifiers("import ( \"fs\" , {})"), [Some("fs")]);
        assert_eq!(specifiers("f(import(name)); import('./a' + x)"), [None, None]);
        assert_eq!(
            specifiers("`${import('./in-template.js')} ${`${{ a: import('b') }.a}`}`"),
            [Some("./in-template.js"), Some("b")]
        );
    }

    #[test]
    fn texts_comments_patterns_and_static_imports_are_not_calls() {
        for source in [
            "// import('a')\n/* import('b') */ 'import(\\'c\\')' \"import(d)\" `import('e')`",
            "const p = /import\\('x'\\)/g; const q = a / b; /[/]import('y')/.test(s)",
            "import x from './x.js'; import './y.js'; import.meta.url; obj.import('z'); reimport('w')",
            "return /import('a')/",
        ] {
            assert_eq!(find(source), [], "{source}");
        }
    }

    #[test]
    fn broken_sources_do_no_harm() {
        for source in ["'", "`", "`${", "/", "/[", "/*", "//", "import(", "}", "`${}`}", "é/é", "\\", "`\\"]
        {
            find(source);
        }
    }
}
