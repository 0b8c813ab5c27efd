//! Programs made of random parts: whatever is kept stands in its place, and is the JavaScript that it was.

use oxc_allocator::Allocator;
use oxc_parser::Parser;
use oxc_span::SourceType;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use quarterdeck_typescript::erase_types;

use crate::world::{assert_in_place, assert_is_javascript, list};

/// A gap between words: spaces, line ends, comments, and characters of several bytes.
fn gap() -> impl Strategy<Value = &'static str> {
    select(vec![
        " ",
        " ",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        " /* é, 日 */ ",
        " // 👍🏽 ; (\n",
        "\u{2028}",
        " /*\n*/ ",
    ])
}

/// A gap without a line end, for the places where a line end means something.
fn inline_gap() -> impl Strategy<Value = &'static str> {
    select(vec![" ", " ", "  ", "\t", " /* é, 日 */ "])
}

fn types() -> impl Strategy<Value = String> {
    let leaf = select(vec![
        "T",
        "any",
        "'日本'",
        "`a${B}`",
        "typeof x",
        "unique symbol",
        "this",
        "A.B",
        "-1",
        "void",
        "Größe",
        "import('./a.ts').B",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(3, 12, 2, |inner| {
        (select(vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), inner.clone(), inner, gap()).prop_map(
            |(kind, a, b, gap)| match kind {
                0 => format!("({a}){gap}| ({b})"),
                1 => format!("Map<{gap}{a}, Array<{b}>>"),
                2 => format!("{{{gap}a: {a}; readonly b?: {b},\n[c: string]: any }}"),
                3 => format!("((a: {a}, ...b:{gap}{b}[]) => {b})"),
                4 => format!("({a} extends infer U ?{gap}{a} : {b})"),
                5 => format!("[a: {a},{gap}b?: {b}]"),
                6 => format!("{{ -readonly [K in{gap}keyof {a}]+?: {b} }}"),
                7 => format!("({a})[]{gap}"),
                8 => format!("(new{gap}<T>(a: {a}) => {b})"),
                _ => format!("Promise<{gap}{a}{gap}>"),
            },
        )
    })
}

fn expressions() -> impl Strategy<Value = String> {
    let leaf =
        select(vec!["x", "1", "'é: T'", "`a${x as T}b`", "/a as b/g", "this.y", "[]", "x < 1", "x / 2"])
            .prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        (0..18, inner.clone(), inner, types(), gap(), inline_gap()).prop_map(
            |(kind, a, b, t, gap, inline)| match kind {
                0 => format!("({a}{inline}as {t})"),
                1 => format!("({a}){inline}satisfies {t}"),
                2 => format!("({a}){inline}as{gap}{t}"),
                3 => format!("({a})!"),
                4 => format!("f<{gap}{t}{gap}>({a}, {b})"),
                5 => format!("new Map<{t},{gap}{t}>({a})"),
                6 => format!("((a: {t}, b?:{gap}{t}): {t} => {a})"),
                7 => format!("(async <{gap}T,>(a: T):{gap}Promise<{t}> => {a})"),
                8 => format!("(function <T>(this: {t},{gap}a: T): {t} {{ return {a} }})"),
                9 => format!("({{ a: {a}, b<T>(c?: {t}): {t} {{}}, get d(): {t} {{ return {b} }} }})"),
                10 => format!("({a})?.b!.c<{t}>({b})"),
                11 => format!("[{a}, ...({b}{inline}as {t}[])]"),
                12 => format!("({a}) ?{gap}({b}) : ({a} as {t})"),
                13 => format!("f<{t}>`${{{a}}}`"),
                14 => format!("(class<T>{gap}extends B<{t}> implements C<{t}> {{ a: {t} = {a} }})"),
                15 => format!("({a}) +{gap}({b})!"),
                16 => format!("(x as {t}) = ({a})"),
                _ => format!("(({{ a, b }}: {t} = {a}){gap}: {t} => ({b}))"),
            },
        )
    })
}

fn members() -> impl Strategy<Value = String> {
    let modifiers =
        select(vec!["", "", "private ", "public readonly ", "protected static ", "static ", "override "]);
    let names = select(vec!["a", "[b]", "'c'", "get", "set", "static", "readonly", "in", "#d", "1"]);
    (0..9, modifiers, names, types(), expressions(), gap()).prop_map(|(kind, modifiers, name, t, a, gap)| {
        match kind {
            0 => format!("{modifiers}{name}: {t}"),
            1 => format!("{modifiers}{name} = {a}"),
            2 => format!("{modifiers}{name}:{gap}{t} = {a}"),
            3 => format!("declare b: {t}"),
            4 => format!("[key:{gap}string]: {t}"),
            5 => format!("m(a: {t}): {t};\nm(a?:{gap}any) {{}}"),
            6 => format!("abstract n<T>(a: {t}):{gap}{t}"),
            7 => format!("private *o<T>(a:{gap}{t}): {t} {{ {a} }}"),
            _ => format!("public async p?(a?: {t}) {{ return {a} }}"),
        }
    })
}

/// A `§` is replaced by a number: what is exported has one name each.
fn statements() -> impl Strategy<Value = String> {
    let parts = (0..16, expressions(), types(), vec(members(), 0..4), gap(), select(vec![";\n", "\n"]));
    parts.prop_map(|(kind, a, t, members, gap, end)| match kind {
        0 => format!("let a:{gap}{t} = {a}"),
        1 => format!("let b!: {t}"),
        2 => format!("type A<T> ={gap}{t}"),
        3 => format!("interface B<T>{gap}{{ a: {t} }}"),
        4 => format!("declare const c:{gap}{t}"),
        5 => format!("function d(a: {t}): {t}\nfunction d<T>(a?:{gap}any) {{ return {a} }}"),
        6 => format!("abstract class E<T>{gap}extends F<{t}> implements G {{\n{}{end}}}", members.join(end)),
        7 => format!("import {{ type H, i,{gap}type J as K }} from './l.ts'"),
        8 => format!("import type {{ M }}{gap}from './n.ts'"),
        9 => format!("export type {{ O{gap}}}"),
        10 => format!("try {{ {a} }} catch (e:{gap}unknown) {{}}"),
        11 => format!("export const p§ = {a}"),
        12 => format!("for (const q of{gap}({a})) {{ type R = {t}\n({a}) }}"),
        13 => format!("if (x) {a}\nelse{gap}{a}"),
        14 => format!("throw <T,>{gap}(a: T):{gap}{t} => {a}"),
        _ => a,
    })
}

fn programs(ends: &'static [&'static str]) -> impl Strategy<Value = String> {
    vec((statements(), select(ends)), 1..6).prop_map(|parts| {
        let parts = parts.into_iter().enumerate();
        parts.map(|(number, (statement, end))| statement.replace('§', &number.to_string()) + end).collect()
    })
}

/// Not every combination of parts is a program, but every program must be taken.
fn check(source: &str) {
    match erase_types("handler.ts", source) {
        Ok(text) => check_text(source, &text),
        Err(problems) => assert!(!is_typescript(source), "{}{source}", list(&problems)),
    }
}

fn check_text(source: &str, text: &str) {
    assert_in_place(source, text);
    assert_is_javascript(text);
    assert_eq!(erase_types("handler.ts", text).as_deref(), Ok(text), "{source}");
}

fn is_typescript(source: &str) -> bool {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::ts().with_module(true)).parse();
    parsed.diagnostics.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_kept_stays_in_place(source in programs(&[";\n", ";", "; // é\n"])) {
        check(&source);
    }

    #[test]
    fn line_ends_end_the_same_statements(source in programs(&["\n", "\r\n", " // é\n", "\n/* é */", ";\n"])) {
        check(&source);
    }

    #[test]
    fn any_text_is_taken_or_refused(source in any::<String>()) {
        if let Ok(text) = erase_types("handler.ts", &source) {
            check_text(&source, &text);
        }
    }
}
