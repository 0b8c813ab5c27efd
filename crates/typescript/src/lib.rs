//! Handlers in TypeScript, without a build step: types are erased, and what is left is the JavaScript that runs.
//!
//! Every character of a type becomes a space, and line ends stay. So whatever is kept stands at the line and column where
//! its author wrote it, and a stack trace of the engine is one of the author's own file. **There is no source map, because
//! nothing has moved**: no file to carry along with an artifact, nothing to apply to an error before it is shown. Node's own
//! type stripping and `ts-blank-space` work the same way.
//!
//! What is added stands where something was erased: a `;` where a line would otherwise join the one before it, and the
//! parenthesis of an arrow function that must not be parted from its arrow by a line end.
//!
//! Types are not checked; `tsc --noEmit` or an editor does that. One file is looked at by itself, so an import of a type
//! must say so (`import type`), as TypeScript's `verbatimModuleSyntax` demands. Syntax with a meaning at run time, such as
//! an enum, cannot be erased and is refused; TypeScript's `erasableSyntaxOnly` refuses the same.
//!
//! The text that comes out is parsed again and must have the shape of the text that went in, types aside. A mistake of
//! ours is a refusal then, not a handler that does something else than it says.

mod erase;
mod nesting;
mod outline;
mod problem;
mod refusals;
mod text;
mod tokens;
mod visitor;

pub use self::erase::{MAX_SOURCE_BYTES, erase_types};
pub use self::problem::TypeScriptProblem;
