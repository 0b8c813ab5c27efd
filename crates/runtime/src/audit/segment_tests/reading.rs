//! Readers see one log, however many segments it has.

use super::super::search::{Search, search};
use super::*;

/// The same events in one file and in many segments, of which some are compressed.
fn both() -> (World, World) {
    let (mut one, mut many) = (World::new(), World::new());
    for world in [&mut one, &mut many] {
        world.settings.retain = None;
        world.settings.daily = false;
    }
    one.settings.max_bytes = u64::MAX;
    for number in 0..60 {
        one.append();
        many.append();
        if number == 40 {
            many.maintain();
        }
    }
    assert!(many.verify().closed_segments > 5);
    (one, many)
}

fn found_by_pages(world: &World, wanted: &Search) -> Vec<u64> {
    let (mut numbers, mut before) = (Vec::new(), None);
    loop {
        let found = search(&world.path(), &Search { before, ..wanted.clone() }).unwrap();
        assert_eq!(found.damaged_lines, 0);
        numbers.extend(
            found
                .lines
                .iter()
                .filter(|line| event(line) == "test")
                .map(|line| line["number"].as_u64().unwrap()),
        );
        assert!(found.next.is_none_or(|next| before.is_none_or(|before| next < before)));
        before = found.next;
        if before.is_none() {
            return numbers;
        }
    }
}

#[test]
fn a_search_finds_the_same_in_segments_as_in_one_file() {
    let (one, many) = both();
    for (max_lines, max_bytes) in [(1, u64::MAX), (7, u64::MAX), (100, 700), (100, u64::MAX)] {
        for text in [None, Some("\"number\":3".to_owned())] {
            let wanted = Search { text, max_lines, max_bytes, ..Search::default() };
            let found = found_by_pages(&many, &wanted);
            assert_eq!(found, found_by_pages(&one, &wanted), "{wanted:?}");
            assert!(found.is_sorted_by(|one, other| one > other) && !found.is_empty());
        }
    }
}

#[test]
fn a_page_of_a_search_goes_on_where_it_was_after_a_rotation_and_a_compression() {
    let (_, mut many) = both();
    let wanted = Search { max_lines: 20, max_bytes: u64::MAX, ..Search::default() };
    let first = search(&many.path(), &wanted).unwrap();
    let last = first.lines.last().unwrap()["seq"].as_u64().unwrap();
    (0..20).for_each(|_| many.append());
    many.maintain();
    let second = search(&many.path(), &Search { before: first.next, ..wanted }).unwrap();
    assert_eq!(second.lines[0]["seq"], last - 1);
}

#[test]
fn the_last_lines_are_read_over_segments_and_a_reader_follows_a_rotation() {
    let (_, mut many) = both();
    for lines in [0, 1, 5, 30, 500] {
        let mut reader = AuditReader::open_last(&many.path(), lines).unwrap();
        let mut seen = 0;
        while let AuditEntry::Line(..) = reader.next_entry().unwrap() {
            seen += 1;
        }
        assert_eq!(seen, lines.min(many.verify().lines));
    }
    let mut reader = AuditReader::open_last(&many.path(), 0).unwrap();
    let mut followed = Vec::new();
    for _ in 0..30 {
        many.append();
        many.maintain();
        assert!(!reader.is_cut_off());
        loop {
            match reader.next_entry().unwrap() {
                AuditEntry::Line(_, value) => followed.extend(value["number"].as_u64()),
                AuditEntry::End => break,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(followed, (61..=90).collect::<Vec<_>>());
}

#[test]
fn reading_since_a_time_begins_with_the_segment_that_may_have_it() {
    let mut world = World::new();
    world.settings.retain = None;
    for _ in 0..10 {
        (0..3).for_each(|_| world.append());
        world.pass_days(1);
    }
    world.maintain();
    let since = crate::envelope::timestamp(world.clock.now() - Duration::from_secs(2 * DAY));
    let mut reader = AuditReader::open_since(&world.path(), Some(&since)).unwrap();
    let (mut older, mut newer) = (0, 0);
    while let AuditEntry::Line(_, value) = reader.next_entry().unwrap() {
        let is_event = u32::from(event(&value) == "test");
        match value["time"].as_str().unwrap() >= since.as_str() {
            true => newer += is_event,
            false => older += is_event,
        }
    }
    assert_eq!(newer, 6, "three events of each of two days");
    assert!(older <= 3, "earlier segments are passed: {older}");
    let mut reader = AuditReader::open_at(&world.path(), 20).unwrap();
    let AuditEntry::Line(_, value) = reader.next_entry().unwrap() else { panic!() };
    assert!((15..=20).contains(&value["seq"].as_u64().unwrap()));
}

#[test]
fn segments_that_are_cut_while_they_are_read_are_no_damage() {
    let mut world = World::new();
    for _ in 0..8 {
        (0..6).for_each(|_| world.append());
        world.pass_days(1);
    }
    let mut reader = AuditReader::open(&world.path()).unwrap();
    assert!(matches!(reader.next_entry().unwrap(), AuditEntry::Line(..)));
    // The segment that is being read goes, and those after it.
    world.append();
    world.maintain();
    let mut numbers = Vec::new();
    loop {
        match reader.next_entry().unwrap() {
            AuditEntry::Line(_, line) => numbers.extend(line["number"].as_u64()),
            AuditEntry::End => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(numbers.is_sorted_by(|one, other| one < other));
    assert_eq!(numbers.last(), Some(&49));
    assert!(numbers.len() < 48, "some were cut: {numbers:?}");
    assert!(world.verify().cut.is_some());
}
