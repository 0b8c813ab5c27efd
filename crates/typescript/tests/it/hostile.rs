//! Sources that are made to break the parser: it must never take the process with it, nor minutes.

use std::time::{Duration, Instant};

use expect_test::expect;
use quarterdeck_typescript::{MAX_SOURCE_BYTES, erase_types};

use crate::world::{check_problems, erase};

/// What nests: a beginning, what is repeated, a middle, what is repeated after it.
const NESTED: &[[&str; 4]] = &[
    ["x = ", "(", "a", ")"],
    ["x = ", "[", "a", "]"],
    ["x = ", "{a:", "a", "}"],
    ["", "{", "a", "}"],
    ["x = ", "(a=", "a", ")"],
    ["x = ", "(a=", "a", ")=>1"],
    ["x = ", "a?(b):c=>(", "a", ")"],
    ["x = ", "a?(a=(", "a", ")):b"],
    ["x = ", "<T>(x=", "a", ")"],
    ["x = ", "(x:", "a", ")=>a"],
    ["x = ", "async<a,", "a", ">(b)"],
    ["x = ", "async(", "a", ")"],
    ["x = ", "a<(", "a", ")>"],
    ["x = ", "a<", "a", ">"],
    ["x = ", "a<", "a", ""],
    ["x = ", "!", "a", ""],
    ["x = ", "- ", "a", ""],
    ["x = ", "typeof ", "a", ""],
    ["x = ", "await ", "a", ""],
    ["x = ", "new ", "a", ""],
    ["x = ", "a=>", "a", ""],
    ["x = ", "async a=>", "a", ""],
    ["x = ", "a?a:", "a", ""],
    ["x = ", "a=", "a", ""],
    ["x = ", "a+", "a", ""],
    ["x = ", "a**", "a", ""],
    ["x = ", "a??", "a", ""],
    ["x = a", ".b", "", ""],
    ["x = a", "?.b", "", ""],
    ["x = a", "()", "", ""],
    ["x = a", "[0]", "", ""],
    ["x = a", "`b`", "", ""],
    ["x = a", "!", "", ""],
    ["x = a", " as b", "", ""],
    ["x = ", "`${", "a", "}`"],
    ["", "if(a)", "a", ""],
    ["", "if(a);else ", "a", ""],
    ["", "if(a){}else ", "a", ""],
    ["", "for(;;)", "a", ""],
    ["", "while(a)", "a", ""],
    ["", "do ", "a", ";while(a)"],
    ["", "a:", "b", ""],
    ["", "function a(){", "a", "}"],
    ["", "class a{a=class{a(){", "a", "}}}"],
    ["", "switch(a){case 1:", "a", "}"],
    ["", "try{", "a", "}finally{}"],
    ["", "namespace A{", "type a=1", "}"],
    ["namespace A", ".A", "{}", ""],
    ["type X = ", "keyof ", "a", ""],
    ["type X = ", "readonly ", "a[]", ""],
    ["type X = ", "[", "a", "]"],
    ["type X = ", "(", "a", ")"],
    ["type X = ", "(a:", "a", ")=>a"],
    ["type X = ", "{a:", "a", "}"],
    ["type X = ", "A<", "a", ">"],
    ["type X = ", "A extends B?C:", "a", ""],
    ["type X = ", "A extends infer B extends C?C:", "a", ""],
    ["type X = ", "()=>", "a", ""],
    ["type X = ", "a|", "a", ""],
    ["type X = A", "[]", "", ""],
    ["type X = A", ".A", "", ""],
    ["type X = A", "['a']", "", ""],
    ["type X = ", "`${", "a", "}`"],
    ["let { ", "a:{", "a", "}"],
    ["function f(", "{a=[", "a", "]}"],
    ["@", "a(@", "a class{}", ")"],
];

fn nest([begin, open, middle, close]: [&str; 4], times: usize) -> String {
    [begin, &open.repeat(times), middle, &close.repeat(times)].concat()
}

#[test]
fn the_deepest_that_is_taken_does_not_overflow_the_stack() {
    for nested in NESTED {
        let times = [15, 30, 60, 100, 200, 400, 800, 1_500, 2_500, 3_500, 4_900, 6_500, 9_500, 19_000];
        let accepted = times.into_iter().rev().find(|times| !is_too_deep(&nest(*nested, *times)));
        assert!(accepted.is_some(), "{nested:?}");
    }
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    for nested in NESTED {
        let length = nested[1].len() + nested[3].len();
        let source = nest(*nested, (MAX_SOURCE_BYTES - 100) / length);
        let start = Instant::now();
        assert!(is_too_deep(&source), "{nested:?}");
        assert!(start.elapsed() < Duration::from_secs(20), "{nested:?} took {:?}", start.elapsed());
    }
}

/// Takes it, or finds something else wrong with it, unless it is too deep.
fn is_too_deep(source: &str) -> bool {
    match erase_types("handler.ts", source) {
        Ok(_) => false,
        Err(problems) => problems[0].message.contains("nested too deeply"),
    }
}

#[test]
fn depth_is_not_hidden_in_what_might_be_a_text_or_a_regular_expression() {
    let deep = "(".repeat(10_000);
    for hidden in [
        "x = a\n/\"/;{}",
        "if (a) /\"/ + {}",
        "x = (a) / b + /'/ + {}",
        "x = a++\n/`/ + {}",
        "x = b! / 1 + /[/'\"`]/.c + {}",
        "type A = B<C>\n/'/.d({}",
        "x = `${a}` / `'` / {}",
        "x = '\\\r\n' + {}",
        "// a\u{2028}{}",
        "/* ' */ {}",
        "a\n<!-- )))))\n{}",
        "x = /[/]'/ + {}",
        "x = yield / 1 / '/' + {}",
        "#!'\n{}",
        "x = 1./ 2; y = \"/\" + {}",
        "x = a.if(b) / \"/\" + {}",
        "for await (a of b) /'/.c + {}",
        "x = a => /'/.b + {}",
        "x = a + ++b / '/' + {}",
        "x = 'a\u{2028}' + {}",
    ] {
        let source = hidden.replace("{}", &deep);
        assert!(is_too_deep(&source), "{hidden}");
    }
}

#[test]
fn brackets_in_texts_and_comments_do_not_count() {
    let many = "([{<".repeat(5_000);
    for source in [
        format!("const a = '{many}', b = `{many}`, c = \"{many}\""),
        format!("// {many}\n/* {many} */ a / b / c"),
        format!("const a = /[{}]/, b = (c) / d", "(".repeat(5_000)),
        format!(
            "const a = x\n  .replace(/\"/g, '(')\n  .replace(/'/g, `{many}`)\n  .replace(/`/g, \"{many}\")"
        ),
    ] {
        assert_eq!(erase(&source), source);
    }
}

#[test]
fn long_files_are_not_deep() {
    let rows = "  { name: 'a', tags: ['b', \"c\"], f: (d) => d / 2 },\n".repeat(15_000);
    assert!(erase_types("handler.ts", &format!("export const rows = [\n{rows}]\n")).is_ok());
    let functions = "function a(b: C) { return b < 1 ? b / 2 : /'/.test(b) }\n".repeat(1_500);
    assert!(erase_types("handler.ts", &functions).is_ok());
    let statements = "const a = b < c\n".repeat(200);
    assert!(erase_types("handler.ts", &statements).is_ok());
    let parts = format!("const a = ''{}", " + b".repeat(5_000));
    assert!(erase_types("handler.ts", &parts).is_ok());
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    check_problems(
        &" ".repeat(MAX_SOURCE_BYTES + 1),
        expect![[r#"
        1:1 the file has more than 1 MiB
    "#]],
    );
    assert!(erase_types("handler.ts", &" ".repeat(MAX_SOURCE_BYTES)).is_ok());
}

#[test]
fn a_place_too_deep_is_told() {
    check_problems(
        &format!("const a = 1\nconst b = {}1{}", "[".repeat(80), "]".repeat(80)),
        expect![[r#"
        2:74 the code is nested too deeply from here on; split the expression, and give its parts names
    "#]],
    );
}
