//! What a lint says.

use std::fmt;

/// One problem of a schema, told to the tool's author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintIssue {
    /// Where: the JSON pointer of the keyword that is wrong, or of its schema when no one keyword is.
    pub pointer: String,
    /// Which rule is broken.
    pub rule: Rule,
    /// What is wrong, in one sentence.
    pub message: String,
    /// A way out.
    pub help: String,
}

impl LintIssue {
    /// Whether the fault makes the schema unusable.
    pub fn severity(&self) -> Severity {
        self.rule.severity()
    }

    /// Short for asking the severity.
    pub fn is_error(&self) -> bool {
        self.severity() == Severity::Error
    }
}

impl fmt::Display for LintIssue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(formatter, "{place}: {}", self.message)
    }
}

/// How bad a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The schema is refused.
    Error,
    /// The schema is used all the same.
    Warning,
}

/// The rules that a schema can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// The meta-schema of draft 2020-12 rejects it.
    MetaSchema,
    /// A keyword that does not exist.
    UnknownKeyword,
    /// A format that is not checked by anything.
    UnknownFormat,
    /// More than one type, not counting `null`.
    UnionTypes,
    /// A keyword for strings, say, where no `type` says that the value is one.
    MissingType,
    /// A subschema's `type` that the schema around it rules out.
    TypeOutsideContext,
    /// `nullable` without `type`, or against it.
    Nullable,
    /// A required property that `properties` does not declare.
    RequiredNotDeclared,
    /// `prefixItems` that leave the length of the array open.
    OpenTuple,
    /// A `default` that nothing will ever fill in.
    IgnoredDefault,
    /// A declared property that a pattern claims too.
    PropertyMatchesPattern,
    /// A keyword that has no effect without another one.
    IgnoredKeyword,
    /// An `enum` without values.
    EmptyEnum,
    /// A pattern that is not an ECMAScript regular expression.
    BadPattern,
    /// A pattern that could take a text any amount of time, or that is too large to run.
    UnboundedPattern,
    /// A `$ref` to nothing.
    UnresolvedReference,
    /// A `$ref` that leaves the document.
    ForeignReference,
    /// A `$ref` that leads back to itself without ever looking at a part of the value.
    EndlessReference,
    /// Two schemas under one `$id` or anchor.
    AmbiguousReference,
    /// `$async` below a schema that is not.
    AsyncSchema,
    /// Nested more deeply, or larger, than we are prepared to judge.
    TooLarge,
    /// No rule is broken that has a name, and still the validator cannot read it.
    Unreadable,
    /// `$schema` names another draft than 2020-12.
    OtherDraft,
}

impl Rule {
    /// Whether breaking the rule makes a schema unusable.
    pub fn severity(self) -> Severity {
        match self {
            // The keywords are read as those of 2020-12 either way, and what does not fit is reported by itself.
            Self::OtherDraft => Severity::Warning,
            _ => Severity::Error,
        }
    }
}
