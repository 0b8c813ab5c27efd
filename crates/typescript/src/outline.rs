//! The shape of a program: which node lies in which, types aside. Two programs whose tokens are the same and whose shapes
//! are the same do the same.

use oxc_ast::{AstKind, AstType};
use oxc_ast_visit::VisitJs;
use oxc_span::GetSpan;

/// A node that begins, or one that ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    node: Option<AstType>,
    /// Where the node begins.
    pub(crate) offset: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Outline(Vec<Edge>);

impl Outline {
    pub(crate) fn enter(&mut self, kind: AstKind<'_>) {
        if counts(kind.ty()) {
            self.0.push(Edge { node: Some(kind.ty()), offset: kind.span().start });
        }
    }

    pub(crate) fn leave(&mut self, kind: AstKind<'_>) {
        if counts(kind.ty()) {
            self.0.push(Edge { node: None, offset: kind.span().start });
        }
    }

    /// Where this one is not like another.
    pub(crate) fn first_difference(&self, other: &Self) -> Option<u32> {
        let pairs = self.0.iter().zip(&other.0);
        let differing = pairs.clone().find(|(edge, other)| edge.node != other.node);
        let last = || self.0.last().map_or(0, |edge| edge.offset);
        differing.map(|(edge, _)| edge.offset).or_else(|| (self.0.len() != other.0.len()).then(last))
    }
}

/// Parentheses are gone from some trees and not from others; what they group is seen in the shape. The `;` that stands
/// for an erased statement ends the one before it, or is a statement that does nothing.
fn counts(node: AstType) -> bool {
    !matches!(
        node,
        AstType::EmptyStatement
            | AstType::ParenthesizedExpression
            | AstType::TSAsExpression
            | AstType::TSSatisfiesExpression
            | AstType::TSNonNullExpression
            | AstType::TSInstantiationExpression
    )
}

impl<'a> VisitJs<'a> for Outline {
    fn enter_node(&mut self, kind: AstKind<'a>) {
        self.enter(kind);
    }

    fn leave_node(&mut self, kind: AstKind<'a>) {
        self.leave(kind);
    }
}
