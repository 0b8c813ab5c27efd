//! Segments that were removed, exchanged, cut off or rewritten are found, and named.

use std::fs;

use super::super::chain::ChainHead;
use super::*;

/// A log of seven segments, of which the first are compressed; nothing is cut.
fn sample() -> World {
    let mut world = World::new();
    world.settings.retain = None;
    while world.writer.as_ref().is_none_or(|writer| writer.segment.number < 5) {
        world.append();
    }
    world.maintain();
    while world.writer.as_ref().is_some_and(|writer| writer.segment.number < 7) {
        world.append();
    }
    // The last two are not compressed.
    world.settings.compress = false;
    world.maintain();
    world.stop();
    world.check();
    assert_eq!(world.verify().closed_segments, 6);
    world
}

fn fault(world: &World) -> String {
    world.verify().fault.unwrap_or_default()
}

#[test]
fn a_missing_segment_is_named() {
    for missing in 1..=6 {
        let world = sample();
        let files = world.files();
        let path = if missing <= 4 { files.compressed(missing) } else { files.plain(missing) };
        fs::remove_file(path).unwrap();
        let fault = fault(&world);
        match missing {
            1 => assert!(fault.contains("no line of it says that those before were cut"), "{fault}"),
            missing => assert!(fault.starts_with(&format!("segment {missing}, which begins")), "{fault}"),
        }
    }
    let world = sample();
    fs::remove_dir_all(world.files().folder()).unwrap();
    assert!(fault(&world).contains("they are missing"), "{}", fault(&world));
    let world = sample();
    fs::remove_file(world.path()).unwrap();
    assert!(fault(&world).contains("that the store knows is not in it"), "{}", fault(&world));
}

#[test]
fn exchanged_segments_are_named() {
    let world = sample();
    let files = world.files();
    let aside = files.folder().join("aside");
    fs::rename(files.compressed(2), &aside).unwrap();
    fs::rename(files.compressed(3), files.compressed(2)).unwrap();
    fs::rename(aside, files.compressed(3)).unwrap();
    let fault = fault(&world);
    assert!(fault.starts_with("segment 2 (audit.jsonl.segments/000002.jsonl.gz)"), "{fault}");
    assert!(fault.contains("header of segment 3") && fault.contains("exchanged or renamed"), "{fault}");
}

#[test]
fn a_segment_that_is_cut_off_is_named_wherever_it_is_cut() {
    let world = sample();
    let path = world.files().plain(5);
    let whole = fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(37).chain([whole.len() - 1]) {
        fs::write(&path, &whole[..length]).unwrap();
        let fault = fault(&world);
        assert!(fault.starts_with("segment 5 "), "{length}: {fault}");
    }
    let compressed = world.files().compressed(3);
    let bytes = fs::read(&compressed).unwrap();
    fs::write(&path, whole).unwrap();
    fs::write(&compressed, &bytes[..bytes.len() / 2]).unwrap();
    assert!(fault(&world).starts_with("segment 3 "), "{}", fault(&world));
}

#[test]
fn a_changed_line_is_named_with_its_segment() {
    let world = sample();
    let path = world.files().plain(6);
    let text = fs::read_to_string(&path).unwrap().replacen("\"event\":\"test\"", "\"event\":\"tess\"", 1);
    fs::write(&path, text).unwrap();
    let fault = fault(&world);
    assert!(fault.starts_with("segment 6 (audit.jsonl.segments/000006.jsonl): line "), "{fault}");
}

#[test]
fn a_log_that_was_rewritten_with_its_store_is_found_by_its_seals() {
    let world = sample();
    let mut forged = World::new();
    forged.settings = SegmentSettings { seal_file: None, compress: false, ..world.settings.clone() };
    forged.next = 1_000;
    while forged.writer.as_ref().is_none_or(|writer| writer.segment.number < 7) {
        forged.append();
    }
    forged.stop();
    forged.settings.seal_file = world.settings.seal_file.clone();
    let fault = fault(&forged);
    assert!(fault.contains("seal file") && fault.contains("segment 1"), "{fault}");
    // Rewritten from the middle on, so that only the last segments differ.
    let mut shorter = World::new();
    copy_folder(world.folder.path(), shorter.folder.path());
    fs::remove_file(shorter.files().plain(6)).unwrap();
    fs::remove_file(shorter.path()).unwrap();
    shorter.settings = world.settings.clone();
    shorter.append();
    shorter.stop();
    let found = shorter.verify();
    assert!(found.fault.unwrap().contains("seal file"), "the last seal is of a segment that is gone");
}

#[test]
fn a_seal_that_was_torn_is_written_again() {
    let mut world = sample();
    let seals = world.settings.seal_file.clone().unwrap();
    let text = fs::read_to_string(&seals).unwrap();
    fs::write(&seals, &text[..text.len() - 20]).unwrap();
    assert_eq!(world.verify().seals.unwrap().unsealed, 1);
    world.open();
    world.maintain();
    let found = world.verify();
    assert_eq!((found.fault, found.seals.unwrap().unsealed), (None, 0));
}

#[test]
fn a_cut_that_was_not_recorded_is_no_cut() {
    let mut world = World::new();
    for _ in 0..8 {
        (0..4).for_each(|_| world.append());
        world.maintain();
        world.pass_days(1);
    }
    world.append();
    world.maintain();
    world.stop();
    world.check();
    let found = world.verify();
    let cut = found.cut.unwrap();
    assert!(cut.lines > 0 && !cut.since.is_empty(), "{cut:?}");
    // One segment more than the log records.
    let files = world.files();
    let oldest = files.list().unwrap().first().copied().unwrap();
    fs::remove_file(files.compressed(oldest)).unwrap();
    assert!(fault(&world).contains("they are missing"), "{}", fault(&world));
}

#[test]
fn a_line_that_follows_a_closed_segment_is_not_taken_for_a_header() {
    let world = sample();
    let path = world.path();
    let text = fs::read_to_string(&path).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let before = ChainHead {
        seq: first["seq"].as_u64().unwrap() - 1,
        hash: first["prev"].as_str().unwrap().to_owned(),
    };
    // The newest segment, begun anew without its header.
    let (line, _) = before.line(&Map::from_iter([("event".to_owned(), "forged".into())]));
    fs::write(&path, format!("{line}\n")).unwrap();
    let fault = fault(&world);
    assert!(fault.contains("it was replaced"), "{fault}");
}
