//! From TypeScript to JavaScript, step by step.

use oxc_allocator::Allocator;
use oxc_ast::ast::Program;
use oxc_ast_visit::VisitJs;
use oxc_parser::config::TokensParserConfig;
use oxc_parser::{Parser, ParserReturn};
use oxc_span::SourceType;
use quarterdeck_contracts::handler::Position;

use crate::nesting;
use crate::outline::Outline;
use crate::problem::TypeScriptProblem;
use crate::tokens::Tokens;
use crate::visitor::Eraser;

/// The size of the largest file that is taken.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;

/// More would not be read.
const MAX_PROBLEMS: usize = 50;

/// The parser and the visitors call themselves for what lies within something else. [`nesting`] limits how deep that is;
/// the deepest that it lets pass was seen to need less than 32 MiB, or 16 when optimised. Only what is used becomes memory.
const STACK_BYTES: usize = if cfg!(debug_assertions) { 256 << 20 } else { 64 << 20 };

/// Gives the JavaScript of a file in TypeScript, in which everything that is kept stands where it stood.
///
/// `path` is the name of the file; only its end matters. Plain JavaScript comes back as it is.
///
/// # Errors
///
/// Everything that is wrong with the file: what does not parse, and what cannot be erased.
pub fn erase_types(path: &str, source: &str) -> Result<String, Vec<TypeScriptProblem>> {
    check_kind(path)?;
    if source.len() > MAX_SOURCE_BYTES {
        return Err(problem(source, 0, "the file has more than 1 MiB", None));
    }
    if let Err(offset) = nesting::check(source) {
        let help = Some("split the expression, and give its parts names");
        return Err(problem(source, offset, "the code is nested too deeply from here on", help));
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("typescript".into()).stack_size(STACK_BYTES);
        match thread.spawn_scoped(scope, || erase(source)) {
            Ok(thread) => thread.join().unwrap_or_else(|_| {
                Err(problem(source, 0, "the parser failed on this file", Some("please report it")))
            }),
            Err(error) => {
                Err(problem(source, 0, format!("no thread could be started to parse it: {error}"), None))
            }
        }
    })
}

fn check_kind(path: &str) -> Result<(), Vec<TypeScriptProblem>> {
    if path.ends_with(".tsx") {
        let help = Some("write a `.ts` file; a handler answers with data, not with elements");
        return Err(problem("", 0, "JSX is not supported", help));
    }
    if path.ends_with(".d.ts") {
        let help = Some("import it with `import type`");
        return Err(problem("", 0, "a declaration file has nothing that could run", help));
    }
    Ok(())
}

fn erase(source: &str) -> Result<String, Vec<TypeScriptProblem>> {
    let allocator = Allocator::default();
    let typescript = SourceType::ts().with_module(true);
    // In a file with mistakes the list of tokens may lack its end, which the parser's own assertions do not allow for. So
    // tokens are asked for only when there are none.
    check_syntax(source, &Parser::new(&allocator, source, typescript).parse())?;
    let parsed = Parser::new(&allocator, source, typescript).with_config(TokensParserConfig).parse();
    check_syntax(source, &parsed)?;

    let mut eraser = Eraser::new(source, Tokens::new(&parsed.tokens));
    eraser.visit_program(&parsed.program);
    if !eraser.refusals.is_empty() {
        let refusals = eraser.refusals.iter().take(MAX_PROBLEMS);
        return Err(refusals
            .flat_map(|(offset, refusal)| problem(source, *offset, refusal.message, Some(refusal.help)))
            .collect());
    }
    if eraser.changes.is_empty() {
        return Ok(source.to_owned());
    }
    let text = eraser.changes.apply(source);
    check_result(source, &eraser.outline, &text)?;
    Ok(text)
}

fn check_syntax(source: &str, parsed: &ParserReturn<'_>) -> Result<(), Vec<TypeScriptProblem>> {
    let problems: Vec<_> = parsed
        .diagnostics
        .iter()
        .take(MAX_PROBLEMS)
        .flat_map(|found| {
            let label = found.labels.iter().find(|label| label.primary()).or(found.labels.first());
            let offset = label.map_or(0, |label| label.span().start);
            problem(source, offset, found.message.to_string(), None)
        })
        .collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    if parsed.panicked {
        return Err(problem(source, 0, "the file does not parse", None));
    }
    Ok(())
}

/// Parses what came out. It must be JavaScript, and have the shape of what went in.
fn check_result(source: &str, expected: &Outline, text: &str) -> Result<(), Vec<TypeScriptProblem>> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::mjs()).parse();
    // Places in both texts are the same, but offsets need not be.
    check_syntax(text, &parsed)?;
    match expected.first_difference(&outline_of(&parsed.program)) {
        Some(offset) => {
            let message = "this would mean something else once its types are erased";
            let help =
                "put parentheses around expressions with `as` or `satisfies`, and a `;` after each statement";
            Err(problem(source, offset, message, Some(help)))
        }
        None => Ok(()),
    }
}

fn outline_of(program: &Program<'_>) -> Outline {
    let mut outline = Outline::default();
    outline.visit_program(program);
    outline
}

fn problem(
    source: &str,
    offset: u32,
    message: impl Into<String>,
    help: Option<&'static str>,
) -> Vec<TypeScriptProblem> {
    let position = Position::of(source, offset as usize);
    vec![TypeScriptProblem { position, message: message.into(), help }]
}
