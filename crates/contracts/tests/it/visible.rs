//! What cannot be seen is shown as what it is. The page's script is held to the same table.

use quarterdeck_contracts::{visible, visible_line, visible_value};
use serde_json::{Value, json};

fn table() -> Vec<(String, String, String)> {
    let rows: Vec<Value> = serde_json::from_str(include_str!("../visible.json")).unwrap();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "name"), text(row, "text"), text(row, "shown"))).collect()
}

#[test]
fn every_hidden_character_is_marked_and_readable_text_stays() {
    let table = table();
    assert!(table.len() > 15);
    for (name, text, shown) in table {
        assert_eq!(visible(&text), shown, "{name}");
        assert_eq!(visible(&shown), shown, "{name}, a second time");
    }
}

#[test]
fn one_line_stays_one_line() {
    assert_eq!(visible_line("a\nb\tc\rd\u{2028}e"), "a⏎b⇥c⟨U+000D⟩d⟨U+2028⟩e");
}

#[test]
fn json_is_marked_in_names_and_texts_at_any_depth() {
    let hidden = json!({ "na\u{200b}me": [{ "a": "x\u{202e}y" }, 1, null, true], "plain": "שלום" });
    let shown = json!({ "na⟨U+200B⟩me": [{ "a": "x⟨U+202E⟩y" }, 1, null, true], "plain": "שלום" });
    assert_eq!(visible_value(&hidden), shown);
}
