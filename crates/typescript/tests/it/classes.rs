//! Types within classes.

use expect_test::expect;

use crate::world::check;

#[test]
fn modifiers_become_spaces() {
    check(
        "class A {\n  private a = 1;\n  public static readonly b: C = 2;\n  protected override get d(): E { return 1; }\n  private static async *f<G>(h: G): AsyncGenerator<G> {}\n  readonly #i: J = 3;\n  private constructor(k: L) {}\n}",
        expect![[r#"
            class·A·{
            ··········a·=·1;
            ·········static··········b····=·2;
            ·····················get·d()····{·return·1;·}
            ··········static·async·*f···(h···)····················{}
            ···········#i····=·3;
            ··········constructor(k···)·{}
            }"#]],
    );
}

#[test]
fn headers_lose_their_types() {
    check(
        "class A<B extends C = D> extends E.F<G> implements H, I<J> {}",
        expect!["class·A··················extends·E.F·······················{}"],
    );
    check(
        "x = class<A> extends (b as C)<D> implements E {}; y = class implements F {}",
        expect!["x·=·class····extends·(b·····)·················{};·y·=·class··············{}"],
    );
    check(
        "class A\n  extends B<C>\n  implements D,\n    E\n{}",
        expect![[r#"
        class·A
        ··extends·B···
        ···············
        ·····
        {}"#]],
    );
}

#[test]
fn members_for_the_types_only_leave_a_semicolon() {
    check(
        "abstract class A {\n  a = 1;\n  [key: string]: B\n  declare c: D\n  abstract e(): F\n  abstract g: H\n  abstract get i(): J\n  abstract accessor k: L\n  m(): void\n  m(n?: O) {}\n  constructor(p: Q)\n  constructor(r: any) {}\n  static readonly [s: string]: T\n}",
        expect![[r#"
            ·········class·A·{
            ··a·=·1;
            ··;···············
            ··;···········
            ··;··············
            ··;············
            ··;··················
            ··;·····················
            ··;········
            ··m(n····)·{}
            ··;················
            ··constructor(r·····)·{}
            ··;·····························
            }"#]],
    );
}

#[test]
fn a_field_is_not_joined_with_the_member_after_it() {
    check(
        "class A {\n  a = 1\n  private [b] = 2\n  c = d\n  public *e() {}\n  f = 3\n  readonly g = 4;\n  private h = 5\n}",
        expect![[r#"
        class·A·{
        ··a·=·1
        ··;·······[b]·=·2
        ··c·=·d
        ··;······*e()·{}
        ··f·=·3
        ··;········g·=·4;
        ··········h·=·5
        }"#]],
    );
    check(
        "class A {\n  a = b as C\n  [d] = 1\n  e = f!\n  static readonly [g] = 2\n}",
        expect![[r#"
        class·A·{
        ··a·=·b·;···
        ··[d]·=·1
        ··e·=·f·
        ··static··········[g]·=·2
        }"#]],
    );
    check(
        "class A {\n  a = 1\n  declare b: C\n  [d] = 2\n  e = 3\n  abstract f: G\n  *h() {}\n}"
            .replace("class", "abstract class")
            .as_str(),
        expect![[r#"
        ·········class·A·{
        ··a·=·1
        ··;···········
        ··[d]·=·2
        ··e·=·3
        ··;············
        ··*h()·{}
        }"#]],
    );
    check(
        "class A {\n  b\n  private get() {}\n  set: C\n  d() {}\n  static?: E\n  f() {}\n  get!: G\n  h(i) {}\n}",
        expect![[r#"
        class·A·{
        ··b
        ··;·······get()·{}
        ··set;··
        ··d()·{}
        ··static;···
        ··f()·{}
        ··get;···
        ··h(i)·{}
        }"#]],
    );
}

#[test]
fn fields_lose_their_types() {
    check(
        "class A { a: B; c?: D; e!: F; g?; 'h': I = 1; [j]: K = 2; [l!]?: M; static n: O; 1: P }",
        expect!["class·A·{·a···;·c····;·e····;·g·;·'h'····=·1;·[j]····=·2;·[l·]····;·static·n···;·1····}"],
    );
    check(
        "class A {\n  a: B\n  [c]: D\n  *e() {}\n  f: G\n  in: H\n  static i: J\n  static {}\n}",
        expect![[r#"
        class·A·{
        ··a···
        ··[c]···
        ··*e()·{}
        ··f···
        ··in···
        ··static·i···
        ··static·{}
        }"#]],
    );
}

#[test]
fn optional_methods_are_methods() {
    check(
        "class A { b?() {} [c]?<D>(): E {} async f?(g?: H) {} }",
        expect!["class·A·{·b·()·{}·[c]····()····{}·async·f·(g····)·{}·}"],
    );
}

#[test]
fn names_like_modifiers_are_names() {
    check(
        "class A { readonly = 1; private private = 2; declare; abstract() {} static static; public async; readonly get = 3; override() {} static readonly accessor = 4 }",
        expect![
            "class·A·{·readonly·=·1;·········private·=·2;·declare;·abstract()·{}·static·static;········async;··········get·=·3;·override()·{}·static··········accessor·=·4·}"
        ],
    );
}
