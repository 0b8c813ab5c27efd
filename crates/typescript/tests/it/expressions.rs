//! Types within expressions and functions.

use expect_test::expect;

use crate::world::check;

#[test]
fn annotations_of_variables_become_spaces() {
    check(
        "let a: number = 1, b!: string, { c }: { c: Map<string, number[]> } = x;",
        expect!["let·a·········=·1,·b·········,·{·c·}·······························=·x;"],
    );
}

#[test]
fn casts_become_spaces() {
    check(
        "const a = b as const, c = (d satisfies E).f as unknown as G, h = [1 as any, ...(i as J[])];",
        expect![
            "const·a·=·b·········,·c·=·(d············).f················,·h·=·[1·······,·...(i·······)];"
        ],
    );
}

#[test]
fn a_cast_ends_its_statement_where_the_next_line_would_join_it() {
    check(
        "let a = b as any\n(c)\n",
        expect![[r#"
        let·a·=·b·;·····
        (c)
    "#]],
    );
    check(
        "a = b satisfies C[]\n[0].d()\n",
        expect![[r#"
        a·=·b·;············
        [0].d()
    "#]],
    );
    check(
        "a = b as any\n`c`\n",
        expect![[r#"
        a·=·b·;·····
        `c`
    "#]],
    );
    check(
        "a = b as | C\n`c${d}`\n",
        expect![[r#"
        a·=·b·;·····
        `c${d}`
    "#]],
    );
    check(
        "const f = () => a as B\n(c)",
        expect![[r#"
        const·f·=·()·=>·a·;···
        (c)"#]],
    );
    check(
        "a = b as C\n+ d\n",
        expect![[r#"
        a·=·b·····
        +·d
    "#]],
    );
    check(
        "a = b\nas_c(d)\n",
        expect![[r#"
        a·=·b
        as_c(d)
    "#]],
    );
    check(
        "a = b as C\n  .d\n(e)",
        expect![[r#"
        a·=·b·;···
        ····
        (e)"#]],
    );
}

#[test]
fn assertions_that_a_value_is_there_become_spaces() {
    check(
        "a!.b![0]!(c!)!; d = e! + f!!; g! = h; i!++; j?.k!.l; (m?.n)!.o; p! == q",
        expect!["a·.b·[0]·(c·)·;·d·=·e··+·f··;·g··=·h;·i·++;·j?.k·.l;·(m?.n)·.o;·p··==·q"],
    );
    check(
        "a!\n(b)",
        expect![[r#"
        a·
        (b)"#]],
    );
}

#[test]
fn casts_of_what_is_assigned_to_become_spaces() {
    check(
        "(a as any) = 1; ((b) as C) = 2; [c as D, (e!)] = f; ({ g: h as I } = j); for ((k as L) of m);",
        expect![
            "(a·······)·=·1;·((b)·····)·=·2;·[c·····,·(e·)]·=·f;·({·g:·h······}·=·j);·for·((k·····)·of·m);"
        ],
    );
}

#[test]
fn type_arguments_become_spaces() {
    check(
        "f<A>(b); new Map<string, Array<C<D>>>(); new Set<E>; g?.<H>(i); j<K>`l`; const m = n<O>; p<Q>?.(); super_<R<S<T>>>()",
        expect![
            "f···(b);·new·Map·····················();·new·Set···;·g?.···(i);·j···`l`;·const·m·=·n···;·p···?.();·super_·········()"
        ],
    );
    check(
        "a = b<\n  C,\n>(d)",
        expect![[r#"
        a·=·b·
        ····
        ·(d)"#]],
    );
    check("a < b; c > d; e < f > (g); h >> i >>> j;", expect!["a·<·b;·c·>·d;·e·······(g);·h·>>·i·>>>·j;"]);
}

#[test]
fn parameters_lose_their_types() {
    check(
        "function f(a: A, b?: B, c: C = d, { e, g }: { e: E; g: G } = h, [i]: I = 1, j?, ...k: K[]): void {}",
        expect![
            "function·f(a···,·b····,·c····=·d,·{·e,·g·}·················=·h,·[i]····=·1,·j·,·...k·····)·······{}"
        ],
    );
    check(
        "const f = (a?, b?: B): asserts a is C => {}, g = function* (c: D): Iterator<E> {};",
        expect!["const·f·=·(a·,·b····)·················=>·{},·g·=·function*·(c···)··············{};"],
    );
}

#[test]
fn a_parameter_called_this_goes_with_its_comma() {
    check(
        "function f(this: A, b: B) {} function g(this: A) {} function h(this: A,) {} function i(this, b) {}",
        expect![
            "function·f(·········b···)·{}·function·g(·······)·{}·function·h(········)·{}·function·i(······b)·{}"
        ],
    );
    check(
        "({ get a(this: B): C { return 1 }, d<E>(this: E, /* f */ g?: G) {} })",
        expect!["({·get·a(·······)····{·return·1·},·d···(·········/*·f·*/·g····)·{}·})"],
    );
}

#[test]
fn generic_functions_lose_their_type_parameters() {
    check(
        "function f<A, const B extends C = D>(e: A) {} const g = <T,>(h: T) => h, i = async <T>(j: T) => j, k = <const T,>(l: T): T => l;",
        expect![
            "function·f··························(e···)·{}·const·g·=·····(h···)·=>·h,·i·=·async····(j···)·=>·j,·k·=···········(l···)····=>·l;"
        ],
    );
}

#[test]
fn an_arrow_stays_on_the_line_of_its_parameters() {
    check(
        "const f = (a: A): {\n  b: C;\n} => a;",
        expect![[r#"
        const·f·=·(a·······
        ·······
        )·=>·a;"#]],
    );
    check(
        "const f = (a: A)\n  : B</* c\n */D> => a;",
        expect![[r#"
        const·f·=·(a····
        ··········
        ····)·=>·a;"#]],
    );
    check(
        "const f = (a)\n  : Straße => a;",
        expect![[r#"
        const·f·=·(a·
        ·········)·=>·a;"#]],
    );
    check(
        "const f = (a): `b\nc` => a;",
        expect![[r#"
        const·f·=·(a·····
        ·)·=>·a;"#]],
    );
    check(
        "const f = async (a, // b\n  c?: D, // e\n): Promise<\n  F\n> => a;",
        expect![[r#"
        const·f·=·async·(a,·//·b
        ··c····,·//·e
        ···········
        ···
        )·=>·a;"#]],
    );
}

#[test]
fn type_parameters_over_several_lines_do_not_part_an_arrow_function_from_what_precedes_it() {
    check(
        "const f = async <\n  T,\n>(a: T) => a;",
        expect![[r#"
        const·f·=·async·(
        ····
        ··a···)·=>·a;"#]],
    );
    check(
        "function f() {\n  return <\n    T\n  >(a: T): T => a;\n}",
        expect![[r#"
        function·f()·{
        ··return·(
        ·····
        ····a···)····=>·a;
        }"#]],
    );
    check(
        "function f() {\n  return <T>\n  (a: T):\n    T => a;\n}",
        expect![[r#"
        function·f()·{
        ··return·(··
        ···a·····
        ····)·=>·a;
        }"#]],
    );
}

#[test]
fn comments_within_types_go_and_others_stay() {
    check(
        "let a /* b */ : /* c */ D /* e */ = /* f */ 1 as /* g */ H // i\nlet j: {\n  // k\n  l: M; // n\n} = o // p",
        expect![[r#"
            let·a·····················/*·e·*/·=·/*·f·*/·1··············//·i
            let·j···
            ······
            ············
            ··=·o·//·p"#]],
    );
}

#[test]
fn characters_of_several_bytes_become_one_space_each() {
    check(
        "const größe: Maß<'日本', '👍🏽'> = f('日本👍🏽' as Länge, 1)",
        expect!["const·größe··················=·f('日本👍🏽'·········,·1)"],
    );
    check(
        "let a: { /* \u{2028} */ b: '…'\r\n} = 1",
        expect![[r#"
            let·a······· ··········␍
            ··=·1"#]],
    );
}

#[test]
fn templates_and_regular_expressions_are_kept() {
    check(
        "const a = `b: ${c as D} ${`e: ${f!}`} as g`, h = /i as j/, k = l<M>`n${o satisfies P}`;",
        expect!["const·a·=·`b:·${c·····}·${`e:·${f·}`}·as·g`,·h·=·/i·as·j/,·k·=·l···`n${o············}`;"],
    );
}

#[test]
fn words_of_typescript_are_names_elsewhere() {
    check(
        "let type = 1, as = 2, satisfies = as, declare, abstract, namespace, module, readonly\ntype = as\ndeclare\nabstract\nnamespace\nx = { type: 1, readonly: as, private: 2, declare() {}, get get() { return 1 } }",
        expect![[r#"
            let·type·=·1,·as·=·2,·satisfies·=·as,·declare,·abstract,·namespace,·module,·readonly
            type·=·as
            declare
            abstract
            namespace
            x·=·{·type:·1,·readonly:·as,·private:·2,·declare()·{},·get·get()·{·return·1·}·}"#]],
    );
}
