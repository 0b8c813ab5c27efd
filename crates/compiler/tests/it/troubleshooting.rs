use std::fmt::Write;
use std::path::Path;

use quarterdeck_compiler::rules;

/// With UPDATE_EXPECT=1 the table is written anew.
#[test]
fn the_authoring_guide_explains_every_rule() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- rules -->\n").expect("the guide has a place for the rules");
    let (_, after) = rest.split_once("<!-- end -->").expect("the place for the rules has an end");
    let mut table =
        "| code | rule | | what it means, and the way out |\n| --- | --- | --- | --- |\n".to_owned();
    for rule in rules::ALL {
        let explanation = rule.explanation.replace('|', "\\|");
        writeln!(table, "| {} | `{}` | {} | {explanation} |", rule.code, rule.name, rule.severity.as_str())
            .unwrap();
    }
    let expected = format!("{before}<!-- rules -->\n{table}<!-- end -->{after}");
    expect_test::expect_file![path].assert_eq(&expected);
}
