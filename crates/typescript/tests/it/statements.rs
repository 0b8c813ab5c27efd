//! Statements that are types only.

use expect_test::expect;

use crate::world::check;

#[test]
fn an_erased_statement_leaves_a_semicolon() {
    check(
        "type A = B\ninterface C extends D<E> {\n  f: G\n}\nconst h = 1",
        expect![[r#"
        ;·········
        ;·························
        ······
        ·
        const·h·=·1"#]],
    );
}

#[test]
fn lines_around_an_erased_statement_are_not_joined() {
    check(
        "const a = b\ntype C = D\n(e)",
        expect![[r#"
        const·a·=·b
        ;·········
        (e)"#]],
    );
    check(
        "const a = b\ninterface C {}\n[d].e()",
        expect![[r#"
        const·a·=·b
        ;·············
        [d].e()"#]],
    );
    check(
        "a\ndeclare const b: C\n`d`",
        expect![[r#"
        a
        ;·················
        `d`"#]],
    );
    check(
        "a\ntype B = 1\n/c/.test(d)",
        expect![[r#"
        a
        ;·········
        /c/.test(d)"#]],
    );
    check(
        "let a: B\n(c)\nlet d: E\n[f] = g\nlet h: I\n/j/.test(k)",
        expect![[r#"
        let·a···
        (c)
        let·d···
        [f]·=·g
        let·h···
        /j/.test(k)"#]],
    );
}

#[test]
fn declarations_become_spaces() {
    check(
        "declare const a: B, c: D;\ndeclare let e: F\ndeclare function g(h: I): J\ndeclare class K { l: M; n(): void }\ndeclare module 'o' { export const p: Q }\ndeclare namespace R.S { let t: U }\ndeclare global { interface V { w: X } }\ndeclare enum Y { Z }\ndeclare const sym: unique symbol\n",
        expect![[r#"
            ;························
            ;···············
            ;··························
            ;··································
            ;·······································
            ;·································
            ;······································
            ;···················
            ;·······························
        "#]],
    );
}

#[test]
fn namespaces_of_types_become_spaces() {
    check(
        "namespace A { export type B = C; namespace D.E { interface F {} } }\nnamespace G {}",
        expect![[r#"
        ;··································································
        ;·············"#]],
    );
}

#[test]
fn overloads_become_spaces() {
    check(
        "function f(a: string): string\nfunction f(a: number): number;\nfunction f(a: any) { return a }\nexport function g(): void;\nexport function g(a?: B) {}\nexport default function (a: C): void\nexport default function (a?: C) {}",
        expect![[r#"
            ;····························
            ;·····························
            function·f(a·····)·{·return·a·}
            ;·························
            export·function·g(a····)·{}
            ;···································
            export·default·function·(a····)·{}"#]],
    );
}

#[test]
fn control_flow_keeps_its_shape() {
    check(
        "try { a } catch (e: unknown) { b }\nfor (const c of d as E[]) f\nfor (let g: H = 0; g < i; g++) {}\nif (j as K) l as M\nelse n!\nswitch (o as P) { case q as R: type S = T; break }\nlabel: for (;;) { interface U {} break label }",
        expect![[r#"
            try·{·a·}·catch·(e·········)·{·b·}
            for·(const·c·of·d·······)·f
            for·(let·g····=·0;·g·<·i;·g++)·{}
            if·(j·····)·l·····
            else·n·
            switch·(o·····)·{·case·q·····:·;···········break·}
            label:·for·(;;)·{·;··············break·label·}"#]],
    );
}

#[test]
fn a_text_after_an_erased_statement_does_not_become_a_directive() {
    check(
        "function f() { type A = 1; 'use strict'; }",
        expect!["function·f()·{·;···········'use·strict';·}"],
    );
}

#[test]
fn abstract_classes_are_classes() {
    check(
        "abstract class A {}\nexport abstract class B {}\nexport default abstract class C<D> extends E<F> {}",
        expect![[r#"
        ·········class·A·{}
        export··········class·B·{}
        export·default··········class·C····extends·E····{}"#]],
    );
}
