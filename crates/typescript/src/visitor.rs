//! Finds what is erased. It sees the parts of a tree that run; types are noted where they hang on those, and not
//! looked into.

use oxc_ast::AstKind;
use oxc_ast::ast::{
    ArrowFunctionExpression, CallExpression, CatchParameter, Class, ClassElement, ClassHeritage, Decorator,
    ExportSpecifier, FormalParameter, FormalParameterRest, Function, ImportSpecifier, MethodDefinition,
    NewExpression, PropertyDefinition, PropertyDefinitionType, PropertyKey, Statement, TSAsExpression,
    TSInstantiationExpression, TSNonNullExpression, TSSatisfiesExpression, TSThisParameter, TSTypeAnnotation,
    TSTypeAssertion, TSTypeParameterDeclaration, TSTypeParameterInstantiation, TaggedTemplateExpression,
    VariableDeclarator,
};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_parser::{Kind, Token};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use crate::outline::Outline;
use crate::refusals::{ACCESSOR, DECORATOR, Fate, PARAMETER_PROPERTY, Refusal, TYPE_ASSERTION};
use crate::text::{Changes, has_line_end};
use crate::tokens::Tokens;

pub(crate) struct Eraser<'t> {
    source: &'t str,
    tokens: Tokens<'t>,
    pub(crate) changes: Changes,
    /// The shape that is left.
    pub(crate) outline: Outline,
    /// What cannot be erased, by its offset.
    pub(crate) refusals: Vec<(u32, Refusal)>,
}

impl<'t> Eraser<'t> {
    pub(crate) fn new(source: &'t str, tokens: Tokens<'t>) -> Self {
        let (changes, outline) = (Changes::default(), Outline::default());
        Self { source, tokens, changes, outline, refusals: Vec::new() }
    }

    fn refuse(&mut self, span: Span, refusal: Refusal) {
        self.refusals.push((span.start, refusal));
    }

    fn erase_token(&mut self, token: Option<Token>) {
        if let Some(token) = token {
            self.changes.erase(token.span());
        }
    }

    /// A `;` stays behind. Without it, lines before and after could become one statement, and text after it a directive.
    fn erase_whole(&mut self, span: Span) {
        self.changes.erase(span);
        self.changes.place(span.start, ';');
    }

    /// A type with its colon, and a `?` or `!` before that.
    fn erase_annotation(&mut self, after: u32, annotation: Option<&TSTypeAnnotation<'_>>) {
        match annotation {
            Some(annotation) => self.changes.erase(Span::new(after, annotation.span.end)),
            None => self.erase_token(self.tokens.next_if(after, Kind::Question)),
        }
    }

    fn erase_type_parameters(&mut self, parameters: Option<&TSTypeParameterDeclaration<'_>>) {
        if let Some(parameters) = parameters {
            self.changes.erase(parameters.span);
        }
    }

    fn erase_type_arguments(&mut self, arguments: Option<&TSTypeParameterInstantiation<'_>>) {
        if let Some(arguments) = arguments {
            self.changes.erase(arguments.span);
        }
    }

    /// Something in a list, with the comma after it. One before it may stay: lists may end with a comma.
    fn erase_list_item(&mut self, span: Span) {
        let end = self.tokens.next_if(span.end, Kind::Comma).map_or(span.end, |comma| comma.end());
        self.changes.erase(Span::new(span.start, end));
    }

    fn erase_this_parameter(&mut self, parameter: Option<&TSThisParameter<'_>>) {
        if let Some(parameter) = parameter {
            self.erase_list_item(parameter.span);
        }
    }

    fn erase_return_type(&mut self, annotation: Option<&TSTypeAnnotation<'_>>) {
        if let Some(annotation) = annotation {
            self.changes.erase(annotation.span);
        }
    }

    /// `as T` or `satisfies T`. TypeScript ends the statement there when the next line begins with a bracket or a
    /// template; JavaScript would take that line for a call, an index or a tag.
    fn erase_cast(&mut self, expression: Span, target: Span) {
        let before = self.tokens.between(expression.end, target.start);
        let Some(keyword) =
            before.iter().rev().find(|token| matches!(token.kind(), Kind::As | Kind::Satisfies))
        else {
            return;
        };
        self.changes.erase(Span::new(keyword.start(), target.end));
        if self.tokens.next(target.end).is_some_and(|next| next.is_on_new_line() && joins_line_before(next)) {
            self.changes.place(keyword.start(), ';');
        }
    }

    /// An arrow must stand on the line of the parenthesis before it. When the type between them spans lines, the
    /// parenthesis goes to the end of that type.
    fn keep_arrow_on_line(&mut self, annotation: &TSTypeAnnotation<'_>) {
        let Some(parenthesis) = self.tokens.previous(annotation.span.start) else { return };
        let erased = Span::new(parenthesis.start(), annotation.span.end);
        if has_line_end(erased.source_text(self.source)) {
            self.changes.erase(parenthesis.span());
            let last = erased.source_text(self.source).chars().next_back().map_or(0, char::len_utf8);
            self.changes.place(erased.end - last as u32, ')');
        }
    }

    /// What begins with type parameters must not begin on a later line without them: after `async` or `return`, that
    /// would be another statement. The parenthesis goes to where they begin.
    fn keep_parameters_on_line(&mut self, parameters: &TSTypeParameterDeclaration<'_>) {
        if let Some(parenthesis) = self.tokens.next_if(parameters.span.end, Kind::LParen)
            && has_line_end(Span::new(parameters.span.start, parenthesis.end()).source_text(self.source))
        {
            self.changes.erase(parenthesis.span());
            self.changes.place(parameters.span.start, '(');
        }
    }

    /// The modifiers before a member's name that JavaScript does not have. The first one leaves a `;` when the member
    /// before could go on with what follows.
    fn erase_modifiers(&mut self, member: Span, key: Span, follows_open_field: bool) {
        for modifier in self.tokens.between(member.start, key.start) {
            if is_erased_modifier(modifier.kind()) {
                self.changes.erase(modifier.span());
                if follows_open_field && modifier.start() == member.start {
                    self.changes.place(modifier.start(), ';');
                }
            }
        }
    }

    /// The end of a member's name, with the bracket of one that is computed.
    fn key_end(&self, key: &PropertyKey<'_>, computed: bool) -> u32 {
        let end = key.span().end;
        let bracket = computed.then(|| self.tokens.next_if(end, Kind::RBrack)).flatten();
        bracket.map_or(end, |bracket| bracket.end())
    }

    /// A field that no `;` ends.
    fn is_open_field(&self, element: &ClassElement<'_>) -> bool {
        matches!(element, ClassElement::PropertyDefinition(_))
            && self.tokens.previous(element.span().end).is_some_and(|last| last.kind() != Kind::Semicolon)
            && self.tokens.next_if(element.span().end, Kind::Semicolon).is_none()
    }

    fn visit_field(&mut self, field: &PropertyDefinition<'_>) {
        let end = self.key_end(&field.key, field.computed);
        if field.definite && field.type_annotation.is_none() {
            self.erase_token(self.tokens.next_if(end, Kind::Bang));
        }
        self.erase_annotation(end, field.type_annotation.as_deref());
        // `get: T` and a method on the next line would become a getter.
        let is_bare = field.type_annotation.is_some() && field.value.is_none();
        if is_bare && field.key.static_name().is_some_and(|name| matches!(&*name, "get" | "set" | "static")) {
            let first = self.tokens.next(end);
            self.changes.place(first.map_or(end, |first| first.start()), ';');
        }
    }
}

fn is_erased_modifier(kind: Kind) -> bool {
    use Kind::{Abstract, Declare, Override, Private, Protected, Public, Readonly};
    matches!(kind, Abstract | Declare | Override | Private | Protected | Public | Readonly)
}

/// Whether JavaScript takes a line that begins like this for the rest of the one before.
fn joins_line_before(token: Token) -> bool {
    matches!(token.kind(), Kind::LParen | Kind::LBrack | Kind::NoSubstitutionTemplate | Kind::TemplateHead)
}

/// What a class has for the types only.
fn is_erased_member(element: &ClassElement<'_>) -> bool {
    match element {
        ClassElement::TSIndexSignature(_) => true,
        // Overloads and abstract methods.
        ClassElement::MethodDefinition(method) => method.value.body.is_none(),
        ClassElement::PropertyDefinition(field) => {
            field.declare || field.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition
        }
        ClassElement::AccessorProperty(accessor) => accessor.r#type.is_abstract(),
        ClassElement::StaticBlock(_) => false,
    }
}

impl<'a> VisitJs<'a> for Eraser<'_> {
    fn enter_node(&mut self, kind: AstKind<'a>) {
        self.outline.enter(kind);
    }

    fn leave_node(&mut self, kind: AstKind<'a>) {
        self.outline.leave(kind);
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        match Fate::of_statement(it) {
            Fate::Keep => walk_js::walk_statement(self, it),
            Fate::Erase => self.erase_whole(it.span()),
            Fate::Refuse(refusal) => self.refuse(it.span(), refusal),
        }
    }

    fn visit_import_specifier(&mut self, it: &ImportSpecifier<'a>) {
        if it.import_kind.is_type() {
            self.erase_list_item(it.span);
        } else {
            walk_js::walk_import_specifier(self, it);
        }
    }

    fn visit_export_specifier(&mut self, it: &ExportSpecifier<'a>) {
        if it.export_kind.is_type() {
            self.erase_list_item(it.span);
        } else {
            walk_js::walk_export_specifier(self, it);
        }
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if let Some(annotation) = &it.type_annotation {
            self.erase_annotation(it.id.span().end, Some(annotation));
        }
        walk_js::walk_variable_declarator(self, it);
    }

    fn visit_catch_parameter(&mut self, it: &CatchParameter<'a>) {
        if let Some(annotation) = &it.type_annotation {
            self.erase_annotation(it.pattern.span().end, Some(annotation));
        }
        walk_js::walk_catch_parameter(self, it);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            self.refuse(it.span, PARAMETER_PROPERTY);
        }
        if it.optional || it.type_annotation.is_some() {
            self.erase_annotation(it.pattern.span().end, it.type_annotation.as_deref());
        }
        walk_js::walk_formal_parameter(self, it);
    }

    fn visit_formal_parameter_rest(&mut self, it: &FormalParameterRest<'a>) {
        if let Some(annotation) = &it.type_annotation {
            self.erase_annotation(it.rest.argument.span().end, Some(annotation));
        }
        walk_js::walk_formal_parameter_rest(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.erase_type_parameters(it.type_parameters.as_deref());
        self.erase_this_parameter(it.this_param.as_deref());
        self.erase_return_type(it.return_type.as_deref());
        walk_js::walk_function(self, it, flags);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.erase_type_parameters(it.type_parameters.as_deref());
        self.erase_return_type(it.return_type.as_deref());
        if let Some(parameters) = &it.type_parameters {
            self.keep_parameters_on_line(parameters);
        }
        if let Some(annotation) = &it.return_type {
            self.keep_arrow_on_line(annotation);
        }
        walk_js::walk_arrow_function_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if it.r#abstract {
            let before_body = self.tokens.between(it.span.start, it.body.span.start);
            let class = before_body.iter().find(|token| token.kind() == Kind::Class);
            let before = class.and_then(|class| self.tokens.previous(class.start()));
            self.erase_token(before.filter(|token| token.kind() == Kind::Abstract));
        }
        self.erase_type_parameters(it.type_parameters.as_deref());
        if let (Some(first), Some(last)) = (it.implements.first(), it.implements.last()) {
            let keyword = self.tokens.previous(first.span.start);
            let start = keyword.map_or(first.span.start, |keyword| keyword.start());
            self.changes.erase(Span::new(start, last.span.end));
        }
        walk_js::walk_class(self, it);
    }

    fn visit_class_heritage(&mut self, it: &ClassHeritage<'a>) {
        self.erase_type_arguments(it.type_arguments.as_deref());
        walk_js::walk_class_heritage(self, it);
    }

    fn visit_class_elements(&mut self, it: &oxc_allocator::ArenaVec<'a, ClassElement<'a>>) {
        let mut follows_open_field = false;
        for element in it {
            if is_erased_member(element) {
                self.erase_whole(element.span());
                follows_open_field = false;
                continue;
            }
            match element {
                ClassElement::MethodDefinition(method) => {
                    self.erase_modifiers(method.span, method.key.span(), follows_open_field);
                }
                ClassElement::PropertyDefinition(field) => {
                    self.erase_modifiers(field.span, field.key.span(), follows_open_field);
                }
                ClassElement::AccessorProperty(accessor) => self.refuse(accessor.span, ACCESSOR),
                ClassElement::StaticBlock(_) | ClassElement::TSIndexSignature(_) => {}
            }
            follows_open_field = self.is_open_field(element);
            self.visit_class_element(element);
        }
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        if it.optional {
            let end = self.key_end(&it.key, it.computed);
            self.erase_token(self.tokens.next_if(end, Kind::Question));
        }
        walk_js::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        self.visit_field(it);
        walk_js::walk_property_definition(self, it);
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.refuse(it.span, DECORATOR);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.erase_type_arguments(it.type_arguments.as_deref());
        walk_js::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.erase_type_arguments(it.type_arguments.as_deref());
        walk_js::walk_new_expression(self, it);
    }

    fn visit_tagged_template_expression(&mut self, it: &TaggedTemplateExpression<'a>) {
        self.erase_type_arguments(it.type_arguments.as_deref());
        walk_js::walk_tagged_template_expression(self, it);
    }

    fn visit_ts_instantiation_expression(&mut self, it: &TSInstantiationExpression<'a>) {
        self.erase_type_arguments(Some(&it.type_arguments));
        walk_js::walk_ts_instantiation_expression(self, it);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.erase_cast(it.expression.span(), it.type_annotation.span());
        walk_js::walk_ts_as_expression(self, it);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.erase_cast(it.expression.span(), it.type_annotation.span());
        walk_js::walk_ts_satisfies_expression(self, it);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.changes.erase(Span::new(it.span.end - 1, it.span.end));
        walk_js::walk_ts_non_null_expression(self, it);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.refuse(it.span, TYPE_ASSERTION);
    }
}
