use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(written: &str, said: &str) {
    assert_eq!(spoken_form(written, Language::English), said, "of {written:?}");
}

#[test]
fn markup_is_not_read() {
    check("The **Fram** was *very* strong.", "The Fram was very strong.");
    check("# Ships", "Ships.");
    check("\n- one `kb_search` call", "one kb search call");
    check("2. Second thing", "2, Second thing");
    check("> She sailed.", "She sailed.");
    check("---", "");
    check("| Ship | Year |", "Ship, Year.");
    check("|---|:--:|", "");
    check("snake_case and 3 * 4 stay", "snake case and 3 4 stay");
    check("A<br>B", "A B");
}

#[test]
fn citations_are_not_read() {
    check("Colin Archer built her [project:building-of-fram].", "Colin Archer built her.");
    check("It sank [1], they say [2, 3].", "It sank, they say.");
    check("See [person:nansen, project:fram] for more.", "See for more.");
    check("Really (project:fram)?", "Really?");
    check("She was strong【4†source】.", "She was strong.");
    check("[project:fram]", "");
}

#[test]
fn links_are_their_words_and_addresses_their_hosts() {
    check("See [the museum](https://frammuseum.no/en) now.", "See the museum now.");
    check("![A ship](ship.png)", "A ship");
    check("Go to https://www.frammuseum.no/visit?x=1.", "Go to frammuseum.no.");
    check("Write to post@fram.no today.", "Write to post at fram.no today.");
}

#[test]
fn emoji_are_not_read() {
    check("Done! 🎉👍🏽 ✅", "Done!");
    check("🎉", "");
}

#[test]
fn dates_and_times_are_said() {
    check("On 2026-11-17 at 14:30.", "On 17 November 2026 at 2 30 p.m.");
    check("It is 2026-11-17T09:05:00Z now", "It is 17 November 2026 at 9 oh 5 a.m. now");
    check("from 12:00 to 00:00", "from noon to midnight");
    check("at 2:30 pm sharp", "at 2 30 p.m. sharp");
    check("a ratio of 3:2", "a ratio of 3:2");
    check("2026-13-45", "2026-13-45");
    assert_eq!(
        spoken_form("Am 2026-11-17 um 14:30 Uhr", Language::German),
        "Am 17. November 2026 um 14 Uhr 30"
    );
    assert_eq!(spoken_form("2026-11-17T14:30", Language::Spanish), "17 de noviembre de 2026 a las 14 y 30");
}

#[test]
fn money_and_measures_are_said() {
    check("It costs $5.50 or €1,200.", "It costs 5 dollars 50 or 1200 euros.");
    check("£1 and £0.05 and £3m", "1 pound and 5 pence and 3 million pounds");
    check("12 € each", "12 euros each");
    check("5% of 39 m, 800 kg", "5 per cent of 39 metres, 800 kilograms");
    check("at 12 km/h in 1 h", "at 12 kilometres per hour in 1 hour");
    check("-5°C in the 1890s", "-5 degrees Celsius in the 1890s");
    check("1,234,567 people", "1234567 people");
    assert_eq!(spoken_form("12,50 € und 5 %", Language::German), "12 Euro 50 und 5 Prozent");
}

#[test]
fn ranges_signs_and_abbreviations_are_said() {
    check("1893–1896", "1893 to 1896");
    check("Salt & ice, e.g. ~20 of #3", "Salt and ice, for example about 20 of number 3");
    check("Oslo → Larvik", "Oslo, Larvik");
}

#[test]
fn telephone_numbers_are_read_digit_by_digit() {
    check("Call +47 22 12 34 56 now", "Call plus 4 7, 2 2, 1 2, 3 4, 5 6 now");
    check("or 555-123-4567.", "or 5 5 5, 1 2 3, 4 5 6 7.");
}

#[test]
fn other_languages_keep_their_figures() {
    assert_eq!(spoken_form("Det er **5 %** [1] kl. 14:30", Language::Other), "Det er 5 % kl. 14:30");
    assert_eq!(spoken_form("船は[project:fram]です。", Language::Other), "船はです。");
}

proptest! {
    #[test]
    fn brackets_are_never_read(text in "([a-z]{1,8}|[0-9]{1,4}|[\\[\\](){}<>*_`|#~^.,:;/&%$€ -]|\n|\\[1\\]|\\[a:b\\]|https://x\\.y/z){0,60}") {
        for language in [Language::English, Language::German, Language::French, Language::Spanish, Language::Other] {
            let said = spoken_form(&text, language);
            prop_assert!(!said.contains(['[', ']', '{', '}', '<', '>', '|', '`', '*', '#']), "{said:?}");
        }
    }

    #[test]
    fn any_text_has_a_spoken_form(text in "\\PC{0,200}") {
        let said = spoken_form(&text, Language::English);
        prop_assert!(said.is_empty() || said.chars().any(char::is_alphanumeric));
    }
}
