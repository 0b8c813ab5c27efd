//! What is refused, with its place and what to write instead.

use expect_test::expect;
use quarterdeck_typescript::erase_types;

use crate::world::{check_problems, list};

#[test]
fn syntax_with_a_meaning_at_run_time_is_refused() {
    check_problems(
        "enum A { B }\nconst enum C { D }\n  export enum E {}\nnamespace F { export const g = 1 }\nnamespace H.I { type J = 1; k() }\nmodule L { let m }\nimport n = require('n')\nimport o = F.g\nexport import p = F.g\nexport = q\nexport as namespace R\n",
        expect![[r#"
            1:1 an enum has a meaning at run time, so it cannot be erased; write `const Name = { First: 'first' } as const` and `type Name = (typeof Name)[keyof typeof Name]`
            2:1 an enum has a meaning at run time, so it cannot be erased; write `const Name = { First: 'first' } as const` and `type Name = (typeof Name)[keyof typeof Name]`
            3:3 an enum has a meaning at run time, so it cannot be erased; write `const Name = { First: 'first' } as const` and `type Name = (typeof Name)[keyof typeof Name]`
            4:1 a namespace with values has a meaning at run time, so it cannot be erased; move its contents to a file of their own and import them
            5:1 a namespace with values has a meaning at run time, so it cannot be erased; move its contents to a file of their own and import them
            6:1 a namespace with values has a meaning at run time, so it cannot be erased; move its contents to a file of their own and import them
            7:1 `import … =` has a meaning at run time, so it cannot be erased; write `import name from './file.ts'`, or `import type` where only types are meant
            8:1 `import … =` has a meaning at run time, so it cannot be erased; write `import name from './file.ts'`, or `import type` where only types are meant
            9:1 `import … =` has a meaning at run time, so it cannot be erased; write `import name from './file.ts'`, or `import type` where only types are meant
            10:1 `export =` is not a form of JavaScript modules; write `export default`, or name what is exported
            11:1 `export as namespace` belongs to declaration files; leave it out
        "#]],
    );
}

#[test]
fn classes_with_hidden_code_are_refused() {
    check_problems(
        "@a class B {\n  constructor(private c: D, readonly e?: F, public override g = 1) { super() }\n  @h i() {}\n  accessor j = 1\n  static accessor k: L\n  m(@n o: P) {}\n}",
        expect![[r#"
            1:1 the engine has no decorators; call the function on the class or value instead
            2:15 a parameter with a modifier declares and assigns a field at run time, so it cannot be erased; declare the field in the class and assign it in the constructor
            2:29 a parameter with a modifier declares and assigns a field at run time, so it cannot be erased; declare the field in the class and assign it in the constructor
            2:45 a parameter with a modifier declares and assigns a field at run time, so it cannot be erased; declare the field in the class and assign it in the constructor
            3:3 the engine has no decorators; call the function on the class or value instead
            4:3 the engine has no `accessor` fields; write a private field with `get` and `set`
            5:3 the engine has no `accessor` fields; write a private field with `get` and `set`
            6:5 the engine has no decorators; call the function on the class or value instead
        "#]],
    );
}

#[test]
fn assertions_in_angle_brackets_are_refused() {
    check_problems(
        "const a = <B>c\nconst d = <const>['é', <E>f]",
        expect![[r#"
        1:11 a type in angle brackets before an expression cannot be erased safely; write `expression as Type`
        2:11 a type in angle brackets before an expression cannot be erased safely; write `expression as Type`
    "#]],
    );
}

#[test]
fn elements_are_refused() {
    check_problems(
        "const a = <div>b</div>",
        expect![[r#"
        1:18 Unterminated regular expression
        1:18 Unexpected token
    "#]],
    );
    let problems = erase_types("cards/handler.tsx", "export {}").unwrap_err();
    expect![[r#"
        1:1 JSX is not supported; write a `.ts` file; a handler answers with data, not with elements
    "#]]
    .assert_eq(&list(&problems));
    let problems = erase_types("types.d.ts", "export declare const a: B").unwrap_err();
    expect![[r#"
        1:1 a declaration file has nothing that could run; import it with `import type`
    "#]]
    .assert_eq(&list(&problems));
}

#[test]
fn what_does_not_parse_is_refused_with_its_place() {
    check_problems(
        "const a = 1\nconst é: B = = 2",
        expect![[r#"
        2:14 Unexpected token
    "#]],
    );
    check_problems(
        "const a: = 1",
        expect![[r#"
        1:10 Unexpected token
    "#]],
    );
    check_problems(
        "function f( {",
        expect![[r#"
        1:14 Expected `}` but found `EOF`
    "#]],
    );
    check_problems(
        "let a = 'b",
        expect![[r#"
        1:9 Unterminated string
    "#]],
    );
    check_problems(
        "const f = (a): B\n  => a",
        expect![[r#"
        2:3 Line terminator not permitted before arrow
    "#]],
    );
}

#[test]
fn a_character_that_begins_no_word_is_refused() {
    check_problems(
        "g?.·(i)",
        expect![[r#"
        1:4 Invalid Character `·`
        1:2 Identifier expected after '?.'
    "#]],
    );
    check_problems(
        "const a: B = 1;·j",
        expect![[r#"
        1:16 Invalid Character `·`
    "#]],
    );
}

#[test]
fn what_would_mean_something_else_without_its_types_is_refused() {
    check_problems(
        "const a = b < c as any + 1",
        expect![[r#"
        1:23 Expected a semicolon or an implicit semicolon after a statement, but found none
    "#]],
    );
    check_problems(
        "const a = b + c as any * 2",
        expect![[r#"
        1:23 Expected a semicolon or an implicit semicolon after a statement, but found none
    "#]],
    );
    check_problems(
        "const a = b + c as any\n* 2",
        expect![[r#"
        2:1 Unexpected token
    "#]],
    );
    check_problems(
        "const a = b ** c as any ** 2",
        expect![[r#"
        1:11 this would mean something else once its types are erased; put parentheses around expressions with `as` or `satisfies`, and a `;` after each statement
    "#]],
    );
    check_problems(
        "function f() { 'use strict' as string }",
        expect![[r#"
        1:16 this would mean something else once its types are erased; put parentheses around expressions with `as` or `satisfies`, and a `;` after each statement
    "#]],
    );
    check_problems(
        "const a = 1\nconst b = -c as any ** 2",
        expect![[r#"
            2:11 A unary expression with the '-' operator cannot be used as the left operand of an exponentiation expression
        "#]],
    );
    check_problems(
        "for (async as any of b);",
        expect![[r#"
            1:6 The left-hand side of a `for...of` statement may not be `async`
        "#]],
    );
}
