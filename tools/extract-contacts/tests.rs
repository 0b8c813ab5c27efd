//! Texts that are easy to get wrong. The ordinary ones are in the case files.

use phonenumber::metadata::DATABASE;
use phonenumber::{Mode, Type};

use super::{Args, Contacts, execute};
use crate::world::{at, ready};

fn extract_in(region: &str, text: &str) -> Contacts {
    let args = Args { text: text.into(), region: region.into() };
    ready(execute(args, at("2026-01-13T09:00:00Z"))).unwrap()
}

fn phones_in(region: &str, text: &str) -> Vec<String> {
    extract_in(region, text).phones.into_iter().map(|phone| phone.value).collect()
}

fn phones(text: &str) -> Vec<String> {
    phones_in("US", text)
}

fn urls(text: &str) -> Vec<String> {
    extract_in("US", text).urls.into_iter().map(|url| url.value).collect()
}

#[test]
fn places_count_characters_and_enclose_the_words() {
    let text = "Grüße 👋🏽 an jürgen@Exämple.DE, ☎ (415) 555-2671 → www.ab.de/ü";
    let Contacts { emails, phones, urls } = extract_in("US", text);
    let characters: Vec<char> = text.chars().collect();
    let places: Vec<_> =
        emails.iter().chain(&urls).map(|link| &link.place).chain(phones.iter().map(|p| &p.place)).collect();
    assert_eq!(places.len(), 3, "{places:?}");
    for place in places {
        assert_eq!(characters[place.start..place.end].iter().collect::<String>(), place.text);
    }
    assert_eq!(phones[0].place.text, "(415) 555-2671");
    assert_eq!(phones[0].place.start, 33);
}

#[test]
fn the_usual_ways_to_write_a_number_are_read() {
    for text in [
        "415-555-2671",
        "(415) 555-2671",
        "(415)555-2671",
        "415.555.2671",
        "415 555 2671",
        "4155552671",
        "1-415-555-2671",
        "1 (415) 555-2671",
        "+1 415 555 2671",
        "+1(415)555-2671",
        "(+1) 415-555-2671",
        "tel:+1-415-555-2671",
        "Tel.: 415–555–2671.",
        "call415 at 415 555 2671, please",
        "＋１ ４１５ ５５５ ２６７１",
        "I pay 3 dollars, call 415-555-2671",
    ] {
        assert_eq!(phones(text), ["+14155552671"], "{text}");
    }
    for text in [
        "+49 (0)30 901820",
        "+49 30/901820",
        "030/90 18 20",
        "0049 30 901820",
        "(030) 901820",
        "+49 030 901820",
    ] {
        assert_eq!(phones_in("DE", text), ["+4930901820"], "{text}");
    }
    assert_eq!(phones_in("FR", "01.42.68.53.00"), ["+33142685300"]);
    assert_eq!(phones_in("IT", "06 1234 5678"), ["+390612345678"]);
    assert_eq!(phones_in("ES", "91 234 56 78"), ["+34912345678"]);
    assert_eq!(phones_in("IN", "98765 43210"), ["+919876543210"]);
    assert_eq!(phones_in("AE", "٠٥٠١٢٣٤٥٦٧"), ["+971501234567"]);
}

#[test]
fn a_foreign_number_keeps_its_digits_whatever_the_region() {
    assert_eq!(phones("+49 151 12345678"), ["+4915112345678"]);
    assert_eq!(phones("011 49 151 12345678"), ["+4915112345678"]);
    assert_eq!(phones("+33 1 42 68 53 00"), ["+33142685300"]);
    assert_eq!(phones_in("DE", "+7 800 555-35-35"), ["+78005553535"]);
    assert_eq!(phones_in("RU", "8 (800) 555-35-35"), ["+78005553535"]);
    assert_eq!(phones_in("GB", "+39 06 698 12345"), ["+390669812345"]);
}

#[test]
fn other_numbers_are_not_phone_numbers() {
    for text in [
        "2026-01-13",
        "13/01/2026 09:30",
        "01.13.2026 - 02.13.2026",
        "2026-01-13T09:30:00Z",
        "20260113",
        "from 1999-2004",
        "1768294800",
        "192.168.100.200",
        "10.255.255.254:8080",
        "$4155552671",
        "4155552671 USD",
        "€ 415 555 2671",
        "1,415,555,267",
        "order 4155552671",
        "Order number: 4155552671",
        "invoice no. 415 5552671",
        "#4155552671",
        "INV-415-555-2671",
        "4155552671abc",
        "abc4155552671",
        "4111 1111 1111 1111",
        "DE89 3704 0044 0532 0130 00",
        "978-3-16-148410-0",
        "37.7749, -122.4194",
        "3.14159265358979",
        "2026 415 555",
        "4155 552 671",
        "555-2671",
        "12345678901234567890",
        "550e8400-e29b-41d4-a716-446655440000",
        "user_4155552671@",
        "415-555-2671-99",
    ] {
        assert_eq!(phones(text), Vec::<String>::new(), "{text}");
        // Plans with short numbers and no trunk prefix are the hardest.
        if !text.contains("415") && !text.contains("4111") && !text.contains("0044") {
            assert_eq!(phones_in("DK", text), Vec::<String>::new(), "{text} in DK");
        }
    }
}

#[test]
fn neighbours_do_not_run_together() {
    assert_eq!(phones("415-555-2671 / 415-555-2672"), ["+14155552671", "+14155552672"]);
    assert_eq!(phones("415 555 2671 415 555 2672"), ["+14155552671", "+14155552672"]);
    assert_eq!(phones("2026-01-13 415-555-2671"), ["+14155552671"]);
    assert_eq!(phones("on 13 Jan 2026 415 555 2671"), ["+14155552671"]);
    assert_eq!(phones("415-555-2671 (2 lines)"), ["+14155552671"]);
    assert_eq!(phones("+1 415 555 2671 +49 30 901820"), ["+14155552671", "+4930901820"]);
    assert_eq!(phones("415-555-2671\n415-555-2672"), ["+14155552671", "+14155552672"]);
}

#[test]
fn an_extension_belongs_to_its_number() {
    for text in [
        "415-555-2671 ext. 123",
        "415-555-2671x123",
        "415-555-2671, extension 123",
        "415-555-2671;ext=123",
        "415-555-2671 X 123",
    ] {
        let phone = &extract_in("US", text).phones[0];
        assert_eq!(phone.extension.as_deref(), Some("123"), "{text}");
        assert_eq!(phone.place.text, text);
        assert_eq!(phone.value, "+14155552671");
    }
    let phone = &extract_in("US", "415-555-2671 extra 123").phones[0];
    assert_eq!((phone.extension.as_deref(), phone.place.text.as_str()), (None, "415-555-2671"));
}

#[test]
fn digits_inside_a_link_or_an_address_are_not_a_phone_number() {
    let found =
        extract_in("US", "https://x.example/415-555-2671 4155552671@example.com mailto:bob@Example.com");
    assert!(found.phones.is_empty());
    assert_eq!(found.urls.len(), 1);
    let emails: Vec<_> = found.emails.iter().map(|email| email.value.as_str()).collect();
    assert_eq!(emails, ["4155552671@example.com", "bob@example.com"]);
}

#[test]
fn links_get_their_scheme_and_a_lower_case_host() {
    assert_eq!(urls("See HTTPS://Example.COM/Path?Q=A."), ["https://example.com/Path?Q=A"]);
    assert_eq!(
        urls("(example.com/a_(b)), www.heise.foo"),
        ["https://example.com/a_(b)", "https://www.heise.foo"]
    );
    assert_eq!(urls("ftp://Me@Host.example/x"), ["ftp://Me@host.example/x"]);
    assert_eq!(urls("Edit main.rs, notes.md and e.g. this.That is all."), Vec::<String>::new());
}

#[test]
fn no_text_makes_it_panic_or_lose_its_way() {
    let pieces =
        ["+", "(", ")", "0", "415", "-", " ", ".", "x", "é", "👋", "\n", "٣", "@", "://", "ext", "5552671"];
    // A fixed sequence that only looks random, so that a failure can be repeated.
    let mut state = 7_u64;
    for _ in 0..3_000 {
        let mut text = String::new();
        for _ in 0..24 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
        }
        let mut end = 0;
        for phone in extract_in("US", &text).phones {
            assert!(phone.place.start >= end, "{text:?}");
            end = phone.place.end;
        }
    }
}

/// Every region's own example numbers: land lines as written abroad, mobile ones as written at home.
#[test]
fn the_examples_of_every_numbering_plan_are_found() {
    let mut missed = Vec::new();
    for plan in DATABASE.iter().filter(|plan| plan.id() != "001") {
        let example = |kind| plan.descriptors().get(kind).and_then(|numbers| numbers.example());
        let foreign = if plan.country_code() == 1 { "DE" } else { "US" };
        if let Some(number) = example(Type::FixedLine) {
            let wanted = format!("+{}{number}", plan.country_code());
            if phones_in(foreign, &format!("call {wanted} now")) != [wanted.as_str()] {
                missed.push(wanted);
            }
        }
        if let Some(number) = example(Type::Mobile) {
            let wanted = format!("+{}{number}", plan.country_code());
            let home = phonenumber::parse(None, &wanted).unwrap().format().mode(Mode::National).to_string();
            // Some islands have numbers of four to six digits; those are found only with a country code.
            let long_enough = home.matches(|c: char| c.is_ascii_digit()).count() >= 7;
            if long_enough && phones_in(plan.id(), &format!("call {home} now")) != [wanted.as_str()] {
                missed.push(format!("{} {home}", plan.id()));
            }
        }
    }
    assert_eq!(missed, Vec::<String>::new());
}
