//! Syntax that has a meaning at run time, and what to write instead of it.

use oxc_ast::ast::{
    Declaration, ExportDefaultDeclarationKind, Statement, TSNamespaceDeclaration, TSNamespaceDeclarationBody,
};

/// A construct that cannot be erased.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) message: &'static str,
    pub(crate) help: &'static str,
}

const fn refusal(message: &'static str, help: &'static str) -> Refusal {
    Refusal { message, help }
}

const ENUM: Refusal = refusal(
    "an enum has a meaning at run time, so it cannot be erased",
    "write `const Name = { First: 'first' } as const` and `type Name = (typeof Name)[keyof typeof Name]`",
);
const NAMESPACE: Refusal = refusal(
    "a namespace with values has a meaning at run time, so it cannot be erased",
    "move its contents to a file of their own and import them",
);
const IMPORT_ALIAS: Refusal = refusal(
    "`import … =` has a meaning at run time, so it cannot be erased",
    "write `import name from './file.ts'`, or `import type` where only types are meant",
);
const EXPORT_ASSIGNMENT: Refusal = refusal(
    "`export =` is not a form of JavaScript modules",
    "write `export default`, or name what is exported",
);
const EXPORT_NAMESPACE: Refusal =
    refusal("`export as namespace` belongs to declaration files", "leave it out");
pub(crate) const PARAMETER_PROPERTY: Refusal = refusal(
    "a parameter with a modifier declares and assigns a field at run time, so it cannot be erased",
    "declare the field in the class and assign it in the constructor",
);
pub(crate) const TYPE_ASSERTION: Refusal = refusal(
    "a type in angle brackets before an expression cannot be erased safely",
    "write `expression as Type`",
);
pub(crate) const DECORATOR: Refusal =
    refusal("the engine has no decorators", "call the function on the class or value instead");
pub(crate) const ACCESSOR: Refusal =
    refusal("the engine has no `accessor` fields", "write a private field with `get` and `set`");

/// What becomes of a statement or a declaration.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fate {
    Keep,
    Erase,
    Refuse(Refusal),
}

impl Fate {
    fn erase_if(erases: bool) -> Self {
        if erases { Self::Erase } else { Self::Keep }
    }

    fn erase_or(erases: bool, refusal: Refusal) -> Self {
        if erases { Self::Erase } else { Self::Refuse(refusal) }
    }

    pub(crate) fn of_statement(statement: &Statement<'_>) -> Self {
        match statement {
            Statement::ImportDeclaration(import) => Self::erase_if(import.import_kind.is_type()),
            Statement::ExportDeclaration(export) => Self::of_declaration(&export.declaration),
            Statement::ExportNamedDeclaration(export) => Self::erase_if(export.export_kind.is_type()),
            Statement::ExportFromDeclaration(export) => Self::erase_if(export.export_kind.is_type()),
            Statement::ExportAllDeclaration(export) => Self::erase_if(export.export_kind.is_type()),
            Statement::ExportDefaultDeclaration(export) => match &export.declaration {
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => Self::Erase,
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                    Self::erase_if(function.body.is_none())
                }
                _ => Self::Keep,
            },
            Statement::TSExportAssignment(_) => Self::Refuse(EXPORT_ASSIGNMENT),
            Statement::TSNamespaceExportDeclaration(_) => Self::Refuse(EXPORT_NAMESPACE),
            _ => statement.as_declaration().map_or(Self::Keep, Self::of_declaration),
        }
    }

    fn of_declaration(declaration: &Declaration<'_>) -> Self {
        match declaration {
            Declaration::VariableDeclaration(variables) => Self::erase_if(variables.declare),
            // One without a body is an overload.
            Declaration::FunctionDeclaration(function) => {
                Self::erase_if(function.declare || function.body.is_none())
            }
            Declaration::ClassDeclaration(class) => Self::erase_if(class.declare),
            Declaration::TSTypeAliasDeclaration(_)
            | Declaration::TSInterfaceDeclaration(_)
            | Declaration::TSGlobalDeclaration(_) => Self::Erase,
            Declaration::TSEnumDeclaration(declaration) => Self::erase_or(declaration.declare, ENUM),
            Declaration::TSExternalModuleDeclaration(module) => Self::erase_or(module.declare, NAMESPACE),
            Declaration::TSNamespaceDeclaration(namespace) => {
                Self::erase_or(namespace.declare || has_only_types(namespace), NAMESPACE)
            }
            Declaration::TSImportEqualsDeclaration(import) => {
                Self::erase_or(import.import_kind.is_type(), IMPORT_ALIAS)
            }
        }
    }
}

/// As TypeScript decides whether a namespace exists at run time, on the strict side.
fn has_only_types(namespace: &TSNamespaceDeclaration<'_>) -> bool {
    match &namespace.body {
        TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => has_only_types(inner),
        TSNamespaceDeclarationBody::TSModuleBlock(block) => {
            block.directives.is_empty() && block.body.iter().all(is_only_types)
        }
    }
}

fn is_only_types(statement: &Statement<'_>) -> bool {
    let declaration = match statement {
        Statement::ExportDeclaration(export) => Some(&export.declaration),
        _ => statement.as_declaration(),
    };
    match declaration {
        Some(Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_)) => true,
        Some(Declaration::TSNamespaceDeclaration(namespace)) => has_only_types(namespace),
        _ => false,
    }
}
