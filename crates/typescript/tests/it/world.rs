//! What the tests share.

use expect_test::Expect;
use oxc_allocator::Allocator;
use oxc_parser::Parser;
use oxc_span::SourceType;
use quarterdeck_typescript::{TypeScriptProblem, erase_types};

/// Compares what is left of a source. A middle dot stands for a space, so that none is lost at the end of a line.
/// A carriage return would be lost as well.
pub(crate) fn check(source: &str, expected: Expect) {
    expected.assert_eq(&erase(source).replace(' ', "·").replace('\r', "␍"));
}

/// What is left of a source that can be taken; every test also checks what must hold for all of them.
pub(crate) fn erase(source: &str) -> String {
    let text = erase_types("handler.ts", source).unwrap_or_else(|problems| panic!("{}", list(&problems)));
    assert_in_place(source, &text);
    assert_is_javascript(&text);
    assert_eq!(erase_types("handler.ts", &text).as_deref(), Ok(&*text), "JavaScript stays as it is");
    text
}

pub(crate) fn check_problems(source: &str, expected: Expect) {
    expected.assert_eq(&list(&erase_types("handler.ts", source).unwrap_err()));
}

pub(crate) fn list(problems: &[TypeScriptProblem]) -> String {
    let line = |problem: &TypeScriptProblem| {
        format!("{}:{} {problem}\n", problem.position.line, problem.position.column)
    };
    problems.iter().map(line).collect()
}

/// Every character is the one of the source, or a space, or was put there instead of another.
pub(crate) fn assert_in_place(source: &str, text: &str) {
    assert_eq!(source.chars().count(), text.chars().count(), "nothing moves:\n{source}\n{text}");
    for (at, (before, after)) in source.chars().zip(text.chars()).enumerate() {
        let is_line_end = matches!(before, '\n' | '\r' | '\u{2028}' | '\u{2029}');
        let is_allowed = before == after || (!is_line_end && matches!(after, ' ' | ';' | '(' | ')'));
        assert!(is_allowed, "character {at} became {after:?}:\n{source}\n{text}");
    }
}

pub(crate) fn assert_is_javascript(text: &str) {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::mjs()).parse();
    assert!(parsed.diagnostics.is_empty(), "{:?}\n{text}", parsed.diagnostics);
}
